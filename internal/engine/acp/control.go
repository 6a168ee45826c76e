package acp

import (
	"context"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
)

// Answer gives a person's reply to a permission that the agent asked for.
func (c *Conversation) Answer(_ context.Context, requestID string, r rouse.Reply) error {
	c.mu.Lock()
	a := c.asks[requestID]
	h := c.h
	delete(c.asks, requestID)
	c.mu.Unlock()
	if a == nil || h == nil {
		return rouse.Errorf(rouse.NotFound, "acp: answer", "request %s is not open", rouse.Clip(requestID, 64))
	}
	return c.write(h, a.line(r))
}

// Cancel asks the agent to end its prompt. Open permissions are answered first:
// an agent may wait for them for ever (gemini 0.61.0).
func (c *Conversation) Cancel(context.Context) error {
	c.mu.Lock()
	h, id, open := c.h, c.id, false
	for _, t := range c.turns {
		t.late = !t.sent
		open = open || t.sent
	}
	c.endComing()
	var asks map[string]*ask
	if open && !c.e.opt.recorded { // a recorded client says by itself what it answers
		asks, c.asks = c.asks, map[string]*ask{}
	}
	c.endShell()
	c.mu.Unlock()
	if h == nil || !open {
		return nil
	}
	for _, a := range asks {
		if err := c.write(h, a.line(rouse.Reply{Verb: rouse.ReplyCancelled})); err != nil {
			return err
		}
	}
	return c.write(h, wire.Cancel(id))
}

// Stop ends the prompt by ending the agent's process; in a shared process where
// other sessions work, by giving up the session.
func (c *Conversation) Stop(ctx context.Context) error {
	c.mu.Lock()
	h, open := c.h, len(c.turns) > 0
	for _, t := range c.turns {
		t.stopped = true
	}
	c.endComing()
	c.endShell()
	c.mu.Unlock()
	if h != nil && open {
		c.force(ctx, h)
	}
	return nil
}

// force ends what the agent does for the conversation.
func (c *Conversation) force(ctx context.Context, h *host) {
	if !h.othersWork(c) {
		h.kill(ctx)
		return
	}
	c.mu.Lock()
	given := c.h == h
	if given {
		c.h, c.id, c.spec.Resume = nil, "", ""
		c.lost = "the one before did not end its work when it was told to, and was given up"
		clear(c.asks)
		for _, t := range c.turns {
			t.ended = true
			t.ring()
		}
	}
	c.mu.Unlock()
	if given {
		c.e.retire(h)
		c.leave(h)
	}
}

// endShell ends a command of a person's own.
func (c *Conversation) endShell() {
	if c.shellEnd != nil {
		c.shellEnd(errEnded)
	}
}

// endComing ends prompts that the agent has not got yet.
func (c *Conversation) endComing() {
	for _, end := range c.coming {
		end(errEnded)
	}
}

// errEnded is why something ends that is not the agent's yet, or never.
var errEnded = rouse.Errorf(rouse.Conflict, "acp: cancel", "it was ended")

// Probe asks for the list of sessions, which changes nothing, where the agent
// offers it.
func (c *Conversation) Probe(ctx context.Context) error {
	c.mu.Lock()
	h := c.h
	c.mu.Unlock()
	if h == nil || !bool(h.hello.Capabilities.Session.List) {
		return engine.ErrUnsupported
	}
	_, err := h.conn.call(ctx, wire.MethodList, func(id int64) []byte { return wire.ListSessions(id, c.spec.Directory) })
	if _, ok := refused(err); ok {
		return nil // it answers
	}
	return err
}

// Close ends the conversation and its process, or its part of a shared one.
func (c *Conversation) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	for _, t := range c.turns {
		t.stopped = true
		t.ring()
	}
	c.endComing()
	c.endShell()
	h, id := c.h, c.id
	c.h = nil
	c.mu.Unlock()
	c.stop()
	c.q.close()
	if h != nil {
		c.part(h, id)
	}
	c.pump.Wait()
	return nil
}

// part leaves a process.
func (c *Conversation) part(h *host, id string) {
	if c.e.agent.Shared && h.alive() && bool(h.hello.Capabilities.Session.Close) {
		ctx, cancel := context.WithTimeout(context.Background(), exitWait)
		defer cancel()
		_, _ = h.conn.call(ctx, wire.MethodClose, func(n int64) []byte { return wire.CloseSession(n, id) }) // as good as it gets
	}
	c.leave(h)
}
