package session_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rouse"
	"rouse/internal/session"
	"rouse/internal/store"
)

// A database that refuses to be written loses nothing: the turn goes on in
// memory, intake is refused, and the end is written once when it works again.
func TestStoreDown(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for SQLite's own patience, 5 s")
	}
	dir := t.TempDir()
	w := open(t, dir, "boo_1")
	defer w.stop()
	s := w.session()
	acc := w.prompt(s.ID, "stream", "x")
	for {
		if v, ok := w.lanes.Vitals(s.ID); ok && v.Counters.TextBytes > 100 {
			break
		}
		<-time.After(time.Millisecond)
	}
	thief, err := sql.Open("sqlite", filepath.Join(dir, "rouse.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	thief.SetMaxOpenConns(1)
	if _, err := thief.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	_, err = w.lanes.Prompt(t.Context(), session.Prompt{SessionID: s.ID, Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "now"}}})
	if rouse.KindOf(err) != rouse.Unavailable || rouse.SafeMessage(err) == "" {
		t.Errorf("intake while the database is locked: %v", err)
	}
	for { // the stream has ended in memory and its end was refused
		if v, ok := w.lanes.Vitals(s.ID); ok && v.StoreDown {
			break
		}
		<-time.After(time.Millisecond)
	}
	if _, err := thief.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if turn := w.wait(acc); turn.State != rouse.TurnCompleted {
		t.Errorf("turn %+v", turn)
	}
	if got := text(w.tail(s.ID)); !strings.HasPrefix(got, "t0 t1 ") || !strings.HasSuffix(got, "t199 ") {
		t.Errorf("text is lost: %d bytes", len(got))
	}
	if n := strings.Count(w.log(s.ID), "turn.settled"); n != 1 {
		t.Errorf("%d settled events", n)
	}
	w.nothingOpen(s.ID)
}

// A disk that is full for a while is told of as long as it is, and logged twice:
// when it began, and when it was over.
func TestStoreDownIsSaidUntilAWriteWorked(t *testing.T) {
	for _, mode := range []string{"hang", "stream"} { // nothing to write but the end; text all the time
		t.Run(mode, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := w.session()
				acc := w.prompt(s.ID, mode, "x")
				rest()
				w.full.Store(true)
				gone := make(chan error, 1)
				go func() { gone <- w.lanes.Abort(t.Context(), s.ID) }()
				rest()
				for range 70 { // virtual, 7 s: many tries
					<-time.After(100 * time.Millisecond)
					if v, ok := w.lanes.Vitals(s.ID); !ok || !v.StoreDown {
						t.Fatal("the lane does not say that it cannot write")
					}
				}
				w.full.Store(false)
				if err := <-gone; err != nil {
					t.Errorf("abort: %v", err)
				}
				if turn := w.wait(acc); turn.State != rouse.TurnCancelled {
					t.Errorf("turn %s", turn.State)
				}
				for _, message := range []string{"session.store_down", "session.store_up", "store.commit", "store.works"} {
					if n := strings.Count(w.said.String(), "msg="+message); n != 1 {
						t.Errorf("%s is logged %d times", message, n)
					}
				}
			})
		})
	}
}

// rename renames a table behind the store's back: whatever needs it fails.
func (w *world) rename(from, to string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", w.store.Path())
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("ALTER TABLE " + from + " RENAME TO " + to); err != nil {
		w.t.Fatal(err)
	}
}

// What a dispatch cannot read leaves its prompt queued, for the next try.
func TestDispatchCannotRead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		w.rename("grants", "gone")
		acc := w.prompt(s.ID, "echo", "x")
		rest()
		if turn, err := w.store.Turn(t.Context(), acc.TurnID); err != nil || turn.State != rouse.TurnQueued {
			t.Errorf("%+v %v", turn, err)
		}
		w.rename("gone", "grants")
		if turn := w.wait(acc); turn.State != rouse.TurnCompleted {
			t.Errorf("%+v", turn)
		}
		w.nothingOpen(s.ID)
	})
}

// An answer that could not be stored is not given later: the next one counts.
func TestAnswerRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		acc := w.prompt(s.ID, "permission", "x")
		rest()
		open, err := w.store.Requests(t.Context(), s.ID, rouse.ForPermission)
		if err != nil || len(open) != 1 {
			t.Fatal(open, err)
		}
		answer := func(verb string) error {
			return w.lanes.Answer(t.Context(), open[0].ID, rouse.ForPermission, rouse.Reply{Verb: verb})
		}
		w.rename("grants", "gone")
		for range 2 { // while it is not known that the database fails, and then
			if err := answer(rouse.ReplyAlways); err == nil || rouse.KindOf(err) == rouse.NotFound {
				t.Errorf("an answer that was not stored: %v", err)
			}
		}
		w.rename("gone", "grants")
		<-time.After(2 * time.Second) // virtual
		if row, err := w.store.Session(t.Context(), s.ID); err != nil || row.WaitingFor != rouse.ForPermission {
			t.Errorf("nobody is waited for any more: %+v %v", row, err)
		}
		if err := answer(rouse.ReplyReject); err != nil {
			t.Fatal(err)
		}
		w.wait(acc)
		if got := text(w.tail(s.ID)); got != "answered: reject" {
			t.Error(got)
		}
		w.nothingOpen(s.ID)
	})
}

