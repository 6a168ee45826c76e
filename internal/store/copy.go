package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"

	"rouse"
)

// Copy writes a consistent copy of a database, which may be in use, to a file
// that must not exist. The copy can be read by its owner only.
func Copy(ctx context.Context, from, to string) error {
	const op = "store: copy"
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // SQLite fills an empty file
	if err != nil {
		why := err
		if p := (*fs.PathError)(nil); errors.As(err, &p) {
			why = p.Err
		}
		return &rouse.Error{Kind: rouse.Invalid, Op: op, Msg: "the file " + to + " cannot be made: " + why.Error(), Err: err}
	}
	if err := f.Close(); err != nil {
		return failure(op, err)
	}
	db, err := openDB(from, 1, "")
	if err != nil {
		return failure(op, err)
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO "+quote(to))
	return failure(op, errors.Join(err, db.Close()))
}

// Check refuses (Invalid) a file that is no sound database of this program or
// an older one. It reads the file alone, writes nothing, and leaves nothing
// beside it.
func Check(ctx context.Context, path string) error {
	const op = "store: check"
	refuse := func(why string, err error) error {
		return &rouse.Error{Kind: rouse.Invalid, Op: op, Msg: path + " is no backup that can be used: " + why, Err: err}
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&immutable=1")
	if err != nil {
		return failure(op, err)
	}
	defer db.Close()
	var sound string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&sound); err != nil || sound != "ok" {
		return refuse("it is damaged or no database", err)
	}
	var have int64
	if err := db.QueryRowContext(ctx, "SELECT MAX(version_id) FROM goose_db_version").Scan(&have); err != nil {
		return refuse("it was not made by rouse", err)
	}
	_, want, err := versions(ctx, db)
	if err != nil {
		return failure(op, err)
	}
	if have > want {
		return refuse("a newer rouse made it", nil)
	}
	return nil
}
