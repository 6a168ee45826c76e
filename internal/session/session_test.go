package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/session"
	"rouse/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store and lanes on the drill engine.
type world struct {
	t     *testing.T
	dir   string
	store *store.Store
	feed  *feed.Feed
	lanes *session.Lanes
	stop  func()
	full  atomic.Bool // the disk
	said  lines
}

type anyModel struct{}

func (anyModel) CheckModel(m rouse.ModelRef) error {
	if m.Model == "unusable" {
		return rouse.FieldError("models", "model", "model %s is not usable", m)
	}
	return nil
}
func (anyModel) DefaultModel() rouse.ModelRef {
	return rouse.ModelRef{Provider: "drill", Model: "echo"}
}

type anyAgent struct{}

func (anyAgent) FindAgent(name string) (session.Agent, error) {
	switch name {
	case "", "build", "builder":
		return session.Agent{Name: "builder", Primary: true}, nil
	case "refuse":
		return session.Agent{Name: name, Primary: true}, nil
	case "worker":
		return session.Agent{Name: name}, nil
	}
	return session.Agent{}, rouse.FieldError("agents", "agent", "agent %q is unknown", name)
}

// open starts a world on a database file; boot names the server's life.
func open(t *testing.T, dir, boot string) *world {
	t.Helper()
	return openWith(t, dir, boot, func(*session.Deps) {})
}

