package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// Prompt asks the agent and waits for the end of the turn. When the judge
// decides while the agent's own prompt stays open, the end is told as a
// terminal Diagnostic at once, and Prompt returns when the agent is free again.
func (c *Conversation) Prompt(ctx context.Context, p rouse.Prompt) engine.Outcome {
	if p.Kind == rouse.TurnShell {
		return c.shell(ctx, p)
	}
	t := &turn{p: p, bell: make(chan struct{}, 1)}
	blocks, err := c.prepare(ctx, t)
	if err != nil {
		return c.notAsked(ctx, err)
	}
	defer c.end(t)
	if _, err = t.h.conn.ask(func(n int64) []byte {
		line := wire.Prompt(n, t.id, blocks...)
		c.opened(t, n, line)
		return line
	}, func(at time.Time, m *wire.Message) { c.answered(t, at, m) }); err != nil {
		if !errors.Is(err, errGone) && !t.h.endsSoon() {
			return c.notAsked(ctx, err)
		}
		<-t.h.gone // it died between two prompts: exited may have come before begin
		c.exitedUnseen(t)
	} else {
		c.goesOn(ctx, t)
	}
	c.await(ctx, t)
	return c.outcome(ctx, t)
}

// prepare gets everything ready that a prompt needs, and makes it the current
// one. A cancel ends that: what was not asked has no answer to wait for.
func (c *Conversation) prepare(ctx context.Context, t *turn) ([]wire.Block, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	c.coming[t] = cancel
	c.mu.Unlock()
	blocks, err := c.ready(ctx, t)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.coming, t)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case c.closed:
		return nil, errClosed
	case err != nil:
		return nil, err
	}
	c.begin(t)
	return blocks, nil
}

// ready connects, chooses the model and gives what is to be said.
func (c *Conversation) ready(ctx context.Context, t *turn) ([]wire.Block, error) {
	if err := c.Connect(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	t.h, t.id = c.h, c.id
	c.mu.Unlock()
	if t.h == nil {
		return nil, errClosed
	}
	if err := c.chooseModel(ctx, t.h, t.p.Model.Model); err != nil {
		return nil, err
	}
	return c.blocks(ctx, t.h, t.p)
}

// begin makes the prompt the current one. The lock is held.
func (c *Conversation) begin(t *turn) {
	t.cost, c.ended = c.used.Cost, nil
	c.window(t, nil)
	c.turns = append(c.turns, t)
}

// opened starts the window of a prompt whose line is about to be written, and
// tells the others of it.
func (c *Conversation) opened(t *turn, n int64, line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.witness(line, t)
	c.window(t, idOf(n))
}

// window begins what counts for a prompt.
func (c *Conversation) window(t *turn, request json.RawMessage) {
	t.began = c.e.opt.Now()
	t.judge = judge.New(judge.Params{Grace: c.e.opt.Grace, Before: c.counted}, c.e.agent.Type, t.id, request, t.began)
}

// goesOn notes that the agent has a prompt, and with it what it had to be told
// of earlier turns, and passes on a cancel that came before that.
func (c *Conversation) goesOn(ctx context.Context, t *turn) {
	c.mu.Lock()
	t.sent, c.lost = true, ""
	late := t.late
	c.mu.Unlock()
	if late {
		_ = c.Cancel(ctx) // refused: the lane's ladder has more rungs
	}
}

// exitedUnseen is the exit of a process that ended before the prompt was
// registered in it.
func (c *Conversation) exitedUnseen(t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !t.ended {
		t.judge.Exit(c.e.opt.Now())
		t.ended, t.exit = true, t.h.reason()
		t.ring()
	}
}

// end forgets the prompt, once all that it brought was taken.
func (c *Conversation) end(t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns = slices.DeleteFunc(c.turns, func(o *turn) bool { return o == t })
	c.last, t.p.Parts = t, nil // what was attached may be large
	c.ended = append(c.ended, t)
	if len(c.turns) == 0 {
		clear(c.tools)
	}
}

// await returns when the agent's prompt is over: answered, its process gone, or
// the conversation closed. It keeps the judge's deadlines.
func (c *Conversation) await(ctx context.Context, t *turn) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	done := ctx.Done()
	for {
		c.mu.Lock()
		over := t.ended || c.closed
		deadline := t.judge.Deadline()
		end := c.announce(t)
		c.mu.Unlock()
		if end != nil {
			c.q.add(*end)
		}
		if over {
			return
		}
		var due <-chan time.Time
		if !deadline.IsZero() {
			timer.Reset(max(0, deadline.Sub(c.e.opt.Now())))
			due = timer.C
		}
		select {
		case <-t.bell:
		case <-due:
			c.mu.Lock()
			t.judge.Tick(c.e.opt.Now())
			c.mu.Unlock()
		case <-done:
			done = nil
			c.mu.Lock()
			t.stopped = true
			c.mu.Unlock()
			c.force(context.WithoutCancel(ctx), t.h)
		}
	}
}

