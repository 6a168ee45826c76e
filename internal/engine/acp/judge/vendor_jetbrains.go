package judge

import (
	"encoding/json"
	"strings"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/wire"
)

// OptIn is what a client puts into clientCapabilities._meta to be told of
// retries and failures by claude-agent-acp and codex-acp 2: a convention of
// JetBrains' client, not of the protocol, so it is never the only source.
const OptIn = `{"jetbrains":{"air":{"version":1,"capabilities":["sessionFailure"]}}}`

// sessionFailure is what they tell, in _meta of a session_info_update or of
// the prompt's result.
type sessionFailure struct {
	Title    string
	Category string // limit, service, connection, access, request, unknown
}

// failureIn is the failure that a _meta reports as final: a retry that is
// still going on has the severity warning.
func failureIn(meta json.RawMessage) *sessionFailure {
	f := wire.At(meta, "jetbrains", "air", "sessionFailure")
	if wire.Text(wire.At(f, "severity")) != "error" {
		return nil
	}
	return &sessionFailure{Title: wire.Text(wire.At(f, "title")), Category: wire.Text(wire.At(f, "category"))}
}

// class goes by the title, which is the provider's own words, then by the
// category.
func (f *sessionFailure) class() rouse.Class {
	if class := diagnostics.ClassOf(f.Title); class != rouse.ClassNone {
		return class
	}
	switch f.Category {
	case "limit":
		return rouse.ClassQuota
	case "service":
		return rouse.ClassCapacity
	case "connection":
		return rouse.ClassNetwork
	case "access":
		return rouse.ClassAuth
	}
	return rouse.ClassNone
}

// Retry is a vendor's word that it tries again by itself.
type Retry struct {
	Title string // raw
	Class rouse.Class
}

// RetryIn is the retry that a _meta of a session_info_update tells of. A
// warning of another kind is none: codex-acp 2.6 warns of a model that it does
// not know before it asks it.
func RetryIn(meta json.RawMessage) (Retry, bool) {
	f := wire.At(meta, "jetbrains", "air", "sessionFailure")
	title := wire.Text(wire.At(f, "title"))
	if wire.Text(wire.At(f, "severity")) != "warning" || !hasPrefixFold(title, "retrying") && !hasPrefixFold(title, "reconnecting") {
		return Retry{}, false
	}
	told := sessionFailure{Title: title, Category: wire.Text(wire.At(f, "category"))}
	r := Retry{Title: title, Class: told.class()}
	if r.Class == rouse.ClassQuota && told.Category == "limit" {
		r.Class = rouse.ClassRate // it tries again: no plan's limit yet
	}
	return r, true
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
