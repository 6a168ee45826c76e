package recovery_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"rouse"
	"rouse/internal/recovery"
	"rouse/internal/session"
	"rouse/internal/store"
)

// incident gives the session's newest incident.
func (w *world) incident(id string) rouse.Incident {
	w.t.Helper()
	list, err := w.store.Incidents(w.t.Context(), store.IncidentFilter{Session: id, Limit: 1})
	if err != nil || len(list) != 1 {
		w.t.Fatal(list, err)
	}
	return list[0]
}

func (w *world) act(id, action string, model rouse.ModelRef) (recovery.Done, error) {
	return recovery.Act(w.t.Context(), w.store, w.lanes, id, action, model)
}

func TestIncidentActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		defer w.stop()
		s := w.session(session.NewSession{Title: "the work"})
		failed := w.prompt(s.ID, "exit", "do it")
		w.turn(failed)
		i := w.incident(s.ID)
		if i.Kind != rouse.CodeExited || i.Status != rouse.IncidentOpen {
			t.Fatalf("%+v", i)
		}
		for _, bad := range []struct {
			action string
			model  rouse.ModelRef
			kind   rouse.Kind
		}{{"wake_at_reset", rouse.ModelRef{}, rouse.Conflict}, {rouse.ActionContinue, rouse.ModelRef{}, rouse.Invalid}, {rouse.ActionResume, echo, rouse.Invalid}} {
			if _, err := w.act(i.ID, bad.action, bad.model); rouse.KindOf(err) != bad.kind {
				t.Errorf("%s: %v", bad.action, err)
			}
		}
		// With another model it completes, which resolves the incident.
		done, err := w.act(i.ID, rouse.ActionContinue, echo)
		if err != nil {
			t.Fatal(err)
		}
		turn := w.turn(session.Accepted{TurnID: done.TurnID})
		if turn.State != rouse.TurnCompleted || turn.RetryOf != failed.TurnID || turn.Model != echo {
			t.Errorf("%+v", turn)
		}
		if after := w.incident(s.ID); after.Status != rouse.IncidentResolved || len(after.Actions()) != 0 {
			t.Errorf("%+v", after)
		}
		if _, err := w.act(i.ID, rouse.ActionResume, rouse.ModelRef{}); rouse.KindOf(err) != rouse.Conflict {
			t.Errorf("a resolved one: %v", err)
		}

		// Resumed it fails again: a newer incident takes its place.
		w.turn(w.prompt(s.ID, "exit", "again"))
		first := w.incident(s.ID)
		done, err = w.act(first.ID, rouse.ActionResume, rouse.ModelRef{})
		if err != nil {
			t.Fatal(err)
		}
		twice, err := w.act(first.ID, rouse.ActionResume, rouse.ModelRef{})
		if err != nil || twice.TurnID != done.TurnID {
			t.Errorf("the same action twice: %+v %v", twice, err)
		}
		w.turn(session.Accepted{TurnID: done.TurnID})
		second := w.incident(s.ID)
		if before, err := w.store.Incident(t.Context(), first.ID); err != nil || before.Status != rouse.IncidentSuperseded || second.ID == first.ID {
			t.Errorf("%+v %v", before, err)
		}

		// A fresh start leaves the session alone.
		fresh := make(chan string)
		for range 5 { // five clicks at once
			go func() {
				done, err := w.act(second.ID, rouse.ActionFresh, rouse.ModelRef{})
				if rouse.KindOf(err) == rouse.Conflict { // it was done by then
					done.SessionID = ""
				} else if err != nil {
					t.Error(err)
				}
				fresh <- done.SessionID
			}()
		}
		sessions := map[string]bool{}
		for range 5 {
			if id := <-fresh; id != "" {
				sessions[id] = true
			}
		}
		if len(sessions) != 1 {
			t.Errorf("five clicks made %d sessions", len(sessions))
		}
		for id := range sessions {
			done.SessionID = id
		}
		turns, err := w.store.Turns(t.Context(), done.SessionID, 0)
		if err != nil || len(turns) != 1 {
			t.Fatal(turns, err)
		}
		done.TurnID = turns[0].ID
		done.Incident, err = rouse.Incident{}, nil
		if i, err := w.store.Incident(t.Context(), second.ID); err == nil {
			done.Incident = *i
		}
		if err != nil || done.SessionID == s.ID || done.Incident.Status != rouse.IncidentSuperseded {
			t.Fatalf("%+v %v", done, err)
		}
		if fresh, err := w.store.Session(t.Context(), done.SessionID); err != nil || fresh.Title != "the work" || fresh.Directory != s.Directory {
			t.Errorf("%+v %v", fresh, err)
		}
		w.turn(session.Accepted{TurnID: done.TurnID})
		if done, err = w.act(w.incident(done.SessionID).ID, rouse.ActionDismiss, rouse.ModelRef{}); err != nil || done.TurnID != "" || done.Incident.Status != rouse.IncidentResolved {
			t.Errorf("%+v %v", done, err)
		}
	})
}

