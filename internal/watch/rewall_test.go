package watch

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"rouse"
	"rouse/internal/store"
)

// Sessions that wait for a wall are looked at every minute, and there may be
// thousands: as long as it stands nothing is written, and once it has gone each
// is told, also one whose row is older than its field Last.
func TestOnlyWhoIsFreeIsWritten(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	st, err := store.Open(ctx, filepath.Join(t.TempDir(), "rouse.db"), store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	served := make(chan error, 1)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { served <- st.Serve(serving) }()
	defer func() { stop(); <-served }()
	write := func(fn func(tx *store.Tx) error) {
		t.Helper()
		if err := st.Write(ctx, store.Lazy, fn); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC()
	met := func(session, turn string) *rouse.Turn {
		return &rouse.Turn{ID: turn, SessionID: session, Generation: 1, State: rouse.TurnFailed, Started: now, Ended: now,
			Model:   rouse.ModelRef{Provider: "p", Model: "m"},
			Failure: &rouse.Failure{Class: rouse.ClassQuota, Code: rouse.CodeQuota, Provider: "p", ResetAt: now.Add(5 * time.Hour)}}
	}
	wall, ok := rouse.WallOf(met("ses_new", "trn_new"), now)
	if !ok {
		t.Fatal("no wall")
	}
	write(func(tx *store.Tx) error { return tx.PutWall(&wall) })
	for session, last := range map[string]string{"ses_new": "trn_new", "ses_old": ""} {
		turn := met(session, "trn_"+session[4:])
		v := Settled(now, turn, []rouse.Wall{wall})
		if v.Code != rouse.WaitingQuota {
			t.Fatal(v)
		}
		write(func(tx *store.Tx) error {
			if err := tx.InsertSession(&rouse.Session{ID: session, Directory: "/d", Created: now, Generation: 1, Last: last, Outcome: rouse.TurnFailed}); err != nil {
				return err
			}
			if err := tx.InsertTurn(turn); err != nil {
				return err
			}
			_, err := tx.PutVerdict(session, turn.ID, 1, &v)
			return err
		})
	}
	w := New(Config{Store: st})
	if err := w.rewall(ctx); err != nil { // SQLite opens no connection beside a write
		t.Fatal(err)
	}

	held, free := make(chan struct{}), make(chan struct{})
	st.Go(ctx, store.Lazy, func(*store.Tx) error { close(held); <-free; return nil }, func(error) {})
	<-held
	brief, end := context.WithTimeout(ctx, 5*time.Second) // a write would wait until then
	if err := w.rewall(brief); err != nil {
		t.Errorf("while the wall stands: %v", err)
	}
	end()
	close(free)

	wall.State = rouse.WallIsClosed
	write(func(tx *store.Tx) error { return tx.PutWall(&wall) })
	if err := w.rewall(ctx); err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"ses_new", "ses_old"} {
		if v, err := st.Verdict(ctx, session); err != nil || v.Code != rouse.SettledVerdict(rouse.TurnFailed) {
			t.Errorf("%s once it has gone: %+v %v", session, v, err)
		}
	}
}