// Running text that could not be kept for a while has no hole after a crash.
func TestFlushRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		s := w.session()
		running := w.prompt(s.ID, "stream", "x")
		<-time.After(1200 * time.Millisecond) // virtual: one flush before, one while it fails, one after
		w.rename("chunks", "gone")
		<-time.After(time.Second)
		w.rename("gone", "chunks")
		<-time.After(1500 * time.Millisecond)
		w = w.killed("boo_2")
		defer w.stop()
		if turn := w.wait(running); turn.State != rouse.TurnInterrupted {
			t.Errorf("running turn: %s", turn.State)
		}
		var whole strings.Builder
		for i := range 200 {
			fmt.Fprintf(&whole, "t%d ", i)
		}
		got := text(w.tail(s.ID))
		if !strings.HasPrefix(whole.String(), got) || !strings.Contains(got, "t120 ") {
			t.Errorf("what is left of the text: %q", got)
		}
	})
}

// Where nobody is there to answer, what asks is rejected and the turn goes on.
func TestUnattended(t *testing.T) {
	for _, mode := range []string{"permission", "question"} {
		t.Run(mode, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := w.session()
				acc, err := w.lanes.Prompt(t.Context(), session.Prompt{SessionID: s.ID, Unattended: true, Model: rouse.ModelRef{Provider: "drill", Model: mode},
					Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "x"}}})
				if err != nil {
					t.Fatal(err)
				}
				w.wait(acc)
				if got := text(w.tail(s.ID)); !strings.Contains(got, "answered: reject") {
					t.Error(got)
				}
				if strings.Contains(w.log(s.ID), "request.asked") {
					t.Error("somebody was asked")
				}
				w.nothingOpen(s.ID)
			})
		})
	}
}

// While turns are held nothing starts; what came is there after the restart.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		w := open(t, dir, "boo_1")
		s, other := w.session(), w.session()
		running := w.prompt(s.ID, "stream", "x")
		rest()
		if n := w.lanes.Hold(); n != 1 {
			t.Errorf("%d running", n)
		}
		queued, idle := w.prompt(s.ID, "echo", "y"), w.prompt(other.ID, "echo", "z")
		if queued.Intake != rouse.Held || idle.Intake != rouse.Held {
			t.Errorf("intake %s %s", queued.Intake, idle.Intake)
		}
		if err := w.lanes.Quiet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if turn := w.wait(running); turn.State != rouse.TurnCompleted {
			t.Errorf("the running turn: %s", turn.State)
		}
		for _, acc := range []session.Accepted{queued, idle} {
			if turn, err := w.store.Turn(t.Context(), acc.TurnID); err != nil || turn.State != rouse.TurnQueued {
				t.Errorf("%+v %v", turn, err)
			}
		}
		w.stop()
		w = open(t, dir, "boo_2")
		defer w.stop()
		w.wait(queued)
		w.wait(idle)
		w.nothingOpen(s.ID)
		w.nothingOpen(other.ID)
	})
}

// At most MaxRunning turns run at once, and all of them run in the end.
func TestRunningBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openWith(t, t.TempDir(), "boo_1", func(d *session.Deps) { d.MaxRunning = 2 })
		defer w.stop()
		var accs []session.Accepted
		for range 5 {
			accs = append(accs, w.prompt(w.session().ID, "stream", "x")) // 4 s each
		}
		start := time.Now()
		rest()
		if n := w.lanes.Running(); n != 2 {
			t.Errorf("%d run at once", n)
		}
		for _, acc := range accs {
			w.wait(acc)
		}
		if took := time.Since(start); took < 11900*time.Millisecond || took > 13*time.Second {
			t.Errorf("five turns of 4 s, two at once, took %v", took)
		}
	})
}

// A queue has an end, and says so.
func TestQueueBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openWith(t, t.TempDir(), "boo_1", func(d *session.Deps) { d.MaxQueued = 2 })
		defer w.stop()
		s := w.session()
		w.prompt(s.ID, "hang", "x")
		rest()
		w.prompt(s.ID, "echo", "1")
		w.prompt(s.ID, "echo", "2")
		_, err := w.lanes.Prompt(t.Context(), session.Prompt{SessionID: s.ID, Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "3"}}})
		if rouse.KindOf(err) != rouse.Conflict || !strings.Contains(rouse.SafeMessage(err), "full") {
			t.Errorf("one too many: %v", err)
		}
		if page, err := w.store.Messages(t.Context(), store.MessageQuery{SessionID: s.ID}); err != nil || len(page.Entries) != 4 {
			t.Errorf("%d entries %v", len(page.Entries), err)
		}
		if err := w.lanes.Abort(t.Context(), s.ID); err != nil {
			t.Error(err)
		}
	})
}
