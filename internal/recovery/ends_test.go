package recovery_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rouse"
	"rouse/internal/recovery"
	"rouse/internal/session"
	"rouse/internal/store"
)

// orphan makes the session's turn one of a server that is gone.
func (w *world) orphan(id string) string {
	w.t.Helper()
	now := time.Now()
	turn := &rouse.Turn{ID: rouse.NewID(rouse.TurnPrefix, now), SessionID: id, Generation: 1, State: rouse.TurnRunning, Boot: "boo_gone", Started: now}
	if err := w.store.Write(w.t.Context(), store.Lazy, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		s.Running, s.RunningBoot, s.Generation = turn.ID, turn.Boot, 1
		return errors.Join(tx.KeepSession(s), tx.InsertTurn(turn))
	}); err != nil {
		w.t.Fatal(err)
	}
	return turn.ID
}

// A turn whose server is gone is ended by whoever ends turns: it is interrupted
// at once, and what was wanted goes on.
func TestEndOfAnOrphan(t *testing.T) {
	for name, end := range map[string]func(*world, string) error{
		"abort":  func(w *world, id string) error { return w.lanes.Abort(w.t.Context(), id) },
		"cancel": func(w *world, id string) error { _, _, err := w.lanes.Cancel(w.t.Context(), id, 0); return err },
		"cancel of its generation": func(w *world, id string) error {
			if _, _, err := w.lanes.Cancel(w.t.Context(), id, 2); rouse.KindOf(err) != rouse.Conflict {
				w.t.Errorf("another generation: %v", err)
			}
			_, _, err := w.lanes.Cancel(w.t.Context(), id, 1)
			return err
		},
		"rescue": func(w *world, id string) error {
			r, err := w.medic.Rescue(w.t.Context(), recovery.Request{SessionID: id, By: recovery.User, Model: echo})
			if err == nil && w.end(r.ID).Status != rouse.RescueDone {
				w.t.Errorf("rescue: %+v", w.end(r.ID))
			}
			return err
		},
		"abort beside an idle lane": func(w *world, id string) error {
			w.lanes.Kick(id)
			rest()
			return w.lanes.Abort(w.t.Context(), id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, t.TempDir(), "boo_1")
				defer w.stop()
				s := w.session(session.NewSession{})
				gone := w.orphan(s.ID)
				if err := end(w, s.ID); err != nil {
					t.Fatal(err)
				}
				if turn, err := w.store.Turn(t.Context(), gone); err != nil || turn.State != rouse.TurnInterrupted {
					t.Errorf("%+v %v", turn, err)
				}
				if next := w.turn(w.prompt(s.ID, "echo", "next")); next.State != rouse.TurnCompleted {
					t.Errorf("%+v", next)
				}
			})
		})
	}
}

// What a rescue left behind it ended last, although its generation is older.
func TestLastIsWhatEndedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		defer w.stop()
		s := w.session(session.NewSession{})
		w.prompt(s.ID, "hang", "do it")
		queued := w.prompt(s.ID, "echo", "later")
		rest()
		r, err := w.medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Force: true, Model: rouse.ModelRef{Provider: "drill", Model: "fail"}})
		if err != nil {
			t.Fatal(err)
		}
		r = w.end(r.ID)
		after := w.turn(queued)
		row, err := w.store.Session(t.Context(), s.ID)
		if err != nil || row.Last != after.ID || row.Outcome != rouse.TurnCompleted || r.Generation <= after.Generation {
			t.Fatalf("%+v %v, rescue %+v", row, err, r)
		}
		if last, err := w.store.LastTurn(t.Context(), row); err != nil || last.ID != after.ID {
			t.Errorf("%+v %v", last, err)
		}
		row.Last = "" // a row of an older version
		if last, err := w.store.LastTurn(t.Context(), row); err != nil || last.ID != r.TurnID {
			t.Errorf("%+v %v", last, err)
		}
	})
}

// A fork of a session that is being rescued is held by nobody.
func TestForkDuringARescue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		defer w.stop()
		s := w.session(session.NewSession{})
		r, err := w.medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Model: rouse.ModelRef{Provider: "drill", Model: "mute"}})
		if err != nil {
			t.Fatal(err)
		}
		rest()
		fork, err := w.lanes.Fork(t.Context(), s.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if turn := w.turn(w.prompt(fork.ID, "echo", "x")); turn.State != rouse.TurnCompleted {
			t.Errorf("%+v", turn)
		}
		w.end(r.ID)
	})
}
