// Package limits judges failures of model providers: what class of failure it
// is, when capacity returns, and whether the same request is tried again. All
// of it is pure: no clock, no state; tables are the specification.
package limits

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"rouse"
)

// Channel says where evidence comes from.
type Channel string

// The channels. Evidence of another channel proves nothing.
const (
	HTTP      Channel = "http"      // an answer: status, headers, body
	SSE       Channel = "sse"       // an event inside a 2xx stream
	ACPError  Channel = "acp_error" // the error object of an agent's answer
	ACPUpdate Channel = "acp_update"
	SDKEvent  Channel = "sdk_event"
	Stderr    Channel = "stderr"
	Text      Channel = "text" // an error line; counts only when Trusted
	// Transport is a call that got no answer, or half of one; Evidence.Text
	// names what happened ("broken", "stalled", "no_finish" …).
	Transport Channel = "transport"
)

// Answer is what a provider answered over HTTP.
type Answer struct {
	Status  int
	Headers http.Header
	Body    []byte
}

// Evidence is one failure as it was seen.
type Evidence struct {
	Provider string // as configured: "anthropic"; "" when unknown
	Agent    string // agent program, where one is between
	Channel  Channel
	At       time.Time // when it was received; relative times count from here
	HTTP     *Answer
	Event    json.RawMessage // sse, acp_error, acp_update, sdk_event
	Text     string          // text, stderr, transport
	Trusted  bool            // text: known to be an error line
	HostZone string          // zone of times that name none; "" leaves them unread
	Bind     Bind
}

// Bind is what evidence has to belong to.
type Bind struct {
	// SessionID is the agent's own session; a record of another one proves
	// nothing. "" binds no record.
	SessionID string
	// PromptStarted is when the prompt was sent; older records are not about it.
	PromptStarted time.Time
	// Aborted: the prompt was cancelled, so a broken connection is our own doing.
	Aborted bool
}

// Finding is what evidence proves. Unknown is zero, never a guess.
type Finding struct {
	Class rouse.Class
	// Terminal: waiting for the reset, a person or a change of configuration
	// is needed.
	Terminal      bool
	ResetAt       time.Time // UTC, whole milliseconds; zero when unknown
	ResetSource   string
	Confidence    string // high, medium, low
	ProviderLabel string
	Model         string
	LimitName     string
	// Message is what the provider said, sanitized and bounded; for people.
	Message string
	// Why names the rule that matched.
	Why string
}

// Retryable reports that the same request may succeed without a change.
func (f Finding) Retryable() bool {
	switch f.Class {
	case rouse.ClassRate, rouse.ClassCapacity, rouse.ClassNetwork:
		return !f.Terminal
	}
	return false
}

// Classify judges evidence. It never fails: what is not understood is class
// none.
func Classify(e Evidence) Finding {
	f := Finding{Class: rouse.ClassNone, Confidence: "high", ProviderLabel: label(e.Provider), Why: "nothing in it proves a limit"}
	if e.Channel == Transport {
		f.Class, f.Why = rouse.ClassNetwork, "the call got no complete answer: "+e.Text
		return f
	}
	x, ok := extract(e)
	if x.provider != e.Provider {
		f.ProviderLabel = label(x.provider)
	}
	if !ok {
		return f
	}
	f.Message = Sanitize(x.plain)
	v, ok := classOf(&x)
	if !ok || v.class == rouse.ClassNetwork && e.Bind.Aborted {
		return f
	}
	f.Class, f.Confidence, f.Why = v.class, v.conf, v.why
	if v.class == rouse.ClassRate || v.class == rouse.ClassQuota || v.class == rouse.ClassCapacity {
		if f.ResetAt, f.ResetSource = reset(&x); f.ResetAt.IsZero() {
			v.why += unreadFor(x)
		}
		f.Why = v.why
	}
	if v.class == rouse.ClassRate && promoted(&x, f.ResetAt) {
		f.Class, f.Why = rouse.ClassQuota, v.why+"; too long to wait through"
	}
	if f.Class == rouse.ClassRate || f.Class == rouse.ClassQuota {
		if f.LimitName = v.limit; f.LimitName == "" {
			f.LimitName = limitName(&x)
		}
	}
	f.Model = modelOf(&x, f.Class)
	if !f.ResetAt.IsZero() {
		f.Confidence = sourceConfidence(f.ResetSource)
		if f.ResetSource == sourceClockZone && (f.LimitName == "weekly" || f.LimitName == "monthly") {
			f.Confidence = "low" // a bare clock on a long window may be any of its days
		}
	}
	switch f.Class {
	case rouse.ClassQuota, rouse.ClassBilling, rouse.ClassAuth, rouse.ClassContext, rouse.ClassModel:
		f.Terminal = !x.retries
	}
	return f
}

// unreadFor says that a time was left unread because the host's zone is
// unknown; "" when that changed nothing.
func unreadFor(x facts) string {
	if _, known := zone(x.zone); known || x.zone == "" {
		return ""
	}
	name := x.zone
	x.zone = "UTC"
	if at, _ := reset(&x); at.IsZero() {
		return ""
	}
	return "; it names a time without a zone, and host_zone " + strconv.Quote(rouse.Clip(name, 60)) + " is no zone that is known (one is Europe/Berlin)"
}

// modelOf is the model that the finding is about: the record's, else what the
// structure names, else, of limits, what the message says.
func modelOf(x *facts, class rouse.Class) string {
	switch {
	case x.model != "":
		return x.model
	case x.about != "":
		return x.about
	case class == rouse.ClassRate, class == rouse.ClassQuota, class == rouse.ClassContext:
		return modelSaid(x)
	}
	return ""
}

// parkAfter is the longest wait of a rate limit; a longer one is a quota.
const parkAfter = 300 * time.Second

// promoted reports that a rate limit is a quota in truth: its reset is far, or
// it counts per day and names no reset.
func promoted(x *facts, at time.Time) bool {
	if !at.IsZero() {
		return at.Sub(x.base) > parkAfter
	}
	return x.perDay()
}

// sourceConfidence is how far a reset from this source can be trusted.
func sourceConfidence(source string) string {
	switch source {
	case sourceDated, sourceDuration, sourceClockZone:
		return "medium"
	case sourceClockLocal:
		return "low"
	}
	return "high"
}
