package acp

import (
	"context"
	"errors"
	"os"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
)

// nobody takes no updates.
type nobody struct{}

func (nobody) Update(context.Context, engine.Update) {}

// Report starts the agent, opens a session in an empty folder and ends it
// again. It asks no model. What failed is in the report's Problem.
func (e *Engine) Report(ctx context.Context) (rouse.ProgramReport, error) {
	began := time.Now()
	r := rouse.ProgramReport{Authenticated: "unknown", Diagnostics: "unsupported", Models: []string{}, Modes: []string{}, At: began.UTC()}
	dir, err := os.MkdirTemp("", "rouse-agent-*")
	if err != nil {
		return r, &rouse.Error{Kind: rouse.Internal, Op: "acp: report", Msg: "no temporary folder could be made", Err: err}
	}
	defer os.RemoveAll(dir)
	h, err := e.start(ctx, dir, nil)
	r.StartMS = time.Since(began).Milliseconds()
	if err != nil {
		blame(&r, err)
		return r, ctx.Err()
	}
	defer h.close()
	r.Starts, r.Version, r.Reported = true, diagnostics.Sanitize(h.hello.Agent.Version), diagnostics.Sanitize(h.hello.Agent.Name)
	if h.diagnostics && e.agent.Type == diagnostics.Agent {
		r.Diagnostics = "supported"
	}
	switch caps := h.hello.Capabilities; {
	case bool(caps.Session.Resume):
		r.Resume = "resume"
	case caps.LoadSession:
		r.Resume = "load"
	}
	c := newConversation(e, engine.Spec{Directory: dir}, nobody{})
	defer c.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, e.opt.Start, errSilent)
	defer cancel()
	opening := time.Now()
	_, s, err := c.openSession(ctx, h)
	r.SessionMS = time.Since(opening).Milliseconds()
	if err != nil {
		blame(&r, c.launchFailed(h, err))
		return r, nil
	}
	r.Authenticated, r.Model, r.Memory = "true", currentModel(s), h.p.Memory()
	r.Models = append(r.Models, offeredModels(s)...)
	r.Modes = append(r.Modes, modesOf(s)...)
	return r, nil
}

func modesOf(s wire.Session) (ids []string) {
	if s.Modes != nil {
		for _, m := range s.Modes.Available {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// blame takes what a launch failed of.
func blame(r *rouse.ProgramReport, err error) {
	r.Problem = rouse.SafeMessage(err)
	if failed, ok := errors.AsType[*engine.LaunchError](err); ok {
		r.Problem = failed.Failure.Message
		if failed.Failure.Class == rouse.ClassAuth {
			r.Authenticated = "false"
		}
	}
}