func openWith(t *testing.T, dir, boot string, change func(*session.Deps)) *world {
	t.Helper()
	w := &world{t: t, dir: dir}
	var err error
	w.store, err = store.Open(t.Context(), filepath.Join(dir, "rouse.db"), store.Options{Committed: func(e []rouse.Event) { w.feed.Publish(e) },
		Logger: slog.New(slog.NewTextHandler(&w.said, nil)), Fault: func() error {
			if w.full.Load() {
				return errors.New("database or disk is full")
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	w.feed = feed.New(0, w.store.Head(), 0)
	storeCtx, stopStore := context.WithCancel(context.Background())
	storeDone := make(chan error, 1)
	go func() { storeDone <- w.store.Serve(storeCtx) }()
	deps := session.Deps{Store: w.store, Feed: w.feed, Models: anyModel{}, Agents: anyAgent{}, Boot: boot,
		Engine: func(string) (engine.Engine, error) { return drill.Engine{}, nil }, Log: slog.New(slog.NewTextHandler(&w.said, nil))}
	change(&deps)
	w.lanes = session.New(deps)
	if _, err := w.lanes.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stopLanes := context.WithCancel(context.Background())
	lanesDone := make(chan error, 1)
	go func() { lanesDone <- w.lanes.Serve(ctx) }()
	w.stop = func() {
		stopLanes()
		if err := <-lanesDone; err != nil {
			t.Error("lanes:", err)
		}
		stopStore()
		if err := <-storeDone; err != nil {
			t.Error("store:", err)
		}
		if err := w.store.Close(); err != nil {
			t.Error("close:", err)
		}
	}
	return w
}

func (w *world) session() *rouse.Session {
	w.t.Helper()
	s, _, err := w.lanes.Create(w.t.Context(), session.NewSession{Directory: w.dir})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) prompt(id, model, text string) session.Accepted {
	w.t.Helper()
	acc, err := w.lanes.Prompt(w.t.Context(), session.Prompt{SessionID: id, Model: rouse.ModelRef{Provider: "drill", Model: model},
		Parts: []rouse.Part{{Kind: rouse.TextPart, Text: text}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return acc
}

func (w *world) wait(acc session.Accepted) *rouse.Turn {
	w.t.Helper()
	t, err := w.lanes.Wait(w.t.Context(), acc.TurnID)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// log renders the event log of a session as text, one line an event.
func (w *world) log(id string) string {
	w.t.Helper()
	events, _, err := w.store.Events(w.t.Context(), 0, store.EventFilter{Session: id}, 10000)
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	for i, e := range events {
		if i > 0 && e.Seq <= events[i-1].Seq {
			w.t.Errorf("sequence goes back at %d", e.Seq)
		}
		fmt.Fprintf(&b, "%s g%d\n", e.Type, e.Generation)
	}
	return b.String()
}

func (w *world) tail(id string) rouse.Entry {
	w.t.Helper()
	page, err := w.store.Messages(w.t.Context(), store.MessageQuery{SessionID: id, Limit: 1})
	if err != nil || len(page.Entries) != 1 {
		w.t.Fatal("tail:", err, len(page.Entries))
	}
	return page.Entries[0]
}

func text(e rouse.Entry) string {
	var out []string
	for _, p := range e.Parts {
		if p.Kind == rouse.TextPart {
			out = append(out, p.Text)
		}
	}
	return strings.Join(out, "|")
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, fn func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		defer w.stop()
		fn(t, w)
	})
}

func TestOnePrompt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		acc := w.prompt(s.ID, "echo", "hello")
		if acc.Intake != rouse.Immediate || acc.Generation != 1 {
			t.Errorf("accepted %+v", acc)
		}
		turn := w.wait(acc)
		if turn.State != rouse.TurnCompleted || turn.Finish != "stop" {
			t.Errorf("turn %+v", turn)
		}
		e := w.tail(s.ID)
		if text(e) != "hello" || e.Message.Finish != "stop" || e.Message.Completed.IsZero() {
			t.Errorf("tail %q %+v", text(e), e.Message)
		}
		want := `session.created g0
session.updated g1
message.updated g1
part.updated g1
turn.queued g1
turn.running g1
message.updated g1
part.updated g1
part.updated g1
part.updated g1
part.updated g1
message.updated g1
session.updated g1
turn.settled g1
`
		if got := w.log(s.ID); got != want {
			t.Errorf("log:\n%s", got)
		}
		if live := w.feed.Live(s.ID); len(live) != 0 {
			t.Errorf("text still live after the end: %v", live)
		}
	})
}

// Every mode of the drill engine ends as said, with exactly one settled event
// and nothing left open.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		mode  string
		abort bool
		state rouse.TurnState
		class rouse.Class
		tail  string
	}{
		{"echo", false, rouse.TurnCompleted, "", "hi"},
		{"tool", false, rouse.TurnCompleted, "", "Tool done."},
		{"plan", false, rouse.TurnCompleted, "", "Planned."},
		{"garbage", false, rouse.TurnCompleted, "", "still here"},
		{"empty", false, rouse.TurnCompleted, "", ""},
		{"retry", false, rouse.TurnCompleted, "", "half an ans|whole answer"},
		{"fail", false, rouse.TurnFailed, rouse.ClassQuota, "⚠️ drill: 5 hour usage limit reached (5-hour usage limit reached). Resets at 2000-01-01 05:00:00 UTC"},
		{"bare", false, rouse.TurnFailed, rouse.ClassQuota, "⚠️ drill: 5 hour usage limit reached (5-hour usage limit reached). Resets at 2000-01-01 05:00:00 UTC"},
		{"silent", false, rouse.TurnFailed, rouse.ClassNone, "⚠️ drill: the turn failed (the agent ended the turn with an error and gave no reason)"},
		{"exit", false, rouse.TurnFailed, rouse.ClassNone, "one two |⚠️ drill: the turn failed (the agent exited (status 1))"},
		{"diagnostic", false, rouse.TurnFailed, rouse.ClassQuota, "one two |⚠️ drill: 5 hour usage limit reached (5-hour usage limit reached). Resets at 2000-01-01 05:00:00 UTC"},
		{"twofold", false, rouse.TurnFailed, rouse.ClassQuota, "one two |⚠️ drill: 5 hour usage limit reached (5-hour usage limit reached). Resets at 2000-01-01 05:00:00 UTC"},
		{"lateword", false, rouse.TurnFailed, rouse.ClassNone, "⚠️ drill: the turn failed (the agent ended the turn with an error and gave no reason)"},
		{"lateexit", false, rouse.TurnCompleted, "", "hi"},
		{"ignored", false, rouse.TurnCompleted, "", "still here"},
		{"retries", false, rouse.TurnCompleted, "", "whole answer"},
		{"withdrawn", false, rouse.TurnCompleted, "", "never mind"},
		{"slowopen", false, rouse.TurnCompleted, "", "hi"},
		{"unknown-mode", false, rouse.TurnFailed, rouse.ClassModel, "⚠️ drill: the model is not available (the drill engine has no mode unknown-mode)"},
		{"hang", true, rouse.TurnCancelled, "", "one two "},
		{"mute", true, rouse.TurnCancelled, "", ""},
		{"deaf", true, rouse.TurnCancelled, "", "one two "},
		{"stubborn", true, rouse.TurnCancelled, "", "one two "},
		{"late", true, rouse.TurnCancelled, "", ""}, // its step had ended: the abort has a message of its own
		{"permission", true, rouse.TurnCancelled, "", ""},
		{"question", true, rouse.TurnCancelled, "", ""},
	} {
		t.Run(c.mode, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := w.session()
				acc := w.prompt(s.ID, c.mode, "hi")
				if c.abort {
					rest()
					start := time.Now()
					if err := w.lanes.Abort(t.Context(), s.ID); err != nil {
						t.Error("abort:", err)
					}
					if took := time.Since(start); took > 11*time.Second {
						t.Errorf("abort took %v", took)
					}
				}
				turn := w.wait(acc)
				if turn.State != c.state {
					t.Errorf("state %s, want %s", turn.State, c.state)
				}
				if turn.Failure != nil && turn.Failure.Class != c.class || turn.Failure == nil && c.class != "" {
					t.Errorf("failure %+v, want class %q", turn.Failure, c.class)
				}
				e := w.tail(s.ID)
				if got := text(e); got != c.tail {
					t.Errorf("tail %q, want %q", got, c.tail)
				}
				if e.Message.Role != rouse.Assistant || e.Message.Completed.IsZero() {
					t.Errorf("last message is not a completed answer: %+v", e.Message)
				}
				if (e.Message.Error == nil) != (c.state == rouse.TurnCompleted) {
					t.Errorf("error %+v", e.Message.Error)
				}
				if n := strings.Count(w.log(s.ID), "turn.settled"); n != 1 {
					t.Errorf("%d settled events", n)
				}
				// The next prompt runs without a restart.
				if next := w.wait(w.prompt(s.ID, "echo", "again")); next.State != rouse.TurnCompleted {
					t.Errorf("next turn %+v", next)
				}
				w.nothingOpen(s.ID)
			})
		})
	}
}

