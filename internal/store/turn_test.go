package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"rouse"
	"rouse/internal/store"
)

// The last turn is the one that the session's row names, and the newest ended
// one of a row that is older than that. Who lists sessions reads rows one after
// the other: what was deleted since has none, and that is no error.
func TestLastTurn(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "r.db"))
	row := newSession(t, s, "/d")
	write := func(fn func(tx *store.Tx) error) {
		t.Helper()
		if err := s.Write(t.Context(), store.Lazy, fn); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when, last, want string) {
		t.Helper()
		of := *row
		of.Last = last
		id := func(turn *rouse.Turn, err error) string {
			switch {
			case err != nil:
				return err.Error()
			case turn == nil:
				return ""
			}
			return turn.ID
		}
		if got := id(s.LastTurn(t.Context(), &of)); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		write(func(tx *store.Tx) error {
			if got := id(tx.LastTurn(&of)); got != want {
				t.Errorf("%s, in a transaction: %q, want %q", when, got, want)
			}
			return nil
		})
	}
	check("before the first end", "", "")
	for i, state := range []rouse.TurnState{rouse.TurnCompleted, rouse.TurnFailed, rouse.TurnRunning, rouse.TurnQueued} {
		turn := &rouse.Turn{ID: "trn_" + string(state), SessionID: row.ID, Generation: uint64(i) + 1, State: state, Started: time.Now()}
		write(func(tx *store.Tx) error { return tx.InsertTurn(turn) })
	}
	check("named", "trn_completed", "trn_completed")
	check("an old row", "", "trn_failed")
	write(func(tx *store.Tx) error { return tx.DeleteSession(row) })
	check("named, and deleted", "trn_completed", "")
	check("an old row, and deleted", "", "")
}
