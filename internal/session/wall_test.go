package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/routing"
	"rouse/internal/session"
	"rouse/internal/store"
)

// scripted is an engine that answers as a test says and counts what it is
// asked: every call stands for a request to the provider.
type scripted struct {
	mu     sync.Mutex
	asked  []string // texts, in order
	answer func(text string) engine.Outcome
	hold   map[string]chan struct{} // texts that wait
}

func (s *scripted) Open(context.Context, engine.Spec, engine.Sink) (engine.Conversation, error) {
	return &scriptedTalk{s: s, cancel: make(chan struct{}, 1)}, nil
}

func (s *scripted) set(answer func(text string) engine.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// holds makes a text wait for ch; with nil it gives the channel it waits for.
func (s *scripted) holds(text string, ch chan struct{}) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch != nil {
		s.hold[text] = ch
	}
	return s.hold[text]
}

func (s *scripted) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

type scriptedTalk struct {
	s      *scripted
	cancel chan struct{}
}

func (c *scriptedTalk) Prompt(ctx context.Context, p rouse.Prompt) engine.Outcome {
	text := p.Parts[0].Text
	c.s.mu.Lock()
	c.s.asked = append(c.s.asked, text)
	answer, hold := c.s.answer, c.s.hold[text]
	c.s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-c.cancel:
			return engine.Outcome{State: rouse.TurnCancelled}
		case <-ctx.Done():
			return engine.Outcome{State: rouse.TurnCancelled}
		}
	}
	return answer(text)
}
func (c *scriptedTalk) Answer(context.Context, string, rouse.Reply) error { return nil }
func (c *scriptedTalk) Cancel(context.Context) error {
	select {
	case c.cancel <- struct{}{}:
	default:
	}
	return nil
}
func (c *scriptedTalk) Stop(ctx context.Context) error { return c.Cancel(ctx) }
func (c *scriptedTalk) Probe(context.Context) error    { return engine.ErrUnsupported }
func (c *scriptedTalk) Info() engine.Info              { return engine.Info{} }
func (c *scriptedTalk) Close() error                   { return nil }

func fine(string) engine.Outcome {
	return engine.Outcome{State: rouse.TurnCompleted, Finish: "stop", Evidence: "test"}
}

// limited answers with a usage limit.
func limited(class rouse.Class, reset time.Duration) func(string) engine.Outcome {
	return func(string) engine.Outcome {
		f := &rouse.Failure{Class: class, Provider: "acme", Model: "one", LimitName: "5 hour", Message: "5-hour usage limit reached", Source: "provider_http", Status: 429}
		if reset > 0 {
			f.ResetAt, f.ResetSource, f.Confidence = time.Now().Add(reset), "retry_after", "high"
		}
		return engine.Outcome{State: rouse.TurnFailed, Finish: "error", Failure: f}
	}
}

// walled is a world with a gate and a scripted provider.
type walled struct {
	*world
	provider *scripted
	log      *lines
}

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func openWalled(t *testing.T, dir, boot string, provider *scripted) *walled {
	w := &walled{provider: provider, log: &lines{}}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	gateCtx, stopGate := context.WithCancel(context.Background())
	done := make(chan error, 1)
	var gate *routing.Gate
	w.world = openWith(t, dir, boot, func(d *session.Deps) {
		gate = routing.New(d.Store, func() { w.lanes.KickQueued() }, log)
		d.Gate, d.Log = gate, log
		d.Engine = func(string) (engine.Engine, error) { return provider, nil }
	})
	go func() { done <- gate.Serve(gateCtx) }()
	stop := w.stop
	w.stop = func() {
		stopGate()
		if err := <-done; err != nil {
			t.Error("gate:", err)
		}
		stop()
	}
	return w
}

func walledBubble(t *testing.T, fn func(t *testing.T, w *walled)) {
	synctest.Test(t, func(t *testing.T) {
		w := openWalled(t, t.TempDir(), "boo_1", &scripted{answer: fine, hold: map[string]chan struct{}{}})
		defer func() { w.stop() }()
		fn(t, w)
	})
}

