package acp

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// ignored counts lines of stderr that proved nothing, until they are told.
type ignored struct {
	byReason map[string]int
	told     time.Time
}

// tellEvery bounds how often ignored lines are told: an agent may write
// thousands a second.
const tellEvery = time.Second

// enrichFor is how long after an agent's short error answer its record on
// stderr may still say more.
const enrichFor = 500 * time.Millisecond

// diagnose holds a record against every open prompt, and against one that has
// just ended with an error of no known class.
func (c *Conversation) diagnose(at time.Time, rec diagnostics.Record, prompts int) (out []engine.Update) {
	for _, t := range c.turns {
		if t.ended {
			continue
		}
		f := t.judge.Stderr(at, rec, c.context(t, at, prompts))
		switch f.Action {
		case diagnostics.Ignore:
			out = append(out, c.ignore(t, at, string(f.Reason))...)
		case diagnostics.Terminal: // the turn's end tells
		default:
			t.retries++
			t.resting = true
			fail := c.e.stderrFailure(&f)
			out = append(out, engine.Update{Generation: t.p.Generation, At: at, Body: engine.Diagnostic{Failure: *fail}},
				engine.Update{Generation: t.p.Generation, At: at, Body: engine.Retry{Attempt: t.retries, Next: at, Class: fail.Class, Message: fail.Message}})
		}
	}
	if t := c.enrichable(at); t != nil {
		late := c.context(t, at, prompts+1) // it is open no more, and as likely meant as those that are
		late.AgentType, late.SessionID = c.e.agent.Type, c.id
		var fresh diagnostics.Prompt
		if f := fresh.Judge(rec, late); f.Action != diagnostics.Ignore && f.Class != rouse.ClassNone {
			c.last = nil
			out = append(out, engine.Update{Generation: t.p.Generation, At: at,
				Body: engine.Diagnostic{Failure: *c.e.stderrFailure(&f), Terminal: true}})
		}
	}
	return out
}

// context is what a record is held against. Its own time counts where the clock
// is the one that it was written by.
func (c *Conversation) context(t *turn, at time.Time, prompts int) diagnostics.Context {
	x := diagnostics.Context{ActivePrompts: prompts}
	if !c.e.opt.recorded {
		x.PromptStarted, x.Now = t.judge.Verdict().StartedAt.Truncate(time.Millisecond), at
	}
	return x
}

// enrichable is the prompt whose error answer may still get a class.
func (c *Conversation) enrichable(at time.Time) *turn {
	for _, t := range append(slices.Clone(c.turns), c.last) {
		if t == nil || !t.ended || t.answer == nil {
			continue
		}
		v := t.judge.Verdict()
		if v.Outcome == judge.Failed && v.Evidence == judge.EvidenceRPC && v.Class == rouse.ClassNone && at.Sub(v.DecidedAt) <= enrichFor {
			return t
		}
	}
	return nil
}

// ignore counts a line, and tells now and then.
func (c *Conversation) ignore(t *turn, at time.Time, reason string) []engine.Update {
	if c.ignored.byReason == nil {
		c.ignored.byReason = map[string]int{}
	}
	c.ignored.byReason[reason]++
	if at.Sub(c.ignored.told) < tellEvery {
		return nil
	}
	return c.tellIgnored(t, at)
}

func (c *Conversation) tellIgnored(t *turn, at time.Time) (out []engine.Update) {
	for _, reason := range slices.Sorted(maps.Keys(c.ignored.byReason)) {
		out = append(out, engine.Update{Generation: t.p.Generation, At: at,
			Body: engine.Diagnostic{Reason: reason, Count: c.ignored.byReason[reason]}})
	}
	clear(c.ignored.byReason)
	c.ignored.told = at
	return out
}

// confirmUsed takes the agent's word on which models it asked as the proof of a
// choice.
func (c *Conversation) confirmUsed(answer *wire.Message, want string) {
	if answer == nil || answer.Result == nil || want == "" || want == DefaultModel {
		return
	}
	var used []struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(wire.At(answer.Result, "_meta", "quota", "model_usage"), &used) != nil || len(used) == 0 {
		return
	}
	said := "false"
	for _, u := range used {
		if u.Model == want {
			said = "true"
		}
	}
	c.confirm(want, said)
}