// nothingOpen checks what must hold of an idle session.
func (w *world) nothingOpen(id string) {
	w.t.Helper()
	page, err := w.store.Messages(w.t.Context(), store.MessageQuery{SessionID: id})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range page.Entries {
		if e.Message.Role == rouse.Assistant && e.Message.Completed.IsZero() {
			w.t.Errorf("message %s is not completed", e.Message.ID)
		}
		for _, p := range e.Parts {
			if p.Open {
				w.t.Errorf("part %s (%s) is open", p.ID, p.Kind)
			}
		}
	}
	for _, kind := range []string{rouse.ForPermission, rouse.ForQuestion} {
		if open, err := w.store.Requests(w.t.Context(), id, kind); err != nil || len(open) > 0 {
			w.t.Errorf("open requests %v %v", open, err)
		}
	}
	s, err := w.store.Session(w.t.Context(), id)
	if err != nil || s.State() != rouse.Idle || s.Queued != 0 || s.Messages != len(page.Entries) {
		w.t.Errorf("session %+v %v, %d entries", s, err, len(page.Entries))
	}
}

// Everything that a broken attempt left behind is marked, nothing else is.
func TestBrokenAttemptIsMarked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		w.wait(w.prompt(s.ID, "retry", "x"))
		var got []string
		for _, p := range w.tail(s.ID).Parts {
			if p.Text != "" {
				got = append(got, fmt.Sprintf("%s %q %v", p.Kind, p.Text, p.Broken != nil))
			}
		}
		want := `reasoning "half a thought" true,text "half an ans" true,text "whole answer" false`
		if strings.Join(got, ",") != want {
			t.Errorf("%s", strings.Join(got, ","))
		}
	})
}

