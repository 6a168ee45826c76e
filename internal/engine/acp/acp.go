// Package acp is the engine of agent programs that speak the Agent Client
// Protocol over their standard streams.
//
// A host is one running process: its connection, its stderr, its exit. A
// Conversation is one session in it, and answers for its whole life, whatever
// becomes of the process: one that died is started again and the session is
// resumed. Every prompt has a judge (package judge) that is told all that is
// seen, stamped by whoever read it; what the judge decides is the Outcome. What
// is peculiar to one agent stands in agent_<name>.go.
package acp

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// Options are what all agents of a server share. The zero value works.
type Options struct {
	// Version is told to agents as the client's.
	Version string
	// Env is added to every process: the mark by which a later server finds
	// what a killed one left.
	Env []string
	// Idle is how long a conversation without a prompt keeps its process;
	// default 10 min.
	Idle time.Duration
	// Start bounds initialize and the opening of a session; default 90 s (39 s
	// were seen on a loaded machine).
	Start time.Duration
	// Grace is how long a failed attempt may stay without progress before the
	// turn fails; default 30 s.
	Grace time.Duration
	// Rules are the permission rules of the whole configuration; those of a
	// prompt come after them. Nil is none.
	Rules func() []rouse.PermissionRule
	// Messages gives the newest messages of a session, oldest first: what an
	// agent is told that does not know them. Nil knows none.
	Messages func(ctx context.Context, sessionID string, limit int) ([]rouse.Entry, error)
	// Now stamps what is read; default time.Now. A replay gives recorded times.
	Now func() time.Time
	// Tap hears each line of a process after it was dealt with; nil is nobody.
	Tap func(Tapped)
	Log *slog.Logger

	recorded bool // Now gives recorded times: those of records are not held against it
}

// Tapped is a line that was read and dealt with, or the end of a process. Line
// must not be kept.
type Tapped struct {
	Stderr bool
	Exit   bool
	Line   []byte
}

func (o Options) orDefault() Options {
	o.Version = cmp.Or(o.Version, "dev")
	o.Idle = cmp.Or(o.Idle, 10*time.Minute)
	o.Start = cmp.Or(o.Start, 90*time.Second)
	o.Grace = cmp.Or(o.Grace, 30*time.Second)
	if o.recorded = o.Now != nil; !o.recorded {
		o.Now = time.Now
	}
	if o.Rules == nil {
		o.Rules = func() []rouse.PermissionRule { return nil }
	}
	if o.Messages == nil {
		o.Messages = func(context.Context, string, int) ([]rouse.Entry, error) { return nil, nil }
	}
	if o.Tap == nil {
		o.Tap = func(Tapped) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Engine runs one agent program.
type Engine struct {
	agent Agent
	opt   Options

	starting chan struct{} // 1 slot: held by who starts the shared process

	mu     sync.Mutex
	shared *host // the process of a shared agent; nil when none runs
}

var _ engine.Engine = (*Engine)(nil)

// New makes the engine of an agent. Nothing is started before Open.
func New(agent Agent, opt Options) *Engine {
	return &Engine{agent: agent, opt: opt.orDefault(), starting: make(chan struct{}, 1)}
}

// Open starts the agent and opens or resumes a session in it. An error is a
// *engine.LaunchError: what failed, in words for a person.
func (e *Engine) Open(ctx context.Context, spec engine.Spec, sink engine.Sink) (engine.Conversation, error) {
	c, err := e.OpenConversation(ctx, spec, sink)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// OpenConversation is Open with the concrete type, for who wants to see the
// evidence of a prompt.
func (e *Engine) OpenConversation(ctx context.Context, spec engine.Spec, sink engine.Sink) (*Conversation, error) {
	if info, err := os.Stat(spec.Directory); err != nil || !info.IsDir() {
		// Agents open sessions in folders that are not there (opencode 1.18.33).
		return nil, &engine.LaunchError{Failure: rouse.Failure{Code: rouse.CodeLaunch, Source: sourceProcess,
			Message: "the session's directory does not exist any more"}}
	}
	c := newConversation(e, spec, sink)
	if err := c.Connect(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// attach gives the process for a conversation: a new one, or the shared one.
func (e *Engine) attach(ctx context.Context, spec *engine.Spec) (*host, error) {
	if !e.agent.Shared {
		return e.start(ctx, spec.Directory, spec.Env)
	}
	select { // one start at a time; who comes meanwhile waits for it
	case e.starting <- struct{}{}:
		defer func() { <-e.starting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if h := e.running(); h != nil {
		return h, nil
	}
	h, err := e.start(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	h.users = 1
	e.shared = h
	return h, nil
}

// running is the shared process with one more user; nil when none can be used.
func (e *Engine) running() *host {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shared == nil || !e.shared.usable() {
		return nil
	}
	e.shared.users++
	return e.shared
}

// retire lets a shared process serve only those who have it.
func (e *Engine) retire(h *host) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shared == h {
		e.shared = nil
	}
}

// detach gives a process back; the last user's end is its end.
func (e *Engine) detach(h *host) {
	if e.agent.Shared {
		e.mu.Lock()
		h.users--
		if h.users > 0 {
			e.mu.Unlock()
			return
		}
		if e.shared == h {
			e.shared = nil
		}
		e.mu.Unlock()
	}
	h.close()
}
