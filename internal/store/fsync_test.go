package store_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rouse/internal/store"
)

// A kill cannot prove that a promise is on disk, so the calls are counted: the
// test runs itself under strace and writes n times in each way.
func TestPromisesAreSynced(t *testing.T) {
	if n := os.Getenv("ROUSE_TEST_SYNC"); n != "" {
		writeSome(t, n)
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed; `make test` installs it")
	}
	count := func(how string) int {
		out := filepath.Join(t.TempDir(), "calls")
		cmd := exec.Command(strace, "-f", "-o", out, "-e", "trace=fsync,fdatasync", os.Args[0], "-test.run=^TestPromisesAreSynced$")
		cmd.Env = append(os.Environ(), "ROUSE_TEST_SYNC="+how)
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, msg)
		}
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(raw), "sync(")
	}
	base, promised, lazy := count("promise 0"), count("promise 40"), count("lazy 40")
	if promised-base < 40 {
		t.Errorf("40 promises made %d syncs", promised-base)
	}
	if lazy-base > 4 {
		t.Errorf("40 lazy writes made %d syncs", lazy-base)
	}
}

func writeSome(t *testing.T, how string) {
	kind, n, _ := strings.Cut(how, " ")
	times, err := strconv.Atoi(n)
	if err != nil {
		t.Fatal(err)
	}
	durable := store.Lazy
	if kind == "promise" {
		durable = store.Promise
	}
	s, _ := open(t, filepath.Join(t.TempDir(), "r.db"))
	row := newSession(t, s, "/d")
	for range times {
		if err := s.Write(context.Background(), durable, func(tx *store.Tx) error { return tx.UpdateSession(row) }); err != nil {
			t.Fatal(err)
		}
	}
}
