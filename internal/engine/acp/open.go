package acp

import (
	"context"
	"errors"
	"slices"

	"rouse"
	"rouse/internal/engine/acp/wire"
)

// Connect makes sure that there is a process with the session open in it. Prompt
// does so by itself; who wants to see them apart calls it first.
func (c *Conversation) Connect(ctx context.Context) error {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.mu.Lock()
	h, closed := c.h, c.closed
	c.mu.Unlock()
	if closed {
		return errClosed
	}
	if h != nil {
		if h.usable() {
			return nil
		}
		c.mu.Lock()
		c.h = nil
		c.mu.Unlock()
		c.leave(h)
	}
	h, err := c.e.attach(ctx, &c.spec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.e.opt.Start, errSilent)
	defer cancel()
	id, s, err := c.openSession(ctx, h)
	if err == nil {
		err = c.enterMode(ctx, h, id, s)
	}
	if err != nil {
		err = c.launchFailed(h, err)
		c.leave(h)
		return err
	}
	c.mu.Lock()
	c.id = id
	if closed = c.closed; !closed {
		c.h = h
	}
	c.mu.Unlock()
	if closed {
		c.leave(h)
		return errClosed
	}
	return nil
}

// leave gives a process back that is of no use any more, or not to c.
func (c *Conversation) leave(h *host) {
	h.forget(c)
	c.e.detach(h)
}

var errClosed = rouse.Errorf(rouse.Unavailable, "acp: open", "the conversation is closed")

// launchFailed ends a process whose session could not be opened, unless others
// use it, and says why.
func (c *Conversation) launchFailed(h *host, err error) error {
	if !h.alive() || errors.Is(err, errGone) {
		<-h.gone
		return c.e.launchError("exited before its session was open ("+h.reason()+")", h.lastWords(), err)
	}
	if re, ok := refused(err); ok {
		return c.e.refusedError("a session", re)
	}
	if errors.Is(err, errSilent) || errors.Is(err, context.DeadlineExceeded) {
		return c.e.launchError("did not open a session in time ("+c.e.opt.Start.String()+")", h.lastWords(), err)
	}
	return c.e.launchError("could not open a session", "", err)
}

// openSession opens the session that the conversation had, by resume or load,
// or a new one. An agent that has forgotten it gets a new one, and that is
// said.
func (c *Conversation) openSession(ctx context.Context, h *host) (id string, s wire.Session, err error) {
	c.mu.Lock()
	resume := orElse(c.id, c.spec.Resume)
	if resume == "" && c.lost == "" && c.spec.Session.Messages > 1 {
		c.lost = "its earlier turns were held without you, in another session or with another agent, or were undone"
	}
	c.mu.Unlock()
	caps := h.hello.Capabilities
	if resume != "" {
		reason := "you cannot resume sessions"
		if bool(caps.Session.Resume) || caps.LoadSession {
			s, err = c.reopen(ctx, h, resume, bool(caps.Session.Resume))
			if err == nil {
				return resume, s, nil
			}
			if _, ok := refused(err); !ok {
				return "", s, err
			}
			reason = "you do not know the earlier one any more"
		}
		c.e.opt.Log.Warn("acp.resume", "agent", c.e.agent.Name, "session", c.spec.Session.ID, "reason", reason)
		c.mu.Lock()
		c.lost = reason
		c.mu.Unlock()
	}
	return c.openNew(ctx, h)
}

// openNew opens a session that knows nothing.
func (c *Conversation) openNew(ctx context.Context, h *host) (id string, s wire.Session, err error) {
	var fresh wire.Session
	var broken error
	_, err = h.conn.callThen(ctx, wire.MethodNew, func(n int64) []byte { return wire.NewSession(n, c.spec.Directory, nil) },
		func(m *wire.Message) {
			if fresh, broken = wire.Decode[wire.Session](m.Result); fresh.SessionID != "" {
				h.join(fresh.SessionID, c)
				c.adopt(fresh)
			}
		})
	switch {
	case err != nil:
		return "", s, err
	case broken == nil && fresh.SessionID == "":
		broken = rouse.Errorf(rouse.Upstream, "acp: session/new", "the agent named no session")
	}
	return fresh.SessionID, fresh, broken
}

// reopen resumes a session, or loads it, in which case its history comes first
// and is nobody's progress.
func (c *Conversation) reopen(ctx context.Context, h *host, id string, resume bool) (s wire.Session, err error) {
	c.mu.Lock()
	c.history = true
	c.mu.Unlock()
	h.join(id, c)
	method := wire.MethodLoad
	build := func(n int64) []byte { return wire.LoadSession(n, id, c.spec.Directory, nil) }
	if resume {
		method = wire.MethodResume
		build = func(n int64) []byte { return wire.ResumeSession(n, id, c.spec.Directory, nil) }
	}
	var known wire.Session
	var broken error
	_, err = h.conn.callThen(ctx, method, build, func(m *wire.Message) {
		known, broken = wire.Decode[wire.Session](m.Result)
		c.adopt(known)
	})
	if err != nil {
		c.mu.Lock()
		c.history = false
		c.mu.Unlock()
		h.forget(c)
		return s, err
	}
	return known, broken
}

// adopt takes what an agent says of the session that it has just opened; what
// it tells from now on is no history.
func (c *Conversation) adopt(s wire.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.history = s, false
	c.model, c.said = currentModel(s), ""
	c.used.Tokens, c.counted = rouse.Tokens{}, wire.Usage{} // who counts a session counts it from zero again
}

// enterMode chooses the mode in which the agent asks before it acts, where it
// starts in another and offers that one.
func (c *Conversation) enterMode(ctx context.Context, h *host, id string, s wire.Session) error {
	want := c.e.agent.Mode
	if want == "" || s.Modes == nil || s.Modes.Current == want ||
		!slices.ContainsFunc(s.Modes.Available, func(m wire.Mode) bool { return m.ID == want }) {
		return nil
	}
	_, err := h.conn.call(ctx, wire.MethodSetMode, func(n int64) []byte { return wire.SetMode(n, id, want) })
	if _, ok := refused(err); ok {
		c.e.opt.Log.Warn("acp.mode", "agent", c.e.agent.Name, "mode", want, "refused", true)
		return nil
	}
	return err
}