// say sends a prompt; how may be "launch" or "force".
func (w *walled) say(sessionID, text, how string) session.Accepted {
	w.t.Helper()
	acc, err := w.lanes.Prompt(w.t.Context(), session.Prompt{SessionID: sessionID, Model: rouse.ModelRef{Provider: "acme", Model: "one"},
		Parts: []rouse.Part{{Kind: rouse.TextPart, Text: text}}, Unattended: how != "", Force: how == "force"})
	if err != nil {
		w.t.Fatal(err)
	}
	return acc
}

func (w *walled) fresh(text, how string) session.Accepted { return w.say(w.session().ID, text, how) }

// wall gives the only wall that stands.
func (w *walled) wall() rouse.Wall {
	w.t.Helper()
	walls, err := w.store.Walls(w.t.Context())
	if err != nil || len(walls) != 1 {
		w.t.Fatalf("walls %+v %v", walls, err)
	}
	return walls[0]
}

// events lists the types that begin with a prefix.
func (w *walled) events(prefix string) (out []string) {
	all, _, err := w.store.Events(w.t.Context(), 0, store.EventFilter{}, 10000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range all {
		if strings.HasPrefix(string(e.Type), prefix) {
			out = append(out, string(e.Type))
		}
	}
	return out
}

func (w *walled) state(acc session.Accepted) rouse.TurnState {
	w.t.Helper()
	rest()
	turn, err := w.store.Turn(w.t.Context(), acc.TurnID)
	if err != nil {
		w.t.Fatal(err)
	}
	return turn.State
}

// One refusal is enough for ten; after the reset exactly one tries, and its
// success lets everybody through.
func TestWallFromRefusalToFall(t *testing.T) {
	walledBubble(t, func(t *testing.T, w *walled) {
		w.provider.set(limited(rouse.ClassQuota, 70*time.Second))
		start := time.Now()
		first := w.session()
		if turn := w.wait(w.say(first.ID, "first", "")); turn.State != rouse.TurnFailed || turn.Failure.Source != "provider_http" {
			t.Fatalf("%+v", turn)
		}
		wall := w.wall()
		if wall.State != rouse.WallIsOpen || wall.Provider != "acme" || wall.Model != "" || wall.ResetAt.Sub(start) < 70*time.Second || wall.ResetAt.Sub(start) > 71*time.Second ||
			wall.Confidence != "high" || wall.Source != "retry_after" || wall.ProbeAt.Before(wall.ResetAt) || wall.ProbeAt.Sub(wall.ResetAt) > 4*time.Second {
			t.Errorf("wall %+v", wall)
		}
		for i := range 10 {
			acc := w.fresh(fmt.Sprint("launch ", i), "launch")
			turn := w.wait(acc)
			if turn.State != rouse.TurnFailed || turn.Failure.Source != rouse.SourceWall || turn.Failure.Class != rouse.ClassQuota || !turn.Failure.ResetAt.Equal(wall.ResetAt) {
				t.Errorf("launch %d: %+v %+v", i, turn.State, turn.Failure)
			}
			entry := w.tail(turn.SessionID)
			part := entry.Parts[len(entry.Parts)-1]
			var meta map[string]any
			if err := json.Unmarshal(part.Metadata, &meta); err != nil || meta["error"] != true || meta["reason"] != "quota" || meta["provider"] != "acme" ||
				!strings.HasPrefix(part.Text, "⚠️ acme: 5 hour usage limit reached") || !strings.Contains(part.Text, "Resets at") || entry.Message.Finish != "error" {
				t.Errorf("message %+v %q %v", entry.Message, part.Text, meta)
			}
			w.nothingOpen(turn.SessionID)
		}
		if asked := w.provider.requests(); len(asked) != 1 {
			t.Errorf("asked %q", asked)
		}
		if n := strings.Count(w.log.String(), "msg=turn.wall "); n != 1 || !strings.Contains(w.log.String(), "provider=acme class=quota reset=2000-01-01T00:01:1") {
			t.Errorf("%d lines turn.wall in\n%s", n, w.log)
		}

		<-time.After(75 * time.Second)
		rest()
		if wall = w.wall(); wall.State != rouse.WallIsHalf {
			t.Errorf("after the reset: %+v", wall)
		}
		w.provider.set(fine)
		w.provider.holds("probe", make(chan struct{}))
		probe := w.fresh("probe", "launch")
		rest()
		if wall = w.wall(); wall.ProbeTurn != probe.TurnID {
			t.Errorf("who tries: %+v", wall)
		}
		for _, how := range []string{"launch", ""} { // while it is tried, others end on it
			if turn := w.wait(w.fresh("too early", how)); turn.Failure == nil || turn.Failure.Source != rouse.SourceWall {
				t.Errorf("%q: %+v", how, turn)
			}
		}
		close(w.provider.holds("probe", nil))
		if turn := w.wait(probe); turn.State != rouse.TurnCompleted {
			t.Errorf("probe %+v", turn)
		}
		if walls, _ := w.store.Walls(t.Context()); len(walls) != 0 {
			t.Errorf("still there: %+v", walls)
		}
		if turn := w.wait(w.fresh("after", "launch")); turn.State != rouse.TurnCompleted {
			t.Errorf("after %+v", turn)
		}
		if got := w.events("wall."); !slices.Equal(got, []string{"wall.opened", "wall.half_open", "wall.closed"}) {
			t.Errorf("events %v", got)
		}
		if asked := w.provider.requests(); !slices.Equal(asked, []string{"first", "probe", "after"}) {
			t.Errorf("asked %q", asked)
		}
	})
}

// A person's prompt is tried although the wall stands, one at a time; success
// before the reset proves nothing about the window.
func TestPersonTriesAWall(t *testing.T) {
	walledBubble(t, func(t *testing.T, w *walled) {
		w.provider.set(limited(rouse.ClassQuota, time.Hour))
		w.wait(w.fresh("first", ""))
		<-time.After(time.Second)
		w.provider.holds("try", make(chan struct{}))
		try := w.fresh("try", "")
		rest()
		for range 3 {
			if turn := w.wait(w.fresh("me too", "")); turn.Failure == nil || turn.Failure.Source != rouse.SourceWall {
				t.Errorf("%+v", turn)
			}
		}
		close(w.provider.holds("try", nil))
		if turn := w.wait(try); turn.Failure == nil || turn.Failure.Source != "provider_http" {
			t.Errorf("%+v", turn.Failure)
		}
		if wall := w.wall(); wall.Refusals != 2 || wall.ProbeTurn != "" {
			t.Errorf("%+v", wall)
		}
		w.provider.set(fine)
		if turn := w.wait(w.fresh("lucky", "")); turn.State != rouse.TurnCompleted {
			t.Errorf("%+v", turn)
		}
		w.wall() // stands until its reset
		if turn := w.wait(w.fresh("forced", "force")); turn.State != rouse.TurnCompleted {
			t.Errorf("%+v", turn)
		}
		if turn := w.wait(w.fresh("launched", "launch")); turn.Failure == nil || turn.Failure.Source != rouse.SourceWall {
			t.Errorf("%+v", turn)
		}
		if asked := w.provider.requests(); !slices.Equal(asked, []string{"first", "try", "lucky", "forced"}) {
			t.Errorf("asked %q", asked)
		}
	})
}

// What waits behind another turn of its session stays queued while the wall
// stands; at the reset one of all tries it, then the others run.
func TestQueueWaitsForTheWall(t *testing.T) {
	walledBubble(t, func(t *testing.T, w *walled) {
		a, b := w.session(), w.session()
		release := make(chan struct{})
		w.provider.holds("a1", release)
		w.provider.holds("b1", release)
		a1, b1 := w.say(a.ID, "a1", ""), w.say(b.ID, "b1", "launch")
		a2, b2 := w.say(a.ID, "a2", ""), w.say(b.ID, "b2", "launch")
		rest()
		w.provider.set(limited(rouse.ClassQuota, 10*time.Minute))
		w.wait(w.fresh("first", ""))
		w.provider.set(fine)
		close(release)
		if one, two := w.wait(a1), w.wait(b1); one.State != rouse.TurnCompleted || two.State != rouse.TurnCompleted {
			t.Errorf("what was under way when the wall was found: %s %s", one.State, two.State)
		}
		// Their ends are no sign that the wall fell: they were begun before it.
		if w.state(a2) != rouse.TurnQueued || w.state(b2) != rouse.TurnQueued || w.wall().State != rouse.WallIsOpen {
			t.Errorf("%s %s", w.state(a2), w.state(b2))
		}
		probe := make(chan struct{})
		w.provider.holds("a2", probe)
		w.provider.holds("b2", probe)
		<-time.After(10*time.Minute + 5*time.Second)
		rest()
		if n := len(w.provider.requests()); n != 4 {
			t.Errorf("asked %q, want one more", w.provider.requests())
		}
		close(probe)
		if one, two := w.wait(a2), w.wait(b2); one.State != rouse.TurnCompleted || two.State != rouse.TurnCompleted {
			t.Errorf("%+v %+v", one, two)
		}
		w.nothingOpen(a.ID)
		w.nothingOpen(b.ID)
	})
}

// Closed by hand, what waits runs at once.
func TestCloseByHand(t *testing.T) {
	walledBubble(t, func(t *testing.T, w *walled) {
		s := w.session()
		w.provider.holds("one", make(chan struct{}))
		w.say(s.ID, "one", "")
		two := w.say(s.ID, "two", "")
		rest()
		w.provider.set(limited(rouse.ClassBilling, 0))
		w.wait(w.fresh("first", ""))
		w.provider.set(fine)
		close(w.provider.holds("one", nil))
		rest()
		<-time.After(24 * time.Hour)
		if w.state(two) != rouse.TurnQueued || w.wall().State != rouse.WallIsOpen || !w.wall().ProbeAt.IsZero() {
			t.Fatalf("%s %+v", w.state(two), w.wall())
		}
		closed, err := w.lanes.CloseWall(t.Context(), w.wall().ID)
		if err != nil || closed.State != rouse.WallIsClosed || closed.ClosedBy != "hand" {
			t.Fatal(closed, err)
		}
		if turn := w.wait(two); turn.State != rouse.TurnCompleted {
			t.Errorf("%+v", turn)
		}
		if again, err := w.lanes.CloseWall(t.Context(), closed.ID); err != nil || again.ClosedAt != closed.ClosedAt {
			t.Errorf("%+v %v", again, err)
		}
		if _, err := w.lanes.CloseWall(t.Context(), "wal_nobody"); rouse.KindOf(err) != rouse.NotFound {
			t.Error(err)
		}
	})
}

// Billing closes by a person's prompt that completes, not by a launched one.
func TestBillingFallsToAPerson(t *testing.T) {
	walledBubble(t, func(t *testing.T, w *walled) {
		w.provider.set(limited(rouse.ClassBilling, 0))
		w.wait(w.fresh("first", "launch"))
		w.provider.set(fine)
		<-time.After(48 * time.Hour)
		if turn := w.wait(w.fresh("launched", "launch")); turn.Failure == nil || turn.Failure.Class != rouse.ClassBilling {
			t.Errorf("%+v", turn)
		}
		if turn := w.wait(w.fresh("paid", "")); turn.State != rouse.TurnCompleted {
			t.Errorf("%+v", turn)
		}
		if walls, _ := w.store.Walls(t.Context()); len(walls) != 0 {
			t.Errorf("%+v", walls)
		}
	})
}

// Where the provider names no reset the time between tries doubles, and no
// reset is shown.
func TestUnknownResetBacksOff(t *testing.T) {
	walledBubble(t, func(t *testing.T, w *walled) {
		w.provider.set(limited(rouse.ClassQuota, 0))
		w.wait(w.fresh("0", "launch"))
		last := time.Duration(0)
		for i := 1; i <= 6; i++ {
			wall := w.wall()
			wait := wall.ProbeAt.Sub(wall.RefusedAt)
			if !wall.ResetAt.IsZero() || wait < last || wait < 5*time.Minute || wait > 66*time.Minute || wall.Refusals != i {
				t.Errorf("try %d: %v after %v, %+v", i, wait, last, wall)
			}
			last = min(wait, time.Hour)
			<-time.After(wait + time.Second)
			if turn := w.wait(w.fresh(fmt.Sprint(i), "launch")); turn.Failure == nil || turn.Failure.Source == rouse.SourceWall {
				t.Errorf("try %d: %+v", i, turn)
			}
		}
		w.provider.set(fine)
		<-time.After(70 * time.Minute)
		if turn := w.wait(w.fresh("done", "launch")); turn.State != rouse.TurnCompleted {
			t.Errorf("%+v", turn)
		}
		if walls, _ := w.store.Walls(t.Context()); len(walls) != 0 {
			t.Errorf("%+v", walls)
		}
	})
}

// A try that is aborted, or whose session is deleted, lets the next one try.
func TestAbandonedTry(t *testing.T) {
	for _, how := range []string{"abort", "delete"} {
		t.Run(how, func(t *testing.T) {
			walledBubble(t, func(t *testing.T, w *walled) {
				w.provider.set(limited(rouse.ClassQuota, time.Minute))
				w.wait(w.fresh("first", ""))
				w.provider.set(fine)
				<-time.After(2 * time.Minute)
				s := w.session()
				w.provider.holds("hangs", make(chan struct{}))
				w.say(s.ID, "hangs", "launch")
				rest()
				if w.wall().ProbeTurn == "" {
					t.Fatalf("%+v", w.wall())
				}
				end := w.lanes.Abort
				if how == "delete" {
					end = w.lanes.Delete
				}
				if err := end(t.Context(), s.ID); err != nil {
					t.Fatal(err)
				}
				if wall := w.wall(); wall.ProbeTurn != "" || wall.State != rouse.WallIsHalf {
					t.Errorf("%+v", wall)
				}
				if turn := w.wait(w.fresh("next", "launch")); turn.State != rouse.TurnCompleted {
					t.Errorf("%+v", turn)
				}
			})
		})
	}
}

// A wall and what waits for it survive a restart; a try that the restart cut
// off may be made again.
func TestWallSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, provider := t.TempDir(), &scripted{answer: fine, hold: map[string]chan struct{}{}}
		w := openWalled(t, dir, "boo_1", provider)
		s := w.session()
		provider.holds("one", make(chan struct{}))
		w.say(s.ID, "one", "")
		two := w.say(s.ID, "two", "")
		rest()
		provider.set(limited(rouse.ClassQuota, time.Hour))
		w.wait(w.fresh("first", ""))
		provider.holds("try", make(chan struct{}))
		w.fresh("try", "")
		rest()
		before := w.wall()
		if before.ProbeTurn == "" {
			t.Fatalf("%+v", before)
		}
		w.stop()
		provider.set(fine)
		w = openWalled(t, dir, "boo_2", provider)
		defer func() { w.stop() }()
		if w.state(two) != rouse.TurnQueued {
			t.Errorf("it did not wait: %s", w.state(two))
		}
		after := w.wall()
		if after.ID != before.ID || !after.ResetAt.Equal(before.ResetAt) || after.ProbeTurn != "" {
			t.Errorf("%+v, was %+v", after, before)
		}
		<-time.After(61 * time.Minute)
		if turn := w.wait(two); turn.State != rouse.TurnCompleted {
			t.Errorf("%+v", turn)
		}
	})
}

