package session_test

import (
	"testing"

	"rouse"
	"rouse/internal/session"
)

// TestResumeIsTheSessionsOwn: the engine's id of a session is kept with it; a
// fork has none, and neither has a session whose transcript was changed under
// the engine, until the engine gives it another.
func TestResumeIsTheSessionsOwn(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *world, string, session.Accepted){
		"revert": func(t *testing.T, w *world, id string, last session.Accepted) {
			if _, err := w.lanes.Revert(t.Context(), id, last.MessageID, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := w.lanes.Prompt(t.Context(), session.Prompt{SessionID: id, NoReply: true}); err != nil {
				t.Fatal(err)
			}
		},
		"a message removed": func(t *testing.T, w *world, id string, last session.Accepted) {
			if err := w.lanes.RemoveMessage(t.Context(), id, last.MessageID); err != nil {
				t.Fatal(err)
			}
		},
		"a part removed": func(t *testing.T, w *world, id string, last session.Accepted) {
			p := w.tail(id).Parts
			if err := w.lanes.RemovePart(t.Context(), id, p[len(p)-1].MessageID, p[len(p)-1].ID); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := w.session()
				w.wait(w.prompt(s.ID, "echo", "one"))
				last := w.prompt(s.ID, "echo", "two")
				w.wait(last)
				resume := func(id string) string {
					row, err := w.store.Session(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					return row.Resume[row.Engine]
				}
				if got := resume(s.ID); got != "drill" {
					t.Fatalf("after a turn it is %q", got)
				}
				f, err := w.lanes.Fork(t.Context(), s.ID, "")
				if err != nil {
					t.Fatal(err)
				}
				if got := resume(f.ID); got != "" {
					t.Errorf("a fork has %q", got)
				}
				change(t, w, s.ID, last)
				if got := resume(s.ID); got != "" {
					t.Errorf("it is still %q", got)
				}
				w.wait(w.prompt(s.ID, "echo", "three"))
				if got := resume(s.ID); got != "drill" {
					t.Errorf("after another turn it is %q", got)
				}
			})
		})
	}
}

// TestResumeIsTheTurnsEngines: the engine of a turn is its model's; its id of
// the session is kept under its own name, whatever the session was made for.
func TestResumeIsTheTurnsEngines(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		made := s.Engine
		w.lanes.EngineOf = func(rouse.ModelRef) string { return "other" }
		for range 2 {
			w.wait(w.prompt(s.ID, "echo", "one"))
			row, err := w.store.Session(t.Context(), s.ID)
			if err != nil {
				t.Fatal(err)
			}
			if row.Engine != "other" || row.Resume["other"] != "drill" || made != "other" && row.Resume[made] != "" {
				t.Fatalf("made for %q, now %q with %v", made, row.Engine, row.Resume)
			}
		}
	})
}
