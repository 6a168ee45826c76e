package daemon

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"rouse"
	"rouse/internal/store"
)

// Backup writes a consistent copy of a data folder's database to file, also
// while a server runs on it. An existing file is refused (Conflict).
func Backup(ctx context.Context, data, file string) error {
	const op = "daemon: backup"
	if _, err := os.Stat(filepath.Join(data, "rouse.db")); err != nil {
		return rouse.Errorf(rouse.NotFound, op, "there is no database in %s", data)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return rouse.Errorf(rouse.Conflict, op, "%s exists already: name another file", file)
	}
	return rouse.Wrap(op, store.Copy(ctx, filepath.Join(data, "rouse.db"), file))
}

// Restore puts a backup in the place of a data folder's database, which is
// kept beside it under the name that is returned: "" if there was none. No
// server may run on the folder (Conflict); a file that is no database of Rouse,
// or of a newer one, is refused (Invalid) and nothing is changed or made.
func Restore(ctx context.Context, data, file string, now time.Time) (kept string, err error) {
	const op = "daemon: restore"
	info, err := os.Stat(file) // to open a named pipe would wait for who writes into it
	if err == nil && !info.Mode().IsRegular() {
		return "", rouse.Errorf(rouse.Invalid, op, "the backup %s cannot be read: it is not a file", file)
	}
	in, err := os.Open(file)
	if err != nil {
		return "", &rouse.Error{Kind: rouse.Invalid, Op: op, Msg: "the backup " + file + " cannot be read: " + plainError(err), Err: err}
	}
	defer in.Close()
	if err := store.Check(ctx, file); err != nil {
		return "", rouse.Wrap(op, err)
	}
	d, err := openData(data, true)
	if err != nil {
		return "", rouse.Wrap(op, err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	had := true
	if info, err := os.Stat(d.database()); err == nil && info.Size() == 0 { // opening made it
		had = false
	}
	fresh := filepath.Join(data, "restore.db")
	defer func() {
		removeDatabase(fresh)
		if err != nil && !had {
			removeDatabase(d.database())
		}
	}()
	if err := copyTo(fresh, in); err != nil {
		return "", &rouse.Error{Kind: rouse.Unavailable, Op: op, Msg: "the backup cannot be copied to " + fresh + ": " + plainError(err), Err: err}
	}
	if err := store.Check(ctx, fresh); err != nil { // of what was copied
		return "", rouse.Wrap(op, err)
	}
	if !had {
		if err := os.Rename(fresh, d.database()); err != nil {
			return "", &rouse.Error{Kind: rouse.Unavailable, Op: op, Msg: "the backup cannot be put in place: " + plainError(err), Err: err}
		}
		return "", nil
	}
	// What the old log still holds belongs into the old database.
	old, err := store.Open(ctx, d.database(), store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = old.Close()
	}
	if err != nil && rouse.KindOf(err) != rouse.Unavailable {
		return "", rouse.Wrap(op, err)
	}
	kept = filepath.Join(data, "before-restore-"+now.UTC().Format("20060102T150405")+".db")
	if err := os.Rename(d.database(), kept); err != nil {
		return "", &rouse.Error{Kind: rouse.Unavailable, Op: op, Msg: "the database cannot be put aside: " + plainError(err), Err: err}
	}
	removeLog(d.database())
	if err := os.Rename(fresh, d.database()); err != nil {
		return "", errors.Join(&rouse.Error{Kind: rouse.Unavailable, Op: op, Msg: "the backup cannot be put in place: " + plainError(err), Err: err},
			os.Rename(kept, d.database()))
	}
	return kept, nil
}

func copyTo(to string, in io.Reader) (err error) {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}

func removeDatabase(path string) {
	_ = os.Remove(path) // renamed: gone already
	removeLog(path)
}

func removeLog(path string) {
	_ = os.Remove(path + "-wal")
	_ = os.Remove(path + "-shm")
}
