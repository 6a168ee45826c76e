package acp

// kilo is a fork of OpenCode and behaves like it (kilo 7.8.1), but its stderr
// is no evidence in this version: it settles nothing and opens no wall.
var kilo = Agent{
	Name: "kilo", Title: "Kilo Code", Type: "kilo",
	Command: []string{"kilo", "acp"},
	Env:     []string{"KILO_DISABLE_AUTOUPDATE=1"},
	Login:   "kilo auth login",
	Package: "@kilocode/cli",
}
