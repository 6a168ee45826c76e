package recovery_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"rouse"
	"rouse/internal/recovery"
	"rouse/internal/session"
)

// fickle sessions show a turn at work to the first who looks, and one that was
// silent for a minute from then on.
type fickle struct {
	*session.Lanes
	looked *bool
}

func (f fickle) Vitals(id string) (rouse.Vitals, bool) {
	v, ok := f.Lanes.Vitals(id)
	if *f.looked {
		v.Clock = time.Now().Add(-time.Minute)
	}
	*f.looked = true
	return v, ok
}

// What speaks against a rescue is looked at once: the refusal is about the turn
// as it was seen, and does not turn into a permission while it is put in words.
func TestRefusalIsOfOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		defer w.stop()
		s := w.session(session.NewSession{})
		acc := w.prompt(s.ID, "hang", "do it")
		rest()
		medic := recovery.NewMedic(w.store, fickle{w.lanes, new(bool)}, slog.New(slog.DiscardHandler), 0)
		r, err := medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Model: echo})
		if rouse.KindOf(err) != rouse.Conflict || rouse.FieldOf(err) != "working" {
			t.Errorf("%+v %v", r, err)
		}
		if err := w.lanes.Abort(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		w.turn(acc)
	})
}
