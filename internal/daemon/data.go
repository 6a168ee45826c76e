package daemon

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"rouse"
)

// dataFolder is where everything lives: rouse.db, token, server.json, and the
// lock that keeps a second server out. The folder is 0700, its files 0600.
type dataFolder struct {
	dir      string
	lock     *os.File
	token    string
	newToken bool
}

func (d *dataFolder) database() string   { return filepath.Join(d.dir, "rouse.db") }
func (d *dataFolder) tokenFile() string  { return filepath.Join(d.dir, "token") }
func (d *dataFolder) serverFile() string { return filepath.Join(d.dir, "server.json") }

// openData makes or opens a data folder and locks it.
func openData(dir string, noAuth bool) (*dataFolder, error) {
	const op = "data folder"
	unusable := func(what string, err error) error {
		return &rouse.Error{Kind: rouse.Unavailable, Op: op, Field: "--data", Err: err,
			Msg: fmt.Sprintf("the data folder %s cannot be used: %s (%s)", dir, what, plainError(err))}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unusable("it cannot be made", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, unusable("it cannot be read", err)
	} else if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, unusable("others can read it and its rights cannot be changed", err)
		}
	}
	d := &dataFolder{dir: dir}
	if err := d.takeLock(); err != nil {
		if errors.As(err, new(*rouse.Error)) {
			return nil, err
		}
		return nil, unusable("its lock cannot be written", err)
	}
	if err := d.prepare(noAuth); err != nil {
		_ = d.lock.Close()
		if errors.As(err, new(*rouse.Error)) {
			return nil, err
		}
		return nil, unusable("a file in it cannot be written", err)
	}
	return d, nil
}

// plainError is the operating system's word without its path.
func plainError(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// takeLock keeps a second server out, naming the first one's pid.
func (d *dataFolder) takeLock() error {
	f, err := os.OpenFile(filepath.Join(d.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid, _ := os.ReadFile(f.Name())
		_ = f.Close()
		return rouse.Errorf(rouse.Conflict, "data folder",
			"another rouse server (pid %s) uses the data folder %s: stop it, or choose another with --data", strings.TrimSpace(string(pid)), d.dir)
	}
	if err := errors.Join(f.Truncate(0), write(f, fmt.Sprintf("%d\n", os.Getpid()))); err != nil {
		_ = f.Close()
		return err
	}
	d.lock = f
	return nil
}

func write(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// prepare makes the database file with its rights and reads or makes the token.
func (d *dataFolder) prepare(noAuth bool) error {
	db, err := os.OpenFile(d.database(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(db.Chmod(0o600), db.Close()); err != nil {
		return err
	}
	if noAuth {
		return nil
	}
	raw, err := os.ReadFile(d.tokenFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Letters and digits, 256 bits and more: a token that begins with "-"
		// is an option to whatever program gets it as an argument.
		d.token, d.newToken = rand.Text()+rand.Text(), true
		return os.WriteFile(d.tokenFile(), []byte(d.token+"\n"), 0o600)
	case err != nil:
		return err
	}
	if d.token = strings.TrimSpace(string(raw)); d.token == "" {
		return rouse.Errorf(rouse.Invalid, "data folder", "the token file %s is empty: delete it to have a new token made", d.tokenFile())
	}
	return os.Chmod(d.tokenFile(), 0o600)
}

// announce writes server.json, by which clients on this machine find us.
func (d *dataFolder) announce(url string, noAuth bool) error {
	about := map[string]any{"url": url, "pid": os.Getpid()}
	if !noAuth {
		about["token_file"] = d.tokenFile()
	}
	raw, err := json.Marshal(about)
	if err != nil {
		return err
	}
	tmp := d.serverFile() + ".new"
	if err := os.WriteFile(tmp, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, d.serverFile())
}

// Close takes back what announce said and lets the folder go.
func (d *dataFolder) Close() error {
	err := os.Remove(d.serverFile())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, d.lock.Close())
}
