package rouse

import "time"

// ProgramReport is what asking an agent program brought: it was started, spoken
// to, given a session and ended again; its model was not asked.
type ProgramReport struct {
	// Starts: it answered initialize.
	Starts bool `json:"starts"`
	// Version and Reported are what it says of itself.
	Version  string `json:"version,omitempty"`
	Reported string `json:"reported_name,omitempty"`
	// Authenticated is "true" when it opened a session, "false" when it refused
	// one for want of a login, else "unknown".
	Authenticated string `json:"authenticated"`
	// Model is the one in force, Models what it offers, as it names them.
	Model  string   `json:"model,omitempty"`
	Models []string `json:"models"`
	Modes  []string `json:"modes"`
	// Resume is how a session goes on after its process ended: "resume",
	// "load" or "".
	Resume string `json:"resume,omitempty"`
	// Diagnostics is "supported" when it runs with its diagnostic arguments and
	// what it then writes is evidence, else "unsupported".
	Diagnostics string `json:"diagnostics"`
	StartMS     int64  `json:"start_ms"`         // until initialize was answered
	SessionMS   int64  `json:"session_ms"`       // until a session was open
	Memory      int64  `json:"memory,omitempty"` // bytes, of all its processes, with the session open
	// Problem says in a sentence what went wrong, with what to do about it.
	Problem string    `json:"problem,omitempty"`
	At      time.Time `json:"at"`
}
