package acp

import "strings"

// copilot is GitHub's Copilot CLI. It reports failures as the text of a turn
// that ends well, takes any model's name without a word, gives the session's
// usage so far, from zero again after a load, and writes how its shell ended
// under what a command printed (copilot 1.0.102).
var copilot = Agent{
	Name: "copilot", Title: "GitHub Copilot CLI", Type: "copilot",
	Command: []string{"copilot", "--acp"},
	Vendor:  "github-copilot",
	Printed: func(output string) string {
		if i := strings.LastIndex(output, "<shellId: "); i >= 0 && strings.HasSuffix(output, ">") && !strings.Contains(output[i:], "\n") {
			return output[:i]
		}
		return output
	},
	SessionUsage: true,
	Login:        "copilot login",
	Package:      "@github/copilot",
}