func TestQueueRunsInOrderAndSurvivesAbort(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		first := w.prompt(s.ID, "hang", "first")
		second, third := w.prompt(s.ID, "echo", "second"), w.prompt(s.ID, "echo", "third")
		if second.Intake != rouse.Joined || third.Generation != 3 {
			t.Errorf("intake %+v %+v", second, third)
		}
		rest()
		if err := w.lanes.Abort(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		a, b, c := w.wait(first), w.wait(second), w.wait(third)
		if a.State != rouse.TurnCancelled || b.State != rouse.TurnCompleted || c.State != rouse.TurnCompleted || b.Started.After(c.Started) {
			t.Errorf("%v %v %v", a.State, b.State, c.State)
		}
		if n := strings.Count(w.log(s.ID), "turn.settled"); n != 3 {
			t.Errorf("%d settled", n)
		}
		entries, err := w.store.Transcript(t.Context(), s.ID, 3)
		var told []string
		for _, e := range entries {
			told = append(told, text(e))
		}
		if got := strings.Join(told, ","); err != nil || got != "first,one two ,second,second,third,third" {
			t.Errorf("transcript of generation 3: %s %v", got, err)
		}
		w.nothingOpen(s.ID)
	})
}

func TestAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		acc := w.prompt(s.ID, "permission", "x")
		rest()
		row, _ := w.store.Session(t.Context(), s.ID)
		if row.State() != rouse.Waiting || row.WaitingFor != rouse.ForPermission {
			t.Fatalf("session %+v", row)
		}
		open, err := w.store.Requests(t.Context(), s.ID, rouse.ForPermission)
		if err != nil || len(open) != 1 || open[0].MessageID == "" {
			t.Fatalf("requests %+v %v", open, err)
		}
		if err := w.lanes.Answer(t.Context(), open[0].ID, rouse.ForQuestion, rouse.Reply{}); rouse.KindOf(err) != rouse.NotFound {
			t.Errorf("answer of the wrong kind: %v", err)
		}
		if err := w.lanes.Answer(t.Context(), open[0].ID, rouse.ForPermission, rouse.Reply{Verb: rouse.ReplyAlways}); err != nil {
			t.Fatal(err)
		}
		if err := w.lanes.Answer(t.Context(), open[0].ID, rouse.ForPermission, rouse.Reply{Verb: rouse.ReplyOnce}); rouse.KindOf(err) != rouse.NotFound {
			t.Errorf("second answer: %v", err)
		}
		w.wait(acc)
		if got := text(w.tail(s.ID)); got != "answered: always" {
			t.Error(got)
		}
		var grants []rouse.PermissionRule
		err = w.store.Write(t.Context(), store.Lazy, func(tx *store.Tx) (err error) {
			grants, err = tx.Grants(w.dir)
			return err
		})
		if err != nil || !slices.Contains(grants, rouse.PermissionRule{Permission: "bash", Pattern: "echo *", Action: rouse.Allow}) {
			t.Errorf("grants %v %v", grants, err)
		}
		w.nothingOpen(s.ID)
	})
}

func TestPromptPreemptsQuestion(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		acc := w.prompt(s.ID, "question", "x")
		rest()
		next := w.prompt(s.ID, "echo", "instead")
		if next.Intake != rouse.Preempts {
			t.Errorf("intake %s", next.Intake)
		}
		if turn := w.wait(acc); turn.State != rouse.TurnCompleted {
			t.Errorf("turn %+v", turn)
		}
		w.wait(next)
		if got := text(w.tail(s.ID)); got != "instead" {
			t.Error(got)
		}
		w.nothingOpen(s.ID)
	})
}

