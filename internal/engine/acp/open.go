package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"rouse"
	"rouse/internal/engine"
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
	c.model, c.said = currentModel(s), "unknown"
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

// modelOption is the setting by which a model is chosen.
func modelOption(s wire.Session) (wire.ConfigOption, bool) {
	for _, o := range s.ConfigOptions {
		if o.Category == "model" {
			return o, true
		}
	}
	return wire.ConfigOption{}, false
}

// currentModel is the model that the session says it has; "" when it does not.
func currentModel(s wire.Session) string {
	if o, ok := modelOption(s); ok {
		return wire.Text(o.Current)
	}
	if s.Models != nil {
		return s.Models.Current
	}
	return ""
}

// offeredModels are the ids that it says may be chosen.
func offeredModels(s wire.Session) (ids []string) {
	if o, ok := modelOption(s); ok {
		var walk func([]wire.OptionValue)
		walk = func(values []wire.OptionValue) {
			for _, v := range values {
				if v.Value != "" {
					ids = append(ids, v.Value)
				}
				walk(v.Options)
			}
		}
		walk(o.Options)
		return ids
	}
	if s.Models != nil {
		for _, m := range s.Models.Available {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// chooseModel makes the agent use a model for the next prompt. Some agents take
// any name (codex-acp 0.16, copilot), some check it: what is known of the
// choice is Info.ModelConfirmed. DefaultModel leaves what is in force.
func (c *Conversation) chooseModel(ctx context.Context, h *host, want string) error {
	c.mu.Lock()
	s, now, id := c.session, c.model, c.id
	c.mu.Unlock()
	if want == "" || want == DefaultModel || want == now {
		if want == now && now != "" {
			c.confirm(want, "true")
		}
		return nil
	}
	said := "unknown"
	var err error
	switch o, ok := modelOption(s); {
	case ok:
		var m *wire.Message
		m, err = h.conn.call(ctx, wire.MethodSetConfigOption, func(n int64) []byte { return wire.SetConfigOption(n, id, o.ID, want) })
		if err == nil {
			said = confirmedBy(m.Result, s, want)
		}
	case s.Models != nil:
		_, err = h.conn.call(ctx, wire.MethodSetModel, func(n int64) []byte { return wire.SetModel(n, id, want) })
	default:
		// Copilot has no list with a custom provider and takes set_model all
		// the same; an agent that has no such method says so.
		_, err = h.conn.call(ctx, wire.MethodSetModel, func(n int64) []byte { return wire.SetModel(n, id, want) })
		if re, ok := refused(err); ok && re.Code == wire.CodeMethodNotFound {
			c.confirm(now, "false")
			return nil
		}
	}
	if re, ok := refused(err); ok {
		return c.e.modelRefused(want, offeredModels(s), re)
	}
	if err != nil {
		want, said = "", "unknown" // the agent may have done it, or not
	}
	c.confirm(want, said)
	return err
}

// confirmedBy judges the answer to a choice: the option now has the value, and
// the value was offered before it was asked for.
func confirmedBy(result json.RawMessage, before wire.Session, want string) string {
	after, err := wire.Decode[wire.Session](result)
	if err != nil || len(after.ConfigOptions) == 0 {
		return "unknown"
	}
	switch {
	case currentModel(after) != want:
		return "false"
	case slices.Contains(offeredModels(before), want):
		return "true"
	}
	return "unknown"
}

func (c *Conversation) confirm(model, said string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model, c.said = model, said
}

// modelRefused is a model that the agent does not have.
func (e *Engine) modelRefused(want string, offered []string, re *wire.Error) error {
	msg := e.agent.Title + " does not take the model " + rouse.Clip(want, 100)
	if n := len(offered); n > 0 {
		if n > 20 {
			offered = append(offered[:20:20], "…")
		}
		msg += "; it offers"
		for i, id := range offered {
			if i > 0 {
				msg += ","
			}
			msg += " " + id
		}
	} else if f := e.rpcFailure(re, e.opt.Now()); f.Message != "" {
		msg += ": " + f.Message
	}
	return &engine.LaunchError{Failure: rouse.Failure{Class: rouse.ClassModel, Code: rouse.CodeModel, Provider: e.agent.Name, Model: want,
		Message: rouse.Clip(msg, 2000), Source: sourceACP}}
}
