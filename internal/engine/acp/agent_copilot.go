package acp

// copilot is GitHub's Copilot CLI. It reports failures as the text of a turn
// that ends well, and takes any model's name without a word; its usage is the session's so far
// (copilot 1.0.102).
var copilot = Agent{
	Name: "copilot", Title: "GitHub Copilot CLI", Type: "copilot",
	Command: []string{"copilot", "--acp"},
	Vendor:  "github-copilot",

	SessionUsage: true,
	Login:        "copilot login",
	Package:      "@github/copilot",
}
