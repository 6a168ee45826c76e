package acp

import (
	"context"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/proc"
)

// shell runs a person's own command where the session is; the agent has no part
// in it.
func (c *Conversation) shell(ctx context.Context, p rouse.Prompt) engine.Outcome {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c.mu.Lock()
	c.shellEnd = end
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.shellEnd = nil
		c.mu.Unlock()
	}()
	call := rouse.NewID("call", c.e.opt.Now())
	send := func(b engine.Body) {
		c.q.add(engine.Update{Generation: p.Generation, At: c.e.opt.Now(), Genuine: true, Body: b})
	}
	in := metadata(map[string]string{"command": p.Command})
	send(engine.ToolStarted{CallID: call, Name: "bash", State: rouse.ToolPending})
	send(engine.ToolStarted{CallID: call, Name: "bash", State: rouse.ToolRunning, Input: in, Title: p.Command})
	res, err := proc.Run(ctx, proc.Command{Dir: c.spec.Directory, Shell: p.Command, Env: c.spec.Env, Timeout: time.Hour,
		OnOutput: func(s string) {
			send(engine.ToolProgress{CallID: call, Metadata: metadata(map[string]string{"output": s})})
		}})
	ended := engine.ToolEnded{CallID: call, Title: p.Command, Output: res.Output, Metadata: metadata(map[string]any{"output": res.Output, "exit": res.Exit})}
	if err != nil && ctx.Err() == nil {
		ended.Error = rouse.SafeMessage(err)
	}
	send(ended)
	c.q.flush(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return engine.Outcome{State: rouse.TurnCancelled, Finish: "cancelled", Evidence: "the command was ended"}
	}
	return engine.Outcome{State: rouse.TurnCompleted, Finish: "stop", Evidence: "the command ended"}
}