// announce is the end of a turn whose prompt the agent keeps open.
func (c *Conversation) announce(t *turn) *engine.Update {
	v := t.judge.Verdict()
	if t.told || t.ended || v.Outcome == judge.Open || t.stopped {
		return nil
	}
	t.told = true
	f := c.failureOf(t, v)
	if f == nil {
		return nil
	}
	return &engine.Update{Generation: t.p.Generation, At: v.DecidedAt, Body: engine.Diagnostic{Failure: *f, Terminal: true}}
}

// leftovers is how long the updates of a turn that was ended may take to be
// taken; a turn that ended by itself has all the time.
const leftovers = 2 * time.Second

// outcome is what became of the prompt.
func (c *Conversation) outcome(ctx context.Context, t *turn) engine.Outcome {
	c.mu.Lock()
	v := t.judge.Verdict()
	stopped := t.stopped || c.closed
	told := c.tellIgnored(t, c.e.opt.Now())
	withdrawn := c.dropAsks(t)
	failure := c.failureOf(t, v)
	c.mu.Unlock()
	for i := range told {
		c.q.add(told[i])
	}
	c.nameSession(t)
	wait := context.WithoutCancel(ctx)
	if stopped || v.Outcome == judge.Cancelled {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(wait, leftovers)
		defer cancel()
	}
	c.q.flush(wait)
	c.q.drop()
	out := engine.Outcome{Evidence: string(v.Evidence), OpenTools: v.ToolOpen, OpenRequests: withdrawn, Usage: c.usage(t)}
	c.confirmUsed(t.answer, t.p.Model.Model)
	switch {
	case v.Outcome == judge.Completed:
		out.State, out.Finish = rouse.TurnCompleted, finishOf(v)
	case v.Outcome == judge.Cancelled, stopped:
		out.State, out.Finish = rouse.TurnCancelled, "cancelled"
		if stopped {
			out.Evidence = "stopped by force"
		}
	default:
		out.State, out.Finish, out.Failure = rouse.TurnFailed, "error", failure
	}
	return out
}

// nameSession gives the session the first words of its prompt as a title, where
// the agent gives none.
func (c *Conversation) nameSession(t *turn) {
	c.mu.Lock()
	titled := c.titled
	c.titled = true
	c.mu.Unlock()
	if titled {
		return
	}
	for i := range t.p.Parts {
		if p := &t.p.Parts[i]; p.Kind == rouse.TextPart && !p.Synthetic {
			if title := strings.Join(strings.Fields(rouse.Clip(p.Text, 200)), " "); title != "" {
				c.q.add(engine.Update{At: c.e.opt.Now(), Body: engine.TitleSuggested{Title: rouse.Clip(title, 80)}})
				return
			}
		}
	}
}

// notAsked is a prompt that never reached the agent.
func (c *Conversation) notAsked(ctx context.Context, err error) engine.Outcome {
	if ctx.Err() != nil || errors.Is(err, errEnded) || c.isClosed() {
		return engine.Outcome{State: rouse.TurnCancelled, Finish: "cancelled", Evidence: "not asked"}
	}
	if launch, ok := errors.AsType[*engine.LaunchError](err); ok {
		f := launch.Failure
		return failedOutcome(&f, "open failed")
	}
	f := &rouse.Failure{Class: rouse.ClassNone, Code: rouse.CodeAgent, Provider: c.e.agent.Name, Source: sourceProcess}
	switch kind := rouse.KindOf(err); {
	case kind == rouse.Unsupported, kind == rouse.Invalid: // of the prompt itself
		f.Provider, f.Source, f.Message = "", "rouse", rouse.SafeMessage(err)
	case errors.Is(err, errGone):
		f.Code, f.Message = rouse.CodeExited, c.e.agent.Title+" ended before it was asked"
	case kind == rouse.Upstream:
		f.Message = c.e.agent.Title + ": " + rouse.SafeMessage(err)
	default:
		c.e.opt.Log.Warn("acp.prompt", "agent", c.e.agent.Name, "err", err)
		f.Code, f.Message = rouse.CodeLaunch, c.e.agent.Title+" could not be asked"
	}
	return failedOutcome(f, "not asked")
}

func (c *Conversation) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func failedOutcome(f *rouse.Failure, evidence string) engine.Outcome {
	return engine.Outcome{State: rouse.TurnFailed, Finish: "error", Failure: f, Evidence: evidence}
}