// An action is done once as long as what came of it is under way. Ended without
// a newer incident (somebody cancelled it), it can be asked for again, and again
// happens once.
func TestActionAfterACancelledOne(t *testing.T) {
	for action, c := range map[string]struct{ failing, model string }{
		rouse.ActionResume:   {"dead", ""}, // interrupted below, and hanging when it is resumed
		rouse.ActionContinue: {"exit", "hang"},
	} {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, t.TempDir(), "boo_1")
				defer func() { w.stop() }()
				s := w.session(session.NewSession{})
				w.prompt(s.ID, c.failing, "do it")
				rest()
				var model rouse.ModelRef
				if c.model != "" {
					model = rouse.ModelRef{Provider: "drill", Model: c.model}
				} else {
					w.stop()
					w = open(t, w.dir, "boo_2")
				}
				i := w.incident(s.ID)
				seen := map[string]bool{}
				for range 3 {
					done, err := w.act(i.ID, action, model)
					if err != nil || seen[done.TurnID] {
						t.Fatalf("%+v %v, seen %v", done, err, seen)
					}
					seen[done.TurnID] = true
					rest()
					again, err := w.act(i.ID, action, model)
					if err != nil || again.TurnID != done.TurnID {
						t.Errorf("twice at once: %+v %v", again, err)
					}
					if err := w.lanes.Abort(t.Context(), s.ID); err != nil {
						t.Fatal(err)
					}
					if turn := w.turn(session.Accepted{TurnID: done.TurnID}); turn.State != rouse.TurnCancelled {
						t.Errorf("%+v", turn)
					}
				}
			})
		})
	}
}

// Who dismisses an incident that a newer one has replaced meanwhile does not
// dismiss the newer one.
func TestDismissIsOfOneIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		defer w.stop()
		s := w.session(session.NewSession{})
		w.turn(w.prompt(s.ID, "exit", "x"))
		first := w.incident(s.ID)
		w.turn(w.prompt(s.ID, "exit", "y"))
		second := w.incident(s.ID)
		if err := w.store.Write(t.Context(), store.Lazy, func(tx *store.Tx) error {
			row, err := tx.Session(s.ID)
			if err != nil {
				return err
			}
			if closed, err := tx.CloseIncident(row, first.ID, rouse.IncidentResolved); err != nil || closed {
				t.Errorf("the older one: closed %v, %v", closed, err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if now := w.incident(s.ID); now.ID != second.ID || now.Status != rouse.IncidentOpen {
			t.Errorf("%+v", now)
		}
		tries := make(chan error)
		for range 5 {
			go func() {
				_, err := w.act(second.ID, rouse.ActionDismiss, rouse.ModelRef{})
				tries <- err
			}()
		}
		done := 0
		for range 5 {
			if err := <-tries; err == nil {
				done++
			} else if rouse.KindOf(err) != rouse.Conflict || !strings.Contains(rouse.SafeMessage(err), "the incident is "+rouse.IncidentResolved) {
				t.Errorf("who came too late: %v", err)
			}
		}
		if done != 1 {
			t.Errorf("dismissed by %d", done)
		}
		if _, err := w.act(second.ID, rouse.ActionDismiss, rouse.ModelRef{}); rouse.KindOf(err) != rouse.Conflict {
			t.Errorf("dismissed twice: %v", err)
		}
	})
}
