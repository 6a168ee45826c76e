package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse"
)

var login = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestAccountsInTheFile(t *testing.T) {
	p := newPlace(t)
	ctx := context.Background()
	a := p.paths.Accounts
	if list, err := a.List(); err != nil || len(list) != 0 {
		t.Fatalf("empty: %v %v", list, err)
	}
	if _, err := a.Put(ctx, "groq", "sk-1", login); err != nil {
		t.Fatal(err)
	}
	dir := DefaultData(p.getenv)
	for name, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "accounts.json"): 0o600} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, st.Mode(), err)
		}
	}
	c := p.load()
	g, ok := c.Provider("groq")
	if !ok || g.Unusable != "" || g.Source != "account" {
		t.Fatalf("groq %+v", g)
	}
	if key, err := g.Key(ctx); err != nil || key != "sk-1" {
		t.Errorf("key %q %v", key, err)
	}
	if shown := fmt.Sprintf("%+v %#v", *g, c); strings.Contains(shown, "sk-1") {
		t.Error("formatting a provider shows its key")
	}
	if err := a.Delete(ctx, "groq"); err != nil {
		t.Error(err)
	}
	if err := a.Delete(ctx, "groq"); rouse.KindOf(err) != rouse.NotFound {
		t.Errorf("second delete: %v", err)
	}
	for _, bad := range [][2]string{{"", "k"}, {"a b", "k"}, {"a", " "}, {"a", "x\ny"}} {
		if _, err := a.Put(ctx, bad[0], bad[1], login); rouse.KindOf(err) != rouse.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "accounts.json"), []byte(`{"sk-secret`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.List(); rouse.KindOf(err) != rouse.Invalid || strings.Contains(err.Error(), "secret") {
		t.Errorf("damaged: %v", err)
	}
	if c := p.load(); len(c.Warnings) != 1 {
		t.Errorf("warnings %q", c.Warnings)
	}
}

func TestAccountsAtOnce(t *testing.T) {
	p := newPlace(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			a := OpenAccounts(DefaultData(p.getenv), p.getenv)
			if _, err := a.Put(context.Background(), fmt.Sprint("p", i), "k", login); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := p.paths.Accounts.List(); err != nil || len(list) != 8 {
		t.Errorf("%v %v", list, err)
	}
}

// ring is a keyring that can be locked.
type ring struct {
	keys   map[string]string
	locked bool
}

func (r *ring) answers(context.Context) bool { return !r.locked }
func (r *ring) set(p, k string) error        { r.keys[p] = k; return nil }
func (r *ring) remove(p string) error        { delete(r.keys, p); return nil }
func (r *ring) get(p string) (string, error) {
	if k, ok := r.keys[p]; ok {
		return k, nil
	}
	return "", errors.New("gone")
}

func TestAccountsInTheKeyring(t *testing.T) {
	ctx := context.Background()
	r := &ring{keys: map[string]string{}}
	a := &Accounts{dir: t.TempDir(), ring: r}
	acc, err := a.Put(ctx, "x", "sk-2", login)
	if err != nil || acc.Store != "keyring" {
		t.Fatalf("%+v %v", acc, err)
	}
	if data, _ := os.ReadFile(a.path()); strings.Contains(string(data), "sk-2") {
		t.Errorf("the file holds the key: %s", data)
	}
	if key, err := a.Get(ctx, "x"); err != nil || key != "sk-2" {
		t.Errorf("%q %v", key, err)
	}
	r.locked = true
	if _, err := a.Get(ctx, "x"); rouse.KindOf(err) != rouse.Unavailable {
		t.Errorf("locked: %v", err)
	}
	if acc, err := a.Put(ctx, "x", "sk-3", login); err != nil || acc.Store != "file" {
		t.Errorf("locked put: %+v %v", acc, err)
	}
	if key, err := a.Get(ctx, "x"); err != nil || key != "sk-3" {
		t.Errorf("after the fallback: %q %v", key, err)
	}
	r.locked = false
	if err := a.Delete(ctx, "x"); err != nil {
		t.Error(err)
	}
}

func TestKeyringWithoutABus(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the bus is Linux's")
	}
	gone := "unix:path=" + filepath.Join(t.TempDir(), "none")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", gone)
	for name, env := range map[string]string{"unset": "", "autolaunch": "autolaunch:", "nobody listens": gone} {
		k := systemKeyring{func(v string) string {
			if v == "DBUS_SESSION_BUS_ADDRESS" {
				return env
			}
			return ""
		}}
		if k.answers(context.Background()) {
			t.Errorf("%s: a keyring answers", name)
		}
	}
}
