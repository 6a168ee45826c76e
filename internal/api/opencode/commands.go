package opencode

import (
	"net/http"
	"strings"
)

// wireCommand is a named prompt template.
type wireCommand struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Source      string   `json:"source"`
	Template    string   `json:"template"`
	Hints       []string `json:"hints"`
}

// builtinCommands are what a client can run by name; $ARGUMENTS stands for
// what the person typed after it.
var builtinCommands = []wireCommand{
	{
		Name: "init", Source: "command", Hints: []string{"$ARGUMENTS"},
		Description: "write or refresh AGENTS.md for this repository",
		Template: `Write an AGENTS.md for this repository, or bring the one that is there up to date.

It is read by coding agents at the start of their work, so it holds only what they would otherwise get wrong or have to search for:
how to build, run, format and test (also a single test), how the code is laid out and why, conventions that the code follows but nothing enforces, and traps.
Look at manifests, build files, CI configuration, existing instructions for agents and a sample of the code before you write. Verify each command you name.
Keep it under a page; leave out what is obvious, what a linter says, and anything you did not check. Keep what is still right in an existing file.

Wishes of the person, which come first: $ARGUMENTS`,
	},
	{
		Name: "review", Source: "command", Hints: []string{"$ARGUMENTS"},
		Description: "review changes: uncommitted ones, or the named commit, branch or pull request",
		Template: `Review the following changes: $ARGUMENTS

If nothing is named, review what is not committed (staged, unstaged and new files). A commit id means that commit, a branch name means what differs from it, a number or URL means that pull request.

Read each changed file as a whole, not the diff alone, and follow the callers of what changed. Look for what is wrong: behaviour that breaks, cases that are not handled, races, leaks, security holes, data that can be lost, tests that prove nothing.
For every finding give file and line, what happens and under which circumstances, how sure you are, and the smallest change that mends it. Put the serious ones first. Say nothing about style that a tool would say, and do not change any file. If you find nothing, say what you looked at.`,
	},
}

func (h *Handler) commands(w http.ResponseWriter, _ *http.Request) { h.ok(w, builtinCommands) }

// expand fills a command's template; false when there is no such command.
func expand(name, arguments string) (string, bool) {
	for _, c := range builtinCommands {
		if c.Name == name {
			return strings.TrimSpace(strings.ReplaceAll(c.Template, "$ARGUMENTS", arguments)), true
		}
	}
	return "", false
}

func commandNames() string {
	names := make([]string, len(builtinCommands))
	for i, c := range builtinCommands {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}
