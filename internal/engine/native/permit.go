package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// ask is a request that waits for a person.
type ask struct {
	req   rouse.Request
	reply chan rouse.Reply // 1 slot
}

// errHalt ends the turn after the step: a person said no and gave no other way.
// The tool's error says what the model and people read.
type errHalt struct{ msg string }

func (e *errHalt) Error() string { return e.msg }

// toolError is told to the model; it can do something about it.
type toolError string

func (e toolError) Error() string { return string(e) }

// wish is what a call wants to do.
type wish struct {
	permission string
	patterns   []string
	always     []string // what "always" would allow
	metadata   any
}

// rules are in the order in which the last match wins.
func (t *turn) rules() []rouse.PermissionRule {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	out := make([]rouse.PermissionRule, 0, len(t.agent.Rules)+len(t.p.Rules)+len(t.c.granted))
	out = append(out, t.agent.Rules...)
	out = append(out, t.p.Rules...)
	return append(out, t.c.granted...)
}

// decide judges a wish: deny if any pattern is denied, else ask if any is asked
// for.
func decide(rules []rouse.PermissionRule, w wish) (action rouse.Action, pattern string) {
	action = rouse.Allow
	for _, p := range w.patterns {
		switch rouse.Decide(rules, w.permission, p, rouse.Allow) {
		case rouse.Deny:
			return rouse.Deny, p
		case rouse.Ask:
			if action == rouse.Allow {
				action, pattern = rouse.Ask, p
			}
		}
	}
	return action, pattern
}

// forbidden reports that a permission is denied whatever the pattern, so that
// its tool need not be offered.
func forbidden(rules []rouse.PermissionRule, permission string) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if r := rules[i]; rouse.Match(r.Permission, permission) {
			return r.Action == rouse.Deny && r.Pattern == "*"
		}
	}
	return false
}

// permit returns when the call may go on; the error is what its tool ends with.
func (k *call) permit(w wish) error {
	t := k.t
	action, pattern := decide(t.rules(), w)
	switch action {
	case rouse.Allow:
		return nil
	case rouse.Deny:
		return toolError(fmt.Sprintf("The user has specified a rule that denies this call (%s: %s). Find another way or say that it is not possible.", w.permission, rouse.Clip(pattern, 200)))
	}
	if t.p.Unattended {
		return toolError(fmt.Sprintf("Nobody is there to give permission for this call (%s: %s): this session runs unattended, so it was rejected permission at once. Find another way or report that you are blocked.", w.permission, rouse.Clip(pattern, 200)))
	}
	meta, err := json.Marshal(w.metadata)
	if err != nil || w.metadata == nil {
		meta = []byte("{}")
	}
	a := t.openAsk(rouse.Request{ID: rouse.NewID(rouse.PermissionPrefix, time.Now()), SessionID: t.p.SessionID, TurnID: t.p.TurnID, Generation: t.p.Generation,
		Kind: rouse.ForPermission, CallID: k.id, Permission: w.permission, Patterns: w.patterns, Always: w.always, Metadata: meta})
	t.send(engine.PermissionAsked{Request: a.req}, true, 0)
	k.running("", nil)
	r, err := t.wait(a)
	if err != nil {
		return err
	}
	return t.judged(a, r)
}

// judged turns a person's reply into the call's fate.
func (t *turn) judged(a *ask, r rouse.Reply) error {
	switch r.Verb {
	case rouse.ReplyOnce:
		return nil
	case rouse.ReplyAlways:
		t.grant(a.req)
		return nil
	case rouse.ReplyCancelled:
		t.c.interrupt(errCancelled) // the turn is being cancelled: nothing may run on
		return context.Canceled
	}
	if r.Message != "" {
		return toolError("The user rejected permission for this call and said: " + rouse.Clip(r.Message, 4000))
	}
	t.rejectOthers()
	return &errHalt{"The user rejected permission for this call."}
}

// grant remembers "always" for the rest of the conversation and lets the other
// open requests go that it covers.
func (t *turn) grant(req rouse.Request) {
	c := t.c
	c.mu.Lock()
	for _, p := range req.Always {
		c.granted = append(c.granted, rouse.PermissionRule{Permission: req.Permission, Pattern: p, Action: rouse.Allow})
	}
	c.mu.Unlock()
	rules := t.rules()
	t.release(rouse.Reply{Verb: rouse.ReplyOnce, By: "always"}, func(o *ask) bool {
		action, _ := decide(rules, wish{permission: o.req.Permission, patterns: o.req.Patterns})
		return o.req.Kind == rouse.ForPermission && action == rouse.Allow
	})
}

// rejectOthers answers the open requests of a turn that ends with this step.
func (t *turn) rejectOthers() {
	t.release(rouse.Reply{Verb: rouse.ReplyReject, By: "rejected"}, func(*ask) bool { return true })
}

// release answers open requests in a person's place and withdraws them.
func (t *turn) release(r rouse.Reply, which func(*ask) bool) {
	c := t.c
	c.mu.Lock()
	var gone []*ask
	for id, o := range c.asks {
		if which(o) {
			delete(c.asks, id)
			gone = append(gone, o)
		}
	}
	c.mu.Unlock()
	for _, o := range gone {
		t.send(engine.RequestWithdrawn{RequestID: o.req.ID}, false, 0)
		o.reply <- r
	}
}

// openAsk registers a request before it is reported, so that no answer is early.
func (t *turn) openAsk(req rouse.Request) *ask {
	a := &ask{req: req, reply: make(chan rouse.Reply, 1)}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.c.asks[req.ID] = a
	return a
}

// wait waits for the answer or the turn's end.
func (t *turn) wait(a *ask) (rouse.Reply, error) {
	select {
	case r := <-a.reply:
		return r, nil
	case <-t.ctx.Done():
		return rouse.Reply{}, context.Cause(t.ctx)
	}
}

// Answer gives a person's reply to the request that waits for it.
func (c *conversation) Answer(_ context.Context, requestID string, r rouse.Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.asks[requestID]
	if a == nil {
		return rouse.Errorf(rouse.NotFound, "native: answer", "request %s is not open", rouse.Clip(requestID, 64))
	}
	delete(c.asks, requestID)
	a.reply <- r
	return nil
}

// dropAsks forgets the requests that a turn left open and names them.
func (c *conversation) dropAsks() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.asks {
		ids = append(ids, id)
		delete(c.asks, id)
	}
	return ids
}

// halts reports an error that ends the turn.
func halts(err error) bool {
	var h *errHalt
	return errors.As(err, &h)
}
