package acp

import (
	"encoding/json"
	"slices"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
)

// asksOpen bounds what a person is asked at once: what an agent asks beyond it
// is refused.
const asksOpen = 100

// ask is a permission that the agent waits for.
type ask struct {
	rpc     json.RawMessage
	options []wire.Option
}

// permission asks a person, unless a rule decides.
func (c *Conversation) permission(h *host, t *turn, m *wire.Message, at time.Time) []engine.Body {
	w := &m.Permission.Tool
	a := &ask{rpc: m.ID, options: m.Permission.Options}
	var out []engine.Body
	if w.ID != "" {
		proposed := *w // texts are the question's, not yet what the tool shows
		proposed.Content = slices.DeleteFunc(slices.Clone(w.Content), func(p wire.ToolContent) bool { return p.Type == "content" })
		out = c.tool(&proposed, nil) // gemini tells a call by nothing else
	}
	req := c.requestOf(t, w)
	reply, decided := c.decide(t, req)
	if decided {
		line := a.line(reply)
		c.witness(line, nil)
		h.conn.later(line)
		return out
	}
	req.ID, req.Asked = rouse.NewID(rouse.PermissionPrefix, at), at
	c.asks[req.ID] = a
	return append(out, engine.PermissionAsked{Request: req})
}

// decide answers in a person's place where nobody has to be asked.
func (c *Conversation) decide(t *turn, req rouse.Request) (rouse.Reply, bool) {
	if t == nil { // nobody's prompt: nothing may run
		return rouse.Reply{Verb: rouse.ReplyCancelled}, true
	}
	if r, ok := byRule(slices.Concat(c.e.opt.Rules(), t.p.Rules), req); ok {
		return r, true
	}
	return rouse.Reply{Verb: rouse.ReplyReject, By: "bound"}, len(c.asks) >= asksOpen
}

func (c *Conversation) requestOf(t *turn, w *wire.Tool) rouse.Request {
	call := c.tools[w.ID]
	if call == nil {
		call = &toolCall{}
		call.learn(w, nil)
	}
	name := permissions[call.kind]
	if name == "" {
		name = orElse(call.name, "tool")
	}
	subject := subjectOf(call)
	req := rouse.Request{Kind: rouse.ForPermission, SessionID: c.spec.Session.ID, CallID: w.ID, Permission: name,
		Patterns: []string{subject}, Always: []string{subject}, Metadata: call.metadata(outputShown)}
	if t != nil {
		req.TurnID, req.Generation = t.p.TurnID, t.p.Generation
	}
	return req
}

// subjectOf is what a rule's pattern is held against: the command, the file,
// the address, or else the title.
func subjectOf(call *toolCall) string {
	for _, key := range []string{"command", "filePath", "url", "pattern", "query"} {
		if s := wire.Text(wire.At(call.input, key)); s != "" {
			return s
		}
	}
	return orElse(call.title, "*")
}

// byRule answers in a person's place where a rule says so.
func byRule(rules []rouse.PermissionRule, req rouse.Request) (rouse.Reply, bool) {
	switch rouse.Decide(rules, req.Permission, req.Patterns[0], rouse.Ask) {
	case rouse.Allow:
		return rouse.Reply{Verb: rouse.ReplyOnce, By: "rule"}, true
	case rouse.Deny:
		return rouse.Reply{Verb: rouse.ReplyReject, By: "rule"}, true
	}
	return rouse.Reply{}, false
}

// line is the answer as the agent takes it: the option of the kind, or its
// neighbour where the agent does not offer that one.
func (a *ask) line(r rouse.Reply) []byte {
	var kinds []string
	switch r.Verb {
	case rouse.ReplyOnce:
		kinds = []string{"allow_once"} // never more than the person said
	case rouse.ReplyAlways:
		kinds = []string{"allow_always", "allow_once"}
	case rouse.ReplyReject:
		kinds = []string{"reject_once", "reject_always"}
	}
	for _, kind := range kinds {
		for _, o := range a.options {
			if o.Kind == kind {
				return wire.Select(a.rpc, o.ID)
			}
		}
	}
	return wire.SelectNone(a.rpc)
}

// withdrawn is the agent taking a request back.
func (c *Conversation) withdrawn(rpc json.RawMessage) []engine.Body {
	id, ok := c.asked(rpc)
	if !ok {
		return nil
	}
	delete(c.asks, id)
	return []engine.Body{engine.RequestWithdrawn{RequestID: id}}
}

// asked finds the open question that a request of the agent's became.
func (c *Conversation) asked(rpc json.RawMessage) (id string, ok bool) {
	for id, a := range c.asks {
		if wire.SameID(a.rpc, rpc) {
			return id, true
		}
	}
	return "", false
}

// Asked is the request, as Answer takes it, that a request of the agent's
// became; ok is false when nobody is asked, or not any more.
func (c *Conversation) Asked(rpc json.RawMessage) (id string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked(rpc)
}

// dropAsks forgets what is still open and names it, once no prompt but t, which
// has ended, can wait for it.
func (c *Conversation) dropAsks(t *turn) (ids []string) {
	if slices.ContainsFunc(c.turns, func(o *turn) bool { return o != t && !o.ended }) {
		return nil
	}
	for id := range c.asks {
		ids = append(ids, id)
	}
	clear(c.asks)
	return ids
}