// A failed or interrupted turn opens an incident, a newer one supersedes it, a
// completed turn resolves it; a cancelled turn is none.
func TestIncidents(t *testing.T) {
	walledBubble(t, func(t *testing.T, w *walled) {
		s := w.session()
		w.provider.set(func(string) engine.Outcome {
			return engine.Outcome{State: rouse.TurnFailed, Finish: "error", Failure: &rouse.Failure{Class: rouse.ClassAuth, Provider: "acme", Model: "one", Message: "no", Source: "provider_http"}}
		})
		one := w.wait(w.say(s.ID, "one", ""))
		w.wait(w.say(s.ID, "two", ""))
		w.provider.holds("three", make(chan struct{}))
		w.say(s.ID, "three", "")
		rest()
		if err := w.lanes.Abort(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		list, err := w.store.Incidents(t.Context(), store.IncidentFilter{Session: s.ID})
		if err != nil || len(list) != 2 || list[0].Status != rouse.IncidentOpen || list[1].Status != rouse.IncidentSuperseded {
			t.Fatalf("%+v %v", list, err)
		}
		if i := list[1]; i.TurnID != one.ID || i.Kind != rouse.CodeAuth || i.Provider != "acme" || i.Message != "no" || i.Source != "provider_http" {
			t.Errorf("%+v", i)
		}
		w.provider.set(fine)
		w.wait(w.say(s.ID, "four", ""))
		if open, err := w.store.Incidents(t.Context(), store.IncidentFilter{Status: rouse.IncidentOpen}); err != nil || len(open) != 0 {
			t.Errorf("%+v %v", open, err)
		}
		if got := w.events("incident."); !slices.Equal(got, []string{"incident.opened", "incident.closed", "incident.opened", "incident.closed"}) {
			t.Errorf("%v", got)
		}
	})
}
