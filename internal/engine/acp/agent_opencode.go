package acp

// openCode is OpenCode's own ACP server. Its errors reach stderr only with
// --print-logs (opencode 1.0 to 1.18.33); with a usage limit its prompt stays
// open for as long as the provider's retry-after says, so that stderr is the
// only evidence. Updates of itself are off: a program that replaces itself in
// the middle of a session would end it.
var openCode = Agent{
	Name: "opencode", Title: "OpenCode", Type: "opencode",
	Command:     []string{"opencode", "acp"},
	Diagnostics: []string{"--print-logs", "--log-level", "ERROR"},
	Env:         []string{"OPENCODE_DISABLE_AUTOUPDATE=1"},
	Login:       "opencode auth login",
	Package:     "opencode-ai",
}
