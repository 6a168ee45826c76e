package diagnostics

import (
	"encoding/json"
	"strings"

	"rouse"
)

// Neutral is the record as OpenCode would have written it about nothing
// private: the same layout, session (under the name that called gives it),
// class, reset and time, and of the text what may be shown. It is judged as the
// record was. ok is false for a line that is no record; of that nothing may be
// written.
func (r Record) Neutral(called func(session string) string) (line string, ok bool) {
	if r.broken != "" || r.reason != "" {
		return "", false
	}
	agent := r.agent
	if r.background() {
		agent = "title"
	}
	said := Plain(spoken(r.text), r.class(spoken(r.text)))
	if aborted(r.text) {
		said = "Aborted"
	}
	var b strings.Builder
	put := func(key, value string) {
		if value != "" {
			b.WriteString(" " + key + "=" + value)
		}
	}
	id := func(key, value string) { put(key, Name(value)) }
	if r.old {
		b.WriteString("ERROR " + r.at.UTC().Format("2006-01-02T15:04:05") + " +0ms service=llm")
	} else {
		b.WriteString("timestamp=" + r.at.UTC().Format("2006-01-02T15:04:05.000Z07:00") + " level=ERROR")
		if r.process {
			put("message", "process")
		} else {
			put("message", `"stream error"`)
		}
	}
	id("providerID", r.provider)
	id("modelID", r.model)
	if strings.EqualFold(r.small, "true") {
		put("small", "true")
	}
	id("agent", agent)
	session := called(r.session)
	switch {
	case r.old:
		put("sessionID", session)
		b.WriteString(` error={"error":{"message":` + inQuotes(said) + `}} stream error`)
	case r.process:
		put("session.id", session)
		put("error", inQuotes(said))
	default:
		put("session.id", session)
		put("error.error", inQuotes(said))
	}
	return b.String(), true
}

// inQuotes is a text as a JSON string.
func inQuotes(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // strings always encode
	}
	return string(b)
}

// Plain is a text that may be shown and speaks of the class that is given,
// which is what the whole text spoke of: what is hidden may have said it.
func Plain(text string, class rouse.Class) string {
	out := shown(settle(flat(firstRunes(text, maxText))))
	if ClassOf(out) == class || class == "" {
		return out
	}
	word := inPlainWords[class]
	if with := strings.TrimSpace(out + ": " + word); ClassOf(with) == class {
		return with
	}
	return word
}

// inPlainWords says each class by a phrase of its own.
var inPlainWords = map[rouse.Class]string{rouse.ClassRate: "rate limit", rouse.ClassQuota: "usage limit", rouse.ClassBilling: "payment required",
	rouse.ClassAuth: "unauthorized", rouse.ClassContext: "context length", rouse.ClassCapacity: "overloaded", rouse.ClassNetwork: "connection error",
	rouse.ClassNone: Generic}
