package watch_test

import (
	"testing"
	"time"
)

// Every end is told as a verdict with it, however short the turn was; one that
// says the same as the last is not told again.
func TestVerdictAfterShortTurns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, _ := w.start("hang", "x")
		pass(20 * time.Second)
		w.prompt(id, "echo", "queued")
		if err := w.lanes.Abort(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		pass(16 * time.Second)
		w.wait(w.prompt(id, "echo", "once more"))
		pass(16 * time.Second)
		w.wait(w.prompt(id, "exit", "x"))
		pass(16 * time.Second)
		w.expect(id, `
g1 working
g1 cancel requested
g1 settled cancelled
g1 settled:cancelled
g2 settled completed
g2 settled:completed
g3 settled completed
g4 settled failed
g4 settled:failed
`)
	})
}

// A session whose wall was closed does not wait for it any more, and that is
// told.
func TestVerdictWhenTheWallGoes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, acc := w.start("fail", "x")
		w.wait(acc)
		pass(16 * time.Second)
		walls, err := w.store.Walls(t.Context())
		if err != nil || len(walls) != 1 {
			t.Fatal(walls, err)
		}
		if _, err := w.lanes.CloseWall(t.Context(), walls[0].ID); err != nil {
			t.Fatal(err)
		}
		pass(61 * time.Second)
		w.expect(id, "g1 settled failed\ng1 waiting_quota\ng1 settled:failed\n")
	})
}
