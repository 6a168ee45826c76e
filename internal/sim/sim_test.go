package sim

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

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
	"late", "fail", "bare", "lateword", "silent", "diagnostic", "twofold", "ignored", "exit", "lateexit", "garbage", "empty",
	"retries", "withdrawn", "slowopen", "quiettool", "pauses", "slowstart", "longretry", "chatter", "freeze", "dead", "never-answers"}

// kinds of steps, by weight.
var kinds = []string{"prompt", "prompt", "prompt", "prompt", "prompt", "noreply", "again", "abort", "abort", "answer", "answer",
	"pause", "resume", "rescue", "act", "act", "fork", "delete", "wait", "wait", "wait", "long", "full", "works", "lease", "restart", "crash", "silence", "silence", "suspend"}

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
	witness  *witness
	ends     []time.Time       // of lives, and of leases
	gone     map[string]bool   // deleted sessions
	promised map[string]string // accepted turn -> session
	unsure   map[string]bool   // keys whose answer was an error: they may count or not
	keys     int
	last     session.Prompt // to send again under its key
	lastTurn string
}

// simulate runs the steps and gives the first thing that is wrong.
func simulate(t *testing.T, ops []op) (problem string) {
	engines := newWitness()
	w, err := start(t.TempDir(), 1, engines)
	if err != nil {
		return err.Error()
	}
	s := &sim{t: t, w: w, witness: engines, gone: map[string]bool{}, promised: map[string]string{}, unsure: map[string]bool{}}
	defer func() {
		if err := s.w.stop(); err != nil && problem == "" {
			problem = "stop: " + err.Error()
		}
		if left := engines.left(func(string) bool { return true }); left != "" && problem == "" {
			problem = "after the last life: " + left
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

// calm lets everything come to its end: the disk works, nothing is paused,
// what hangs is aborted. Nobody is told to go on who was not paused: queued
// prompts run by themselves.
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
			row, err := s.w.store.Session(ctx, id)
			if err == nil && row.Pause {
				err = s.w.lanes.Resume(ctx, id)
			}
			if err := allowed(err); err != nil {
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
