package acp

import (
	"encoding/json"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
	"rouse/internal/limits"
)

// Sources of a failure.
const (
	sourceACP     = "acp_error"
	sourceText    = "agent_text"
	sourceStderr  = rouse.SourceStderr
	sourceProcess = "process"
)

// failureOf is Engine.failureOf with the model that was in force, where the
// failure names none. The lock is held.
func (c *Conversation) failureOf(t *turn, v judge.Verdict) *rouse.Failure {
	f := c.e.failureOf(t, v)
	if f != nil && f.Model == "" && c.model != DefaultModel {
		f.Model = modelName(c.model)
	}
	return f
}

// failureOf is what a judged end says of the failure; nil for an end that is
// none. What the agent said is sanitized here, whatever way it came.
func (e *Engine) failureOf(t *turn, v judge.Verdict) *rouse.Failure {
	if v.Outcome != judge.Failed {
		return nil
	}
	var f *rouse.Failure
	switch v.Evidence {
	case judge.EvidenceRPC:
		f = e.rpcFailure(v.Error, v.DecidedAt)
	case judge.EvidenceStderr:
		f = e.stderrFailure(v.Finding)
	case judge.EvidenceExit:
		f = &rouse.Failure{Code: rouse.CodeExited, Source: sourceProcess,
			Message: e.agent.Title + " ended in the middle of the turn (" + orElse(t.exit, "its process is gone") + ")"}
	case judge.EvidenceEmpty:
		f = &rouse.Failure{Source: sourceACP, Message: e.agent.Title + " ended the turn without an answer; it reported no use of a model"}
	default:
		f = e.textFailure(v.Text, v.DecidedAt)
		if f.Message == "" {
			f.Message = e.agent.Title + " ended the turn without success (" + orElse(toldStop(v.StopReason), string(v.Evidence)) + ")"
		}
	}
	f.Class = v.Class
	if v.Evidence == judge.EvidenceRPC && v.Class == rouse.ClassNone && e.enriches(t) {
		f.Class = "" // its record on stderr may still say more
	}
	if f.Code == "" && f.Class != "" {
		f.Code = rouse.CodeOf(f.Class)
	}
	if f.Provider == "" {
		f.Provider = e.agent.Vendor
	}
	f.Retryable = f.Class == rouse.ClassRate || f.Class == rouse.ClassCapacity || f.Class == rouse.ClassNetwork
	return f
}

// toldStop is a stop reason, if it is one of the protocol's: another is the
// agent's own text.
func toldStop(reason string) string {
	switch reason {
	case "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled":
		return reason
	}
	return ""
}

// enriches reports that a short error answer may be followed by a record that
// says more.
func (e *Engine) enriches(t *turn) bool { return e.agent.Type == diagnostics.Agent && t.h.diagnostics }

// rpcFailure reads an error answer. The link comes from its data alone: message
// and texts are never scanned for one.
func (e *Engine) rpcFailure(re *wire.Error, at time.Time) *rouse.Failure {
	event := metadata(rawObject{"code": metadata(re.Code), "message": metadata(re.Message), "data": orNull(re.Data)})
	f := e.classified(limits.Evidence{Channel: limits.ACPError, Event: event}, at)
	f.Source = sourceACP
	if f.Message == "" {
		f.Message = diagnostics.Sanitize(rpcText(re))
	}
	for _, key := range []string{"remediation_url", "action_url"} {
		if link := wire.Text(wire.At(re.Data, key)); f.RemediationURL == "" && diagnostics.LinkAllowed(link) {
			f.RemediationURL = link
		}
	}
	return f
}

// rpcText is an error's message with what its data adds: agents put "Internal
// error" into the one and the reason into the other.
func rpcText(re *wire.Error) string {
	for _, key := range []string{"message", "details", "detail", "reason"} {
		if more := wire.Text(wire.At(re.Data, key)); more != "" {
			return more
		}
	}
	return re.Message
}

// textFailure reads the agent's own text in a trusted position.
func (e *Engine) textFailure(text string, at time.Time) *rouse.Failure {
	f := e.classified(limits.Evidence{Channel: limits.Text, Text: text, Trusted: true}, at)
	f.Source = sourceText
	if f.Message == "" {
		f.Message = diagnostics.Sanitize(text)
	}
	return f
}

// stderrFailure takes OpenCode's record as diagnostics read it, and nothing
// more.
func (e *Engine) stderrFailure(d *diagnostics.Finding) *rouse.Failure {
	if d == nil {
		return &rouse.Failure{Source: sourceStderr}
	}
	f := &rouse.Failure{Class: d.Class, Source: sourceStderr, Provider: d.Provider, Model: d.Model, Message: d.Message,
		ResetAt: d.ResetAt, RemediationURL: d.RemediationURL}
	if !d.ResetAt.IsZero() {
		f.ResetSource, f.Confidence = "message_duration", "medium"
	}
	return f
}

// classified is what limits make of an agent's own words.
func (e *Engine) classified(ev limits.Evidence, at time.Time) *rouse.Failure {
	ev.Provider, ev.Agent, ev.At, ev.HostZone = e.agent.Vendor, e.agent.Name, at, zoneOf(at)
	d := limits.Classify(ev)
	// Limits keep links, as people need them who read a provider's own answer;
	// of an agent's words nothing but the allowed link is shown.
	f := &rouse.Failure{Class: d.Class, Message: diagnostics.Sanitize(d.Message), ResetAt: d.ResetAt, ResetSource: d.ResetSource, LimitName: d.LimitName,
		Model: d.Model, LimitModel: d.Model}
	if f.Class != rouse.ClassNone {
		f.Confidence = d.Confidence
	}
	return f
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// finishOf is the reason of an end that is none of an error.
func finishOf(v judge.Verdict) string {
	switch v.StopReason {
	case "max_tokens":
		return "length"
	case "max_turn_requests":
		return "max_turn_requests"
	}
	return "stop"
}

// usage is what a turn used. Some agents count the session so far, of tokens or
// of cost; what was there before is taken off.
func (c *Conversation) usage(t *turn) rouse.Usage {
	u := usageOf(t.answer)
	c.mu.Lock()
	defer c.mu.Unlock()
	u.Cost = max(0, c.used.Cost-t.cost)
	if !c.e.agent.SessionUsage {
		return u
	}
	total := u.Tokens
	if before := c.used.Tokens; total.Input >= before.Input && total.Output >= before.Output { // else it began anew
		u.Tokens = rouse.Tokens{Input: total.Input - before.Input, Output: total.Output - before.Output, Reasoning: max(0, total.Reasoning-before.Reasoning),
			CacheRead: max(0, total.CacheRead-before.CacheRead), CacheWrite: max(0, total.CacheWrite-before.CacheWrite)}
	}
	if total != (rouse.Tokens{}) {
		c.used.Tokens = total
	}
	return u
}

// usageOf is what an answer says of tokens.
func usageOf(answer *wire.Message) (u rouse.Usage) {
	if answer == nil || answer.Result == nil {
		return u
	}
	res, err := wire.Decode[wire.PromptResult](answer.Result)
	if err != nil {
		return u
	}
	tokens, ok := res.Tokens()
	if !ok {
		return u
	}
	u.Tokens = rouse.Tokens{Input: tokens.Input, Output: tokens.Output, Reasoning: tokens.Thought,
		CacheRead: tokens.CachedRead, CacheWrite: tokens.CachedWrite}
	return u
}

// rawObject is a JSON object's fields.
type rawObject map[string]json.RawMessage
