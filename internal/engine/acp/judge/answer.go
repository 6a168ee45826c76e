package judge

import (
	"encoding/json"
	"strings"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/wire"
)

// answer decides by the answer to the prompt.
func (t *Turn) answer(at time.Time, m *wire.Message) {
	if m.Error != nil {
		t.v.Error = m.Error
		t.decide(at, t.byError(m.Error))
		return
	}
	// What is no result object has no stop reason, and is judged as an end.
	r, _ := wire.Decode[wire.PromptResult](m.Result)
	t.v.StopReason = r.StopReason
	t.v.Usage, t.v.HasUsage = r.Tokens()
	usage := wire.Positive(r.Usage) || wire.Positive(wire.At(r.Meta, "quota", "token_count"))
	if t.before != (wire.Usage{}) && t.v.Usage == t.before {
		usage = false
	}
	t.v.ModelUsageSeen = t.v.ModelUsageSeen || usage
	t.decide(at, t.byResult(r, usage))
}

// byError judges a JSON-RPC error.
func (t *Turn) byError(e *wire.Error) decision {
	said := []string{e.Message}
	wire.Words(e.Data, func(w string) { said = append(said, w) })
	if e.Code == wire.CodeCancelled || (t.cancelled || t.superseded) && anyAborted(said) {
		return decision{outcome: Cancelled, evidence: EvidenceRPC}
	}
	class := diagnostics.ClassOf(strings.Join(said, "\n"))
	if class == rouse.ClassNone {
		class = diagnostics.ClassOfCode(e.Code)
	}
	return decision{outcome: Failed, evidence: EvidenceRPC, class: class, text: toldBy(e)}
}

// byResult judges a result, in the order of the rules. usage: it shows that a
// model worked.
func (t *Turn) byResult(r wire.PromptResult, usage bool) decision {
	if f := failureIn(r.Meta); f != nil {
		t.reported = f
	}
	switch {
	case r.StopReason == "cancelled", t.cancelled && !usage:
		// Older agents answer a cancel with an end_turn that cost nothing.
		return decision{outcome: Cancelled, evidence: EvidenceStop}
	case t.reported != nil:
		return decision{outcome: Failed, evidence: EvidenceStatus, class: t.reported.class(), text: t.reported.Title}
	case t.systemError && !usage:
		return decision{outcome: Failed, evidence: EvidenceStatus, class: diagnostics.ClassOf(t.failureText), text: t.failureText}
	case t.lastText == failure && !usage:
		return decision{outcome: Failed, evidence: EvidenceText, class: diagnostics.ClassOf(t.failureText), text: t.failureText}
	case r.StopReason == "refusal":
		return decision{outcome: Failed, evidence: EvidenceStop}
	case (r.StopReason == "end_turn" || r.StopReason == "") && t.v.Genuine == 0 && !usage:
		return t.byDiagnostic(EvidenceEmpty)
	}
	return decision{outcome: Completed, evidence: EvidenceStop}
}

// anyAborted reports whether an error says that it was asked for.
func anyAborted(said []string) bool {
	for _, text := range said {
		if aborted(strings.ToLower(bounded(text))) {
			return true
		}
	}
	return false
}

func aborted(text string) bool {
	start := strings.TrimSpace(text)
	if i := strings.LastIndex(start, "error: "); i >= 0 {
		start = start[i+len("error: "):] // "Internal error: Aborted"
	}
	if strings.HasPrefix(start, "aborted") {
		return true
	}
	for _, what := range [...]string{"request", "operation", "prompt", "turn"} {
		for _, how := range [...]string{" was aborted", " was cancelled", " was canceled"} {
			if strings.Contains(text, what+how) {
				return true
			}
		}
	}
	return false
}

// toldBy is the most telling text of an error: data often holds what the
// message only calls an internal error.
func toldBy(e *wire.Error) string {
	if generic := strings.EqualFold(strings.TrimRight(e.Message, "."), "internal error"); e.Message != "" && !generic {
		return e.Message
	}
	for _, key := range [...]string{"message", "details", "error"} {
		if text := wire.Text(wire.At(json.RawMessage(e.Data), key)); text != "" {
			return text
		}
	}
	if text := wire.Text(e.Data); text != "" {
		return text
	}
	return e.Message
}
