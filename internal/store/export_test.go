package store

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

// SetSchema pretends that a database was written by another version.
func SetSchema(t *testing.T, path string, version int) {
	t.Helper()
	db, err := openDB(path, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, 1)`, version); err != nil {
		t.Fatal(err)
	}
}

// AddMigration gives this program one more migration until the test ends.
func AddMigration(t *testing.T, name, text string) {
	t.Helper()
	all := fstest.MapFS{"migrations/" + name: &fstest.MapFile{Data: []byte(text)}}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := fs.ReadFile(migrations, f)
		if err != nil {
			t.Fatal(err)
		}
		all[f] = &fstest.MapFile{Data: raw}
	}
	old := migrations
	migrations = all
	t.Cleanup(func() { migrations = old })
}

// OldSchema lets this program know only the first migrations until the test
// ends.
func OldSchema(t *testing.T, names ...string) {
	t.Helper()
	old, few := migrations, fstest.MapFS{}
	for _, name := range names {
		raw, err := fs.ReadFile(old, "migrations/"+name)
		if err != nil {
			t.Fatal(err)
		}
		few["migrations/"+name] = &fstest.MapFile{Data: raw}
	}
	migrations = few
	t.Cleanup(func() { migrations = old })
}