func TestPauseRefusesAndHolds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		first := w.prompt(s.ID, "stream", "x")
		second := w.prompt(s.ID, "echo", "y")
		rest() // a pause before the first began would hold it too
		if err := w.lanes.Pause(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		_, err := w.lanes.Prompt(t.Context(), session.Prompt{SessionID: s.ID, Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "no"}}})
		if rouse.KindOf(err) != rouse.Conflict {
			t.Errorf("prompt while paused: %v", err)
		}
		if turn := w.wait(first); turn.State != rouse.TurnCompleted {
			t.Errorf("running turn %+v", turn)
		}
		rest()
		if turn, _ := w.store.Turn(t.Context(), second.TurnID); turn.State != rouse.TurnQueued {
			t.Errorf("queued turn ran while paused: %v", turn.State)
		}
		if row, _ := w.store.Session(t.Context(), s.ID); row.State() != rouse.Paused || row.Messages != 3 {
			t.Errorf("session %+v", row)
		}
		if err := w.lanes.Resume(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		w.wait(second)
		w.nothingOpen(s.ID)
	})
}

func TestIdempotency(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		p := session.Prompt{SessionID: s.ID, Key: "k", BodyHash: "h", Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "once"}}}
		a, err := w.lanes.Prompt(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		w.wait(a)
		b, err := w.lanes.Prompt(t.Context(), p)
		if err != nil || !b.Replayed || b.TurnID != a.TurnID || b.MessageID != a.MessageID {
			t.Errorf("replay %+v %v", b, err)
		}
		p.BodyHash = "other"
		if _, err := w.lanes.Prompt(t.Context(), p); rouse.KindOf(err) != rouse.Mismatch {
			t.Errorf("other body: %v", err)
		}
		w.nothingOpen(s.ID)
	})
}

func TestDoorRefusals(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		for _, c := range []struct {
			name  string
			p     session.Prompt
			kind  rouse.Kind
			field string
		}{
			{"session", session.Prompt{SessionID: "ses_nobody"}, rouse.NotFound, ""},
			{"model", session.Prompt{SessionID: s.ID, Model: rouse.ModelRef{Provider: "drill", Model: "unusable"}}, rouse.Invalid, "model"},
			{"agent", session.Prompt{SessionID: s.ID, Agent: "nobody"}, rouse.Invalid, "agent"},
			{"sub-agent", session.Prompt{SessionID: s.ID, Agent: "worker"}, rouse.Invalid, "agent"},
			{"message id", session.Prompt{SessionID: s.ID, MessageID: "nope"}, rouse.Invalid, "messageID"},
			{"delay", session.Prompt{SessionID: s.ID, DelaySec: 5}, rouse.Unsupported, ""},
		} {
			_, err := w.lanes.Prompt(t.Context(), c.p)
			if rouse.KindOf(err) != c.kind || rouse.FieldOf(err) != c.field || rouse.SafeMessage(err) == "" {
				t.Errorf("%s: %v (field %q)", c.name, err, rouse.FieldOf(err))
			}
		}
		if row, _ := w.store.Session(t.Context(), s.ID); row.Messages != 0 || row.Generation != 0 {
			t.Errorf("something was stored: %+v", row)
		}
		twice := session.Prompt{SessionID: s.ID, MessageID: rouse.NewID(rouse.MessagePrefix, time.Now()), BodyHash: "one", NoReply: true}
		if _, err := w.lanes.Prompt(t.Context(), twice); err != nil {
			t.Fatal(err)
		}
		twice.BodyHash = "other"
		_, err := w.lanes.Prompt(t.Context(), twice)
		if rouse.KindOf(err) != rouse.Mismatch || rouse.FieldOf(err) != "messageID" || strings.Contains(rouse.SafeMessage(err), "key") {
			t.Errorf("another prompt under a message's id: %v (field %q)", err, rouse.FieldOf(err))
		}
	})
}

// killed gives the world that a kill at this moment leaves, with a new server.
func (w *world) killed(boot string) *world {
	w.t.Helper()
	left := filepath.Join(w.t.TempDir(), "rouse.db")
	if err := store.Copy(w.t.Context(), w.store.Path(), left); err != nil {
		w.t.Fatal(err)
	}
	w.stop()
	return open(w.t, filepath.Dir(left), boot)
}

