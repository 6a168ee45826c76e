package native

import (
	"fmt"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/limits"
	"rouse/internal/provider"
)

// classify judges a failed call.
func classify(ref rouse.ModelRef, e *provider.CallError, at time.Time) limits.Finding {
	ev := limits.Evidence{Provider: ref.Provider, At: at}
	switch e.Kind {
	case provider.InStream: // the answer's status and headers say that all is well
		ev.Channel, ev.Event = limits.SSE, e.Body
	case provider.HTTPError:
		ev.Channel = limits.HTTP
		ev.HTTP = &limits.Answer{Status: e.Status, Headers: e.Header, Body: e.Body}
	case provider.NoKey:
		return limits.Finding{Class: rouse.ClassAuth, Terminal: true, Confidence: "high", Message: limits.Sanitize(fmt.Sprint(e.Err)), Why: "there is no key"}
	case provider.Unsendable:
		return limits.Finding{Class: rouse.ClassNone, Confidence: "high", Message: limits.Sanitize(fmt.Sprint(e.Err)), Why: "nothing was sent"}
	default:
		ev.Channel, ev.Text = limits.Transport, string(e.Kind)
	}
	return limits.Classify(ev)
}

// kindWords says what happened where the provider said nothing.
var kindWords = map[provider.ErrorKind]string{
	provider.HTTPError:     "the provider answered with an error",
	provider.InStream:      "the provider reported an error in the middle of its answer",
	provider.Broken:        "the connection broke in the middle of the answer",
	provider.NoFinish:      "the answer ended without a finish reason",
	provider.Stalled:       "the provider sent nothing for too long",
	provider.TransportFail: "the provider could not be reached",
	provider.Garbage:       "the provider answered with something that is no answer",
	provider.NoKey:         "the provider's key could not be read",
	provider.Unsendable:    "the request could not be sent",
}

// messageOf is what a person reads of a failed call.
func messageOf(f limits.Finding, e *provider.CallError) string {
	if f.Message != "" {
		return f.Message
	}
	s := kindWords[e.Kind]
	if e.Status != 0 && e.Status/100 != 2 {
		s = fmt.Sprintf("%s (HTTP %d)", s, e.Status)
	}
	return s
}

// failed is the end of a turn whose call will not be made again.
func (t *turn) failed(f limits.Finding, e *provider.CallError, attempts int) *ending {
	model := t.model.Ref.Model
	if f.Model != "" {
		model = f.Model
	}
	fail := &rouse.Failure{
		Class: f.Class, Code: rouse.CodeOf(f.Class), Provider: t.model.Ref.Provider, Model: model,
		Message: messageOf(f, e), ResetAt: f.ResetAt, ResetSource: f.ResetSource, Confidence: f.Confidence,
		LimitName: f.LimitName, LimitModel: f.Model, Source: "provider_http", Status: e.Status, Retryable: f.Retryable(), Attempts: attempts,
	}
	return &ending{
		Outcome: engine.Outcome{State: rouse.TurnFailed, Finish: "error", Failure: fail, Usage: t.usage,
			Evidence: fmt.Sprintf("%s after %d attempts: %s", e.Kind, attempts, f.Why)},
		overflow: f.Class == rouse.ClassContext,
	}
}
