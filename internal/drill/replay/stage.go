package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rouse"
	"rouse/internal/drill/trace"
	"rouse/internal/engine"
	"rouse/internal/engine/acp"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// stage is a replay at work: the engine on one side, the players of the
// recording's processes on the other.
type stage struct {
	o   Options
	tr  *trace.Trace
	ctx context.Context
	end context.CancelFunc

	engine  *acp.Engine
	players *players
	clock   atomic.Int64 // recorded time, in nanoseconds
	deeds   sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with each change of what is below
	out     int           // lines of stdout and stderr that were dealt with
	err     int
	exits   int
	convs   map[string]*conv // by the recorded session
	left    []*conv          // whose session another process opened anew
	asked   map[int]*conv    // by prompt
	// connected are the processes in which a session was opened again.
	connected map[int]bool
	failed    error // the first deed that went wrong
}

// conv is one session of the recording.
type conv struct {
	c        *acp.Conversation
	sink     *sink
	outcomes map[uint64]engine.Outcome
}

func newStage(ctx context.Context, o Options, tr *trace.Trace) (*stage, error) {
	s := &stage{o: o, tr: tr, changed: make(chan struct{}), convs: map[string]*conv{}, asked: map[int]*conv{}, connected: map[int]bool{}}
	s.ctx, s.end = context.WithCancel(ctx)
	var err error
	if s.players, err = newPlayers(s.ctx, s); err != nil {
		s.end()
		return nil, err
	}
	agent := agentOf(o, tr)
	agent.Command = append(append([]string{}, o.Command...), "--step", s.players.socket, o.Trace)
	agent.Shared = sessionsOf(tr) > 1
	s.engine = acp.New(agent, acp.Options{Now: func() time.Time { return zero.Add(time.Duration(s.clock.Load())) }, Tap: s.tapped})
	return s, nil
}

// sessionsOf is how many sessions a process of the recording opens at most.
func sessionsOf(tr *trace.Trace) int {
	most, count := 0, map[int]int{}
	for _, e := range tr.Events {
		if e.Kind == trace.Client && e.Message != nil && e.Message.Method == wire.MethodNew {
			count[e.Process]++
			most = max(most, count[e.Process])
		}
	}
	return most
}

func (s *stage) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// tapped counts what the engine has dealt with.
func (s *stage) tapped(t acp.Tapped) {
	s.change(func() {
		switch {
		case t.Exit:
			s.exits++
		case t.Stderr:
			s.err++
		default:
			s.out++
		}
	})
}

// patience bounds each wait for the engine: a replay that hangs says so.
const patience = 20 * time.Second

// until waits for something to hold.
func (s *stage) until(what string, holds func() bool) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		s.mu.Lock()
		done, failed, changed := holds(), s.failed, s.changed
		s.mu.Unlock()
		switch {
		case done:
			return nil
		case failed != nil:
			return failed
		}
		select {
		case <-changed:
		case <-limit.C:
			return rouse.Errorf(rouse.Invalid, op, "The recording cannot be played: no %s.", what)
		case <-s.ctx.Done():
			return rouse.Wrap(op, context.Cause(s.ctx))
		}
	}
}

// do runs a deed of the client beside the walk.
func (s *stage) do(deed func() error) {
	s.deeds.Go(func() {
		err := deed()
		s.change(func() {
			if err != nil && s.failed == nil {
				s.failed = err
			}
		})
	})
}

// open opens a new session of the recording. An earlier one of the same id is
// another session.
func (s *stage) open(session string) {
	s.change(func() {
		if earlier := s.convs[session]; earlier != nil {
			s.left = append(s.left, earlier)
			delete(s.convs, session)
		}
	})
	s.do(func() error {
		sink := &sink{stage: s, ends: map[uint64]*rouse.Failure{}}
		c, err := s.engine.OpenConversation(s.ctx, engine.Spec{Directory: "."}, sink)
		if err != nil {
			return rouse.Errorf(rouse.Invalid, op, "The recorded agent was not opened: %s", err.Error())
		}
		s.change(func() { s.convs[session] = &conv{c: c, sink: sink, outcomes: map[uint64]engine.Outcome{}} })
		return nil
	})
}

// ask sends a prompt of the recording, beside the walk.
func (s *stage) ask(c *conv, prompt int) {
	generation := generation(prompt)
	s.change(func() { s.asked[prompt] = c })
	s.do(func() error {
		out := c.c.Prompt(s.ctx, rouse.Prompt{Generation: generation, TurnID: fmt.Sprint("trn_", generation),
			Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "replayed"}}})
		if _, asked := c.c.Evidence(generation); !asked && s.ctx.Err() == nil && out.Failure != nil {
			return rouse.Errorf(rouse.Invalid, op, "The recorded agent was not asked: %s", out.Failure.Message)
		}
		s.change(func() { c.outcomes[generation] = out })
		return nil
	})
}

// of is the conversation of a session, nil before it is open.
func (s *stage) of(session string) *conv {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.convs[session]
}

// verdict is what is known of the prompt that is told about.
func (s *stage) verdict() (judge.Verdict, bool) {
	s.mu.Lock()
	c := s.asked[s.o.Prompt]
	s.mu.Unlock()
	if c == nil {
		return judge.Verdict{}, false
	}
	return c.c.Evidence(generation(s.o.Prompt))
}

// failure is what a person would be told of the end.
func (s *stage) failure() *rouse.Failure {
	gen := generation(s.o.Prompt)
	s.mu.Lock()
	c := s.asked[s.o.Prompt]
	s.mu.Unlock()
	told := func() *rouse.Failure {
		if out, ok := c.outcomes[gen]; ok {
			return out.Failure
		}
		return c.sink.told(gen)
	}
	_ = s.until("end of the prompt", func() bool { return told() != nil }) // the verdict stands without it
	s.mu.Lock()
	defer s.mu.Unlock()
	return told()
}

// close ends everything.
func (s *stage) close() {
	s.end()
	s.players.close()
	s.deeds.Wait()
	for _, c := range slices.AppendSeq(s.left, maps.Values(s.convs)) {
		_ = c.c.Close() // nothing is left that could fail
	}
	s.players.wait()
}

// sink remembers what ends were told.
type sink struct {
	stage *stage
	mu    sync.Mutex
	ends  map[uint64]*rouse.Failure
}

// Update keeps what the driver needs.
func (k *sink) Update(_ context.Context, u engine.Update) {
	b, ok := u.Body.(engine.Diagnostic)
	if !ok || !b.Terminal {
		return
	}
	k.stage.change(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.ends[u.Generation] = &b.Failure
	})
}

func (k *sink) told(generation uint64) *rouse.Failure {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ends[generation]
}
