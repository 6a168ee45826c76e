package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"rouse"
	"rouse/internal/engine/acp/wire"
)

// Agent is how one agent program is launched and spoken to. What is peculiar
// to a program stands in its own file, agent_<name>.go.
type Agent struct {
	// Name is the engine's name: in --agent, in Session.Engine, in walls.
	Name string
	// Title is what people call it.
	Title string
	// Type is the agent type of its diagnostics: "opencode" is the only one
	// whose stderr is evidence.
	Type string
	// Command is the launch line: program and arguments.
	Command []string
	// Diagnostics are further arguments that make it write its errors to
	// stderr. If it exits on them it is started once more without.
	Diagnostics []string
	// Env is added to its environment where the variable is not set, Set
	// whatever it was.
	Env, Set []string
	// Meta is clientCapabilities._meta of initialize: a vendor's opt-in.
	Meta json.RawMessage
	// Auth is the id of the login method that is asked for before a session is
	// opened, "" for none. It is told what initialize offered.
	Auth func(getenv func(string) string, offered []wire.AuthMethod) string
	// Mode is the session mode in which the agent asks before it acts; "" is
	// the mode that it starts in.
	Mode string
	// Vendor is whose limits its errors speak of ("anthropic"); "" is unknown.
	Vendor string
	// Login tells a person how to log in: a command line.
	Login string
	// Package is the npm package that brings it.
	Package string
	// Model is asked for when nobody names one; "" leaves the agent's own.
	Model string
	// SessionUsage: the tokens that it tells are the session's so far in its
	// process, not the turn's.
	SessionUsage bool
	// ToolOf reads the agent's own name of a tool from a call's id; nil where it
	// is told.
	ToolOf func(callID string) string
	// Printed takes what is the agent's own off what a command printed; nil
	// leaves it.
	Printed func(string) string
	// Shared: one process serves all sessions. Otherwise each has its own.
	Shared bool
}

// Known are the agents that Rouse knows by name, in the order in which they are
// listed.
func Known() []Agent {
	return []Agent{openCode, claude, gemini, codex, qwen, copilot, kilo, pi}
}

// Find gives a known agent.
func Find(name string) (Agent, bool) {
	all := Known()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}

// DefaultModel is the model id of a session whose model the agent chooses.
const DefaultModel = rouse.AgentModel

// argv is the launch line, with the diagnostic arguments or without.
func (a Agent) argv(diagnostics bool) []string {
	if !diagnostics {
		return slices.Clone(a.Command)
	}
	return slices.Concat(a.Command, a.Diagnostics)
}

// environment is what its variables are beyond the server's own.
func (a Agent) environment(getenv func(string) string) []string {
	var out []string
	for _, kv := range a.Env {
		if name, _, _ := strings.Cut(kv, "="); getenv(name) == "" {
			out = append(out, kv)
		}
	}
	return append(out, a.Set...)
}

// getenv reads a variable as the agent will see it.
func (a Agent) getenv(getenv func(string) string) func(string) string {
	return func(name string) string {
		for _, kv := range a.Set {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return getenv(name)
	}
}
