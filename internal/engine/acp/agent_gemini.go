package acp

import (
	"slices"
	"strings"

	"rouse/internal/engine/acp/wire"
)

// gemini is Gemini CLI. With a key in the environment it wants to be told to
// use it; it never answers a cancel while a permission is open, so those are
// answered first (gemini 0.61.0; the engine does that for every agent). It tells
// no arguments, and a tool's name only at the front of its calls' ids.
var gemini = Agent{
	Name: "gemini", Title: "Gemini CLI", Type: "gemini",
	Command: []string{"gemini", "--acp"},
	Auth: func(getenv func(string) string, offered []wire.AuthMethod) string {
		const withKey = "gemini-api-key"
		if getenv("GEMINI_API_KEY") == "" || !slices.ContainsFunc(offered, func(m wire.AuthMethod) bool { return m.ID == withKey }) {
			return ""
		}
		return withKey
	},
	ToolOf: func(callID string) string {
		name, _, ok := strings.Cut(callID, "__")
		if !ok {
			return ""
		}
		return name
	},
	Vendor:  "google",
	Login:   "gemini",
	Package: "@google/gemini-cli",
}
