package acp

// pi is the pi coding agent behind pi-acp. A usage limit ends its turn at once
// with neither text nor error (pi-acp 0.0.34 with pi 1.6.0); with a Node too
// old for it, opening a session is silent for more than a minute.
var pi = Agent{
	Name: "pi", Title: "pi", Type: "pi",
	Command: []string{"pi-acp"},
	Login:   "pi",
	Package: "pi-acp",
}
