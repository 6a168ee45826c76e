package drill

import (
	"context"
	"encoding/json"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// How long the silent modes are silent, unless the prompt says delay=….
const (
	toolSilence  = 15 * time.Minute
	pauseSilence = 7 * time.Minute
	muteSilence  = 4 * time.Minute
	retrySilence = 10 * time.Minute
	openSilence  = 15 * time.Second // longer than a cancel's ladder
)

// delay is the prompt's own wish, else otherwise at the engine's speed.
func (r *run) delay(otherwise time.Duration) time.Duration {
	if d, _ := parseDirective(r.text()); d.delay > 0 {
		return d.delay
	}
	return r.c.engine.silence(otherwise)
}

// quietTool is a long tool that says nothing and ends well.
func (r *run) quietTool() engine.Outcome {
	r.step()
	r.send(true, engine.ToolStarted{CallID: "call_1", Name: "bash", Title: "Run all tests", State: rouse.ToolRunning,
		Input: json.RawMessage(`{"command":"make test SECRET=1","description":"Run all tests"}`)})
	if r.pause(r.delay(toolSilence)) {
		return cancelled()
	}
	r.send(true, engine.ToolEnded{CallID: "call_1", Title: "Run all tests", Output: "ok\n"})
	r.done("tool-calls")
	return r.say("Tool done.")
}

// pauses falls silent twice in one answer.
func (r *run) pauses() engine.Outcome {
	r.step()
	for _, text := range []string{"one ", "two "} {
		r.send(true, engine.Text{Text: text})
		if r.pause(r.delay(pauseSilence)) {
			return cancelled()
		}
	}
	r.send(true, engine.Text{Text: "three"})
	r.done("stop")
	return completed()
}

// slowStart says its first word late.
func (r *run) slowStart() engine.Outcome {
	if r.pause(r.delay(muteSilence)) {
		return cancelled()
	}
	return r.say(r.text())
}

// longRetry waits long for another attempt, and says so.
func (r *run) longRetry() engine.Outcome {
	wait := r.delay(retrySilence)
	r.step()
	r.send(false, engine.Retry{Attempt: 1, Next: time.Now().Add(wait), Class: rouse.ClassRate, Message: "too many requests"})
	if r.pause(wait) {
		return cancelled()
	}
	r.send(false, engine.Resumed{})
	return r.say("whole answer")
}

// chatter keeps the pipe busy without any progress.
func (r *run) chatter() engine.Outcome {
	r.begin()
	for !r.pause(time.Second) {
		r.send(false, engine.Noise{Kind: "usage_update"})
	}
	return cancelled()
}

// freeze hangs, and its protocol with it.
func (r *run) freeze() engine.Outcome {
	r.c.setFrozen(true)
	defer r.c.setFrozen(false)
	r.begin()
	return r.until(true, true, 0)
}

// dead never begins, and its protocol does not answer.
func (r *run) dead() engine.Outcome {
	r.c.setFrozen(true)
	defer r.c.setFrozen(false)
	return r.until(true, true, 0)
}

func (c *conversation) setFrozen(v bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = v
}

// Probe can be asked in the modes "freeze" and "dead", and is not answered.
func (c *conversation) Probe(ctx context.Context) error {
	c.mu.Lock()
	frozen := c.frozen
	c.mu.Unlock()
	if !frozen {
		return engine.ErrUnsupported
	}
	<-ctx.Done()
	return rouse.Wrap("drill: probe", context.Cause(ctx))
}