// A new life of the server interrupts what the old one left and runs the rest.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		s := w.session()
		running := w.prompt(s.ID, "stream", "x")
		queued := w.prompt(s.ID, "echo", "after")
		<-time.After(2500 * time.Millisecond) // virtual: two flushes
		w = w.killed("boo_2")
		defer w.stop()
		turn := w.wait(running)
		if turn.State != rouse.TurnInterrupted {
			t.Errorf("running turn: %s", turn.State)
		}
		if after := w.wait(queued); after.State != rouse.TurnCompleted {
			t.Errorf("queued turn: %s", after.State)
		}
		entries, err := w.store.Transcript(t.Context(), s.ID, 2)
		if err != nil || len(entries) != 4 {
			t.Fatal(entries, err)
		}
		if got := text(entries[1]); !strings.HasPrefix(got, "t0 t1 ") || !strings.Contains(got, "t90 ") {
			t.Errorf("flushed text is lost: %q", got)
		}
		w.nothingOpen(s.ID)
	})
}

func TestForkRevertDelete(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		one := w.prompt(s.ID, "echo", "one")
		w.wait(one)
		two := w.prompt(s.ID, "echo", "two")
		w.wait(two)
		f, err := w.lanes.Fork(t.Context(), s.ID, two.MessageID)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(w.tail(f.ID)); got != "one" || f.Messages != 2 {
			t.Errorf("fork ends with %q, %d messages", got, f.Messages)
		}
		w.wait(w.prompt(f.ID, "echo", "in the fork"))
		w.nothingOpen(f.ID)
		if _, err := w.lanes.Revert(t.Context(), s.ID, two.MessageID, ""); err != nil {
			t.Fatal(err)
		}
		w.wait(w.prompt(s.ID, "echo", "three"))
		page, _ := w.store.Messages(t.Context(), store.MessageQuery{SessionID: s.ID})
		var all []string
		for _, e := range page.Entries {
			all = append(all, text(e))
		}
		if got := strings.Join(all, ","); got != "one,one,three,three" {
			t.Errorf("after the revert: %s", got)
		}
		w.nothingOpen(s.ID)
		hang := w.prompt(s.ID, "hang", "x")
		rest()
		if err := w.lanes.Delete(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Session(t.Context(), s.ID); rouse.KindOf(err) != rouse.NotFound {
			t.Errorf("deleted session: %v", err)
		}
		if _, err := w.lanes.Wait(t.Context(), hang.TurnID); rouse.KindOf(err) != rouse.NotFound {
			t.Errorf("its turn: %v", err)
		}
	})
}

func TestBurst(t *testing.T) {
	w := open(t, t.TempDir(), "boo_1")
	defer w.stop()
	s := w.session()
	w.wait(w.prompt(s.ID, "burst", "x"))
	got := text(w.tail(s.ID))
	if !strings.HasPrefix(got, "t0 t1 ") || !strings.HasSuffix(got, "t49999 ") || strings.Count(got, " ") != 50_000 {
		t.Errorf("burst lost text: %d pieces", strings.Count(got, " "))
	}
}

func TestCreateOncePerKey(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := session.NewSession{Directory: w.dir, Key: "k", BodyHash: "h"}
		a, _, err := w.lanes.Create(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := w.lanes.Create(t.Context(), n)
		if err != nil || a.ID != b.ID {
			t.Errorf("%v %v %v", a, b, err)
		}
		n.BodyHash = "other"
		if _, _, err := w.lanes.Create(t.Context(), n); rouse.KindOf(err) != rouse.Mismatch {
			t.Errorf("another body: %v", err)
		}
		if page, err := w.store.Sessions(t.Context(), store.SessionFilter{}); err != nil || page.Total != 1 {
			t.Errorf("%+v %v", page, err)
		}
	})
}

// rest waits until the bubble has nothing to do. Wait alone may come back too
// early: SQLite sleeps for microseconds of the bubble's time when it meets a
// lock, and a sleeper counts as blocked.
func rest() {
	synctest.Wait()
	<-time.After(time.Millisecond)
	synctest.Wait()
}
