package judge

import (
	"encoding/json"

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
