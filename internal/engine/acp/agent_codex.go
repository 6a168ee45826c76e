package acp

import (
	"encoding/json"

	"rouse/internal/engine/acp/judge"
)

// codex is Codex behind codex-acp: the self-contained 0.16 of Zed and the 2.x
// that drives @openai/codex. Both have the same command; 0.16 does not exit
// when its input closes, ends a refused permission as cancelled and never
// answers a second prompt that was sent while it was busy (none is: a lane
// gives one at a time).
var codex = Agent{
	Name: "codex", Title: "Codex", Type: "codex",
	Command: []string{"codex-acp"},
	Env:     []string{"RUST_LOG=error"},
	Meta:    json.RawMessage(judge.OptIn),
	Vendor:  "openai",
	Login:   "codex login",
	Package: "@agentclientprotocol/codex-acp",
}
