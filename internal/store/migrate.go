package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"

	"rouse"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrations is embedded, except in the test of migrating.
var migrations fs.FS = embedded

// migrate brings the schema up to this program's. Before it changes a database
// that holds data it writes a copy; a newer schema is refused with both
// versions named.
func migrate(ctx context.Context, db *sql.DB, path, backups string, log *slog.Logger) error {
	const op = "migrate"
	have, want, err := versions(ctx, db)
	if err != nil {
		return failure(op, err)
	}
	switch {
	case have > want:
		return rouse.Errorf(rouse.Unavailable, op,
			"the database has schema %d, this program knows schema %d: use a newer rouse or restore a backup", have, want)
	case have == want:
		return nil
	case have > 0:
		if backups == "" {
			backups = filepath.Dir(path)
		}
		name := filepath.Join(backups, fmt.Sprintf("backup-schema%d-%s.db", have, time.Now().UTC().Format("20060102T150405")))
		if _, err := db.ExecContext(ctx, "VACUUM INTO "+quote(name)); err != nil {
			return failure(op+": backup", err)
		}
		if err := os.Chmod(name, 0o600); err != nil {
			return failure(op+": backup", err)
		}
		log.Info("store.backup", "schema", have, "file", filepath.Base(name))
	}
	provider, err := migrator(db)
	if err == nil {
		_, err = provider.Up(ctx)
	}
	return failure(op, err)
}

func migrator(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithLogger(goose.NopLogger()))
}

// versions are the database's schema and this program's.
func versions(ctx context.Context, db *sql.DB) (have, want int64, err error) {
	p, err := migrator(db)
	if err != nil {
		return 0, 0, err
	}
	return p.GetVersions(ctx)
}
