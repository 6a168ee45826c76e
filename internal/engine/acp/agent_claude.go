package acp

import (
	"encoding/json"

	"rouse/internal/engine/acp/judge"
)

// claude is Claude Code behind claude-agent-acp. It starts in mode "auto",
// where a model decides what may run and nobody is asked; "default" asks
// (claude-agent-acp 0.101.0). It starts one claude process for each session.
var claude = Agent{
	Name: "claude", Title: "Claude Code", Type: "claude",
	Command: []string{"claude-agent-acp"},
	Meta:    json.RawMessage(judge.OptIn),
	Mode:    "default",
	Vendor:  "anthropic",
	Login:   "claude /login",
	Package: "@agentclientprotocol/claude-agent-acp",
}
