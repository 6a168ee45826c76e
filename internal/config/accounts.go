package config

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rouse"
)

// Accounts keeps providers' keys: in the system's keyring where one answers,
// else in accounts.json (0600) in the data folder. The file also says which
// keys the keyring holds, because a keyring cannot be listed. It is read at
// each call, so that a login counts in a running server; several processes
// may use it at once.
type Accounts struct {
	dir  string
	ring keyring // nil: none answers
}

// Account says that a key is there, and where; never the key.
type Account struct {
	Provider string    `json:"provider_id"`
	Store    string    `json:"store"` // "keyring" or "file"
	Updated  time.Time `json:"updated_at"`
}

type accountsFile struct {
	Accounts map[string]accountEntry `json:"accounts"`
}

type accountEntry struct {
	Key     string    `json:"key,omitempty"`
	Keyring bool      `json:"keyring,omitempty"`
	Updated time.Time `json:"updated"`
}

// OpenAccounts uses the data folder dir. ROUSE_KEYRING=off keeps all keys in
// the file.
func OpenAccounts(dir string, getenv func(string) string) *Accounts {
	a := &Accounts{dir: dir}
	if getenv("ROUSE_KEYRING") != "off" {
		a.ring = systemKeyring{getenv}
	}
	return a
}

const opAccounts = "config: accounts"

func (a *Accounts) path() string { return filepath.Join(a.dir, "accounts.json") }

// List gives all accounts, sorted by provider. No file is no account.
func (a *Accounts) List() ([]Account, error) {
	f, err := a.read()
	if err != nil {
		return nil, err
	}
	out := make([]Account, 0, len(f.Accounts))
	for _, id := range slices.Sorted(keysOf(f.Accounts)) {
		acc := Account{Provider: id, Store: "file", Updated: f.Accounts[id].Updated}
		if f.Accounts[id].Keyring {
			acc.Store = "keyring"
		}
		out = append(out, acc)
	}
	return out, nil
}

// Get gives a provider's key; NotFound when there is none, Unavailable when
// the keyring that holds it does not answer.
func (a *Accounts) Get(ctx context.Context, provider string) (string, error) {
	f, err := a.read()
	if err != nil {
		return "", err
	}
	e, ok := f.Accounts[provider]
	switch {
	case !ok:
		return "", rouse.Errorf(rouse.NotFound, opAccounts, "there is no account for %s", quote(provider))
	case !e.Keyring:
		return e.Key, nil
	case a.ring == nil || !a.ring.answers(ctx):
		return "", rouse.Errorf(rouse.Unavailable, opAccounts,
			"the key of %s is in the system's keyring, which does not answer or is locked", quote(provider))
	}
	key, err := a.ring.get(provider)
	if err != nil {
		return "", &rouse.Error{Kind: rouse.Unavailable, Op: opAccounts, Err: err,
			Msg: "the system's keyring does not give the key of " + quote(provider)}
	}
	return key, nil
}

// Put keeps a key, replacing an earlier one. now is the time of the login.
func (a *Accounts) Put(ctx context.Context, provider, key string, now time.Time) (Account, error) {
	switch {
	case provider == "" || strings.ContainsAny(provider, "/ \t\n"):
		return Account{}, rouse.FieldError(opAccounts, "provider", "provider %s: use an id such as \"anthropic\"", quote(provider))
	case strings.TrimSpace(key) == "" || strings.ContainsAny(key, "\r\n\x00"):
		return Account{}, rouse.FieldError(opAccounts, "key", "the key is empty or has more than one line")
	}
	e := accountEntry{Key: key, Updated: now.UTC()}
	acc := Account{Provider: provider, Store: "file", Updated: e.Updated}
	if a.ring != nil && a.ring.answers(ctx) && a.ring.set(provider, key) == nil {
		e.Key, e.Keyring, acc.Store = "", true, "keyring"
	}
	return acc, a.change(func(f *accountsFile) error {
		f.Accounts[provider] = e
		return nil
	})
}

// Delete forgets a key; NotFound when there is none. A key in a keyring that
// does not answer is forgotten here all the same.
func (a *Accounts) Delete(ctx context.Context, provider string) error {
	return a.change(func(f *accountsFile) error {
		e, ok := f.Accounts[provider]
		if !ok {
			return rouse.Errorf(rouse.NotFound, opAccounts, "there is no account for %s", quote(provider))
		}
		if e.Keyring && a.ring != nil && a.ring.answers(ctx) {
			if err := a.ring.remove(provider); err != nil {
				return &rouse.Error{Kind: rouse.Unavailable, Op: opAccounts, Err: err,
					Msg: "the system's keyring does not remove the key of " + quote(provider)}
			}
		}
		delete(f.Accounts, provider)
		return nil
	})
}

func (a *Accounts) read() (accountsFile, error) {
	f := accountsFile{}
	data, err := os.ReadFile(a.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, &rouse.Error{Kind: rouse.Unavailable, Op: opAccounts, Err: err, Msg: "accounts.json in the data folder cannot be read"}
	}
	if err == nil && json.Unmarshal(data, &f) != nil {
		// The decoder's own error could quote a key, so it is not kept.
		return accountsFile{}, rouse.Errorf(rouse.Invalid, opAccounts, "accounts.json in the data folder is damaged: move it away and log in again")
	}
	if f.Accounts == nil {
		f.Accounts = map[string]accountEntry{}
	}
	return f, nil
}

// change reads, changes and replaces the file under a lock between processes.
func (a *Accounts) change(do func(*accountsFile) error) error {
	fail := func(err error) error {
		return &rouse.Error{Kind: rouse.Unavailable, Op: opAccounts, Err: err, Msg: "accounts.json in the data folder cannot be written"}
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return fail(err)
	}
	unlock, err := lockFile(filepath.Join(a.dir, "accounts.lock"))
	if err != nil {
		return fail(err)
	}
	defer unlock()
	f, err := a.read()
	if err != nil {
		return err
	}
	if err := do(&f); err != nil {
		return err
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fail(err)
	}
	if err := replaceFile(a.path(), append(data, '\n')); err != nil {
		return fail(err)
	}
	return nil
}

// replaceFile writes a 0600 file so that a crash leaves the old or the new
// content, never a part.
func replaceFile(path string, data []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600 by contract
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	if _, err = tmp.Write(data); err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
