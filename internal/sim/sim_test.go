package sim

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/recovery"
	"rouse/internal/session"
)

// op is one step: what happens, to which session, and how.
type op struct {
	Kind    string
	Session int
	Arg     int
}

func (o op) String() string { return fmt.Sprintf("%s(%d,%d)", o.Kind, o.Session, o.Arg) }

// modes are the drill engine's; some repeat because they are the usual case.
var modes = []string{"echo", "echo", "stream", "tool", "plan", "permission", "question", "retry", "hang", "mute", "deaf", "stubborn",
	"late", "fail", "bare", "silent", "diagnostic", "exit", "garbage", "empty",
	"quiettool", "pauses", "slowstart", "longretry", "chatter", "freeze"}

// kinds of steps, by weight.
var kinds = []string{"prompt", "prompt", "prompt", "prompt", "prompt", "noreply", "again", "abort", "abort", "answer", "answer",
	"pause", "resume", "rescue", "fork", "delete", "wait", "wait", "wait", "long", "full", "works", "lease", "restart", "crash", "silence", "silence", "suspend"}

var steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
	return op{rapid.SampledFrom(kinds).Draw(t, "kind"), rapid.IntRange(0, 3).Draw(t, "session"), rapid.IntRange(0, 999).Draw(t, "arg")}
}), 20, 200)

// TestSimulation draws runs of steps and checks the invariants after each.
// -rapid.seed replays one, -rapid.checks says how many.
func TestSimulation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ops := steps.Draw(rt, "steps")
		problem := bubble(t, ops)
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// bubble runs the steps in virtual time. A deadlock is a finding, with the
// stacks of those who wait.
func bubble(t *testing.T, ops []op) (problem string) {
	defer func() {
		if r := recover(); r != nil {
			stacks := make([]byte, 1<<20)
			problem = fmt.Sprintf("%v\n%s", r, stacks[:runtime.Stack(stacks, true)])
		}
	}()
	synctest.Test(t, func(t *testing.T) { problem = simulate(t, ops) })
	return problem
}

// sim is one run.
type sim struct {
	t        *testing.T
	w        *world
	sessions []string
	gone     map[string]bool   // deleted sessions
	promised map[string]string // accepted turn -> session
	unsure   map[string]bool   // keys whose answer was an error: they may count or not
	keys     int
	last     session.Prompt // to send again under its key
	lastTurn string
}

// simulate runs the steps and gives the first thing that is wrong.
func simulate(t *testing.T, ops []op) (problem string) {
	w, err := start(t.TempDir(), 1)
	if err != nil {
		return err.Error()
	}
	s := &sim{t: t, w: w, gone: map[string]bool{}, promised: map[string]string{}, unsure: map[string]bool{}}
	defer func() {
		if err := s.w.stop(); err != nil && problem == "" {
			problem = "stop: " + err.Error()
		}
	}()
	for range 4 {
		if err := s.create(); err != nil {
			return err.Error()
		}
	}
	for i, o := range ops {
		if err := s.step(o); err != nil {
			return fmt.Sprintf("step %d %v: %v", i, o, err)
		}
	}
	if err := s.calm(); err != nil {
		return "in the end: " + err.Error()
	}
	return s.check()
}

func (s *sim) create() error {
	row, _, err := s.w.lanes.Create(context.Background(), session.NewSession{Directory: os.TempDir()})
	if err == nil {
		s.sessions = append(s.sessions, row.ID)
	}
	return err
}

// step does one thing. Refusals are the product's right; errors that a caller
// must never see are returned.
func (s *sim) step(o op) error {
	ctx := context.Background()
	id := s.sessions[o.Session%len(s.sessions)]
	var err error
	switch o.Kind {
	case "prompt":
		return s.prompt(id, modes[o.Arg%len(modes)], o.Arg%7 == 0)
	case "noreply":
		_, err = s.w.lanes.Prompt(ctx, session.Prompt{SessionID: id, NoReply: true, Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "fyi"}}})
	case "again":
		return s.again()
	case "abort":
		err = s.w.lanes.Abort(ctx, id)
	case "answer":
		err = s.answer(o.Arg)
	case "pause":
		err = s.w.lanes.Pause(ctx, id)
	case "resume":
		err = s.w.lanes.Resume(ctx, id)
	case "rescue":
		_, err = s.w.medic.Rescue(ctx, recovery.Request{SessionID: id, By: recovery.User, Force: true,
			Model: rouse.ModelRef{Provider: "drill", Model: []string{"echo", "tool", "mute", "fail"}[o.Arg%4]}})
	case "fork":
		_, err = s.w.lanes.Fork(ctx, id, "")
	case "delete":
		if o.Arg%4 == 0 {
			return s.remove(id)
		}
	case "wait":
		<-time.After(time.Duration(1+o.Arg*o.Arg/100) * time.Millisecond)
	case "long":
		<-time.After(time.Duration(o.Arg) * time.Second)
	case "silence":
		return s.silence()
	case "suspend":
		s.w.slept.Add(int64(time.Hour))
	case "full":
		s.w.full.Store(true)
	case "works":
		s.w.full.Store(false)
	case "lease":
		return s.loseLease()
	case "restart":
		return s.restart(o.Arg%2 == 0)
	case "crash":
		return s.restart(true)
	}
	return allowed(err)
}

// allowed passes the refusals that a caller may meet.
func allowed(err error) error {
	var spent *recovery.BudgetSpent
	if err == nil || asBudget(err, &spent) {
		return nil
	}
	switch rouse.KindOf(err) {
	case rouse.Conflict, rouse.NotFound, rouse.Unavailable, rouse.Mismatch:
		return nil
	}
	return err
}

