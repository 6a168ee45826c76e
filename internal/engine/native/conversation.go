package native

import (
	"context"
	"sync"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/proc"
)

// The causes for which a turn ends early.
var (
	errCancelled = rouse.Errorf(rouse.Conflict, "native: cancel", "the turn was cancelled")
	errStopped   = rouse.Errorf(rouse.Conflict, "native: stop", "the turn was stopped")
	errClosed    = rouse.Errorf(rouse.Unavailable, "native: close", "the conversation was closed")
)

// conversation is one session's engine side. Turns run one at a time on the
// caller's goroutine; titles may outlive their turn and end with Close.
type conversation struct {
	deps *Deps
	spec engine.Spec
	sink engine.Sink
	ctx  context.Context // ends with Close
	end  context.CancelCauseFunc
	wg   sync.WaitGroup // turn and title

	mu      sync.Mutex
	closed  bool
	stop    context.CancelCauseFunc // of the running turn; nil when none runs
	asks    map[string]*ask
	granted []rouse.PermissionRule // "always", given in this conversation
	titled  bool
	ran     bool                 // a script was run: it may have left processes
	seen    map[string]fileStamp // files as the model last saw them
	rules   instructions         // AGENTS.md, cached
}

var _ engine.Conversation = (*conversation)(nil)

// Prompt runs one turn.
func (c *conversation) Prompt(ctx context.Context, p rouse.Prompt) engine.Outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if out, ok := c.enter(cancel); !ok {
		return out
	}
	defer c.leave()
	t := &turn{c: c, ctx: ctx, p: p, open: map[string]bool{}}
	out := t.run()
	out.OpenTools = t.openTools()
	out.OpenRequests = c.dropAsks()
	return out
}

// enter claims the conversation for a turn.
func (c *conversation) enter(cancel context.CancelCauseFunc) (engine.Outcome, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return engine.Outcome{State: rouse.TurnCancelled, Evidence: "the conversation is closed"}, false
	case c.stop != nil:
		return engine.Outcome{State: rouse.TurnFailed, Finish: "error", Evidence: "a turn is running", Failure: &rouse.Failure{
			Class: rouse.ClassNone, Code: rouse.CodeAgent, Message: "the conversation answers one prompt at a time", Source: "rouse"}}, false
	}
	c.stop = cancel
	c.wg.Add(1)
	return engine.Outcome{}, true
}

func (c *conversation) leave() {
	c.mu.Lock()
	c.stop = nil
	c.mu.Unlock()
	c.wg.Done()
}

// Cancel ends the running turn: the model call and the tools get the end of
// their context.
func (c *conversation) Cancel(context.Context) error { c.interrupt(errCancelled); return nil }

// Stop does the same; a model call needs no more force.
func (c *conversation) Stop(context.Context) error { c.interrupt(errStopped); return nil }

func (c *conversation) interrupt(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop(cause)
	}
}

// Probe has nobody to ask: the loop is in this process.
func (c *conversation) Probe(context.Context) error { return engine.ErrUnsupported }

// Info says that there is no process and that the model is the asked one.
func (c *conversation) Info() engine.Info {
	return engine.Info{EngineSession: c.spec.Session.ID, ModelConfirmed: "true", Diagnostics: "unsupported"}
}

// Close ends what runs, waits for it, and ends the processes that the session's
// tools left behind.
func (c *conversation) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.wg.Wait()
		return nil
	}
	c.closed = true
	if c.stop != nil {
		c.stop(errClosed)
	}
	c.mu.Unlock()
	c.end(errClosed)
	c.wg.Wait()
	if id := c.spec.Session.ID; id != "" && c.ran {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		proc.Sweep(ctx, sessionVariable+"="+id)
	}
	return nil
}

// sessionVariable tells a tool's process which session it belongs to.
const sessionVariable = "ROUSE_SESSION"

// send reports an update; none follows Close.
func (c *conversation) send(ctx context.Context, u engine.Update) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if !closed {
		c.sink.Update(ctx, u)
	}
}