func asBudget(err error, into **recovery.BudgetSpent) bool {
	e, ok := err.(*recovery.BudgetSpent)
	*into = e
	return ok
}

func (s *sim) prompt(id, mode string, unattended bool) error {
	s.keys++
	p := session.Prompt{SessionID: id, Key: fmt.Sprintf("k%d", s.keys), BodyHash: mode, Unattended: unattended,
		Model: rouse.ModelRef{Provider: "drill", Model: mode}, Parts: []rouse.Part{{Kind: rouse.TextPart, Text: fmt.Sprintf("prompt %d", s.keys)}}}
	return s.send(p)
}

func (s *sim) send(p session.Prompt) error {
	acc, err := s.w.lanes.Prompt(context.Background(), p)
	s.last, s.lastTurn = p, acc.TurnID
	if err == nil {
		s.promised[acc.TurnID] = p.SessionID
		delete(s.unsure, p.Key)
		return nil
	}
	if rouse.KindOf(err) == rouse.Unavailable {
		s.unsure[p.Key] = true
	}
	return allowed(err)
}

// again sends the last prompt once more under its key: nothing new may come
// of it if it was accepted.
func (s *sim) again() error {
	if s.last.Key == "" {
		return nil
	}
	was, p := s.lastTurn, s.last
	p.Parts = []rouse.Part{{Kind: rouse.TextPart, Text: p.Parts[0].Text}}
	if err := s.send(p); err != nil {
		return err
	}
	if was != "" && s.lastTurn != "" && s.lastTurn != was {
		return fmt.Errorf("one key made two turns: %s and %s", was, s.lastTurn)
	}
	return nil
}

func (s *sim) answer(arg int) error {
	for _, kind := range []string{rouse.ForPermission, rouse.ForQuestion} {
		open, err := s.w.store.Requests(context.Background(), "", kind)
		if err != nil {
			return err
		}
		if len(open) == 0 {
			continue
		}
		verb := []string{rouse.ReplyOnce, rouse.ReplyAlways, rouse.ReplyReject}[arg%3]
		return s.w.lanes.Answer(context.Background(), open[arg%len(open)].ID, kind, rouse.Reply{Verb: verb})
	}
	return nil
}

func (s *sim) remove(id string) error {
	err := s.w.lanes.Delete(context.Background(), id)
	if err != nil {
		return allowed(err)
	}
	s.gone[id] = true
	for i := range s.sessions {
		if s.sessions[i] == id {
			s.sessions = append(s.sessions[:i:i], s.sessions[i+1:]...)
			break
		}
	}
	if len(s.sessions) < 2 {
		s.w.full.Store(false)
		return s.create()
	}
	return nil
}

// restart ends the life, in order or as a kill, and begins the next.
func (s *sim) restart(kill bool) error {
	dir, err := s.w.dir, error(nil)
	if kill {
		dir, err = s.w.crash(s.t)
	} else {
		err = s.w.stop()
	}
	if err != nil {
		return err
	}
	boot := s.w.boot + 1
	w, err := start(dir, boot)
	if err != nil {
		return err
	}
	s.w = w
	return nil
}

// silence lets eight minutes pass and looks whether the watch did its part:
// whoever is silent for so long has a notice, whoever never began has failed.
func (s *sim) silence() error {
	s.w.full.Store(false)
	ctx, began := context.Background(), time.Now()
	<-time.After(8*time.Minute + 30*time.Second)
	for _, id := range s.sessions {
		row, err := s.w.store.Session(ctx, id)
		if err != nil || row.Running == "" {
			continue
		}
		turn, err := s.w.store.Turn(ctx, row.Running)
		if err != nil || turn.State.Settled() || turn.Started.After(began.Add(30*time.Second)) {
			continue
		}
		switch turn.Model.Model {
		case "hang", "deaf", "stubborn", "late", "chatter", "freeze":
			n, err := s.w.store.Notice(ctx, id, turn.Generation)
			if err != nil || n == nil || !n.Visible {
				return fmt.Errorf("turn %s (%s) is silent for more than eight minutes: notice %+v, %v", turn.ID, turn.Model.Model, n, err)
			}
		case "mute":
			return fmt.Errorf("turn %s said nothing for more than eight minutes and still runs", turn.ID)
		}
	}
	return nil
}

// loseLease makes another server believe that this one is dead: it ends the
// running turns under this one's feet.
func (s *sim) loseLease() error {
	s.w.full.Store(false)
	other := session.New(session.Deps{Store: s.w.store, Feed: feed.New(16, 0, 0), Models: models{}, Agents: agents{}, Boot: "boo_other",
		Live: func(string) bool { return false }, Log: slog.New(slog.DiscardHandler),
		Engine: func(string) (engine.Engine, error) { return drill.Engine{}, nil }})
	_, err := other.Recover(context.Background())
	return err
}

// calm lets everything come to its end: the disk works, nothing is paused,
// what hangs is aborted.
func (s *sim) calm() error {
	ctx := context.Background()
	s.w.full.Store(false)
	<-time.After(10 * time.Second) // lanes try a refused write again
	for round := range 200 {
		busy, err := s.w.store.BusySessions(ctx)
		if err != nil {
			return err
		}
		if len(busy) == 0 {
			return nil
		}
		for _, id := range busy {
			if err := allowed(s.w.lanes.Resume(ctx, id)); err != nil {
				return err
			}
		}
		<-time.After(2 * time.Minute) // longer than a rescue's patience, and every drill mode that ends by itself
		if round > 2 {
			for _, id := range busy {
				if err := s.w.lanes.Abort(ctx, id); err != nil {
					return fmt.Errorf("abort: %w", err)
				}
			}
		}
	}
	busy, _ := s.w.store.BusySessions(ctx)
	return fmt.Errorf("still busy: %s", strings.Join(busy, ", "))
}
