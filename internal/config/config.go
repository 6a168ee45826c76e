// Package config reads what a person configured, once, into values that the
// rest of the program can use without asking again: providers with their wire
// and key, models with limits and prices, agents with their permission rules,
// bounds with names.
//
// Sources, later wins: built-in defaults; an OpenCode configuration that is
// already there (provider, model, small_model, agent, permission and the two
// provider lists only); Rouse's own rouse.jsonc; the file named by --config or
// ROUSE_CONFIG. Configuration inside a session's directory is never read: it
// belongs to whoever wrote the repository, and a provider's address decides
// where prompts and keys go.
package config

import (
	"cmp"
	"time"

	"rouse"
)

// Config is everything that was configured. It is immutable once loaded and
// safe for concurrent readers; a reload makes a new one.
type Config struct {
	Server    Server
	Limits    Limits
	Retention Retention
	Log       Log

	// Providers in the order in which they were named: configured ones first,
	// then known ones for which a key was found. Unusable ones stay in the
	// list with their reason.
	Providers []*Provider
	// Model and SmallModel as configured; zero when not. Use Choose and Small.
	Model, SmallModel rouse.ModelRef
	// Agents, built in and configured, primary ones first. Use Agent.
	Agents []*Agent
	// Programs are the agent programs, known and configured, installed or not.
	Programs []*Program
	// Permission rules of the whole configuration; they are already part of
	// each agent's Rules.
	Permission []rouse.PermissionRule

	// Warnings are findings that stop nothing: an unset variable, a provider
	// that cannot be used. Each is a complete sentence that names its place.
	Warnings []string
	// Files that were read, in order.
	Files []string
}

// Server says where the server listens and keeps its data.
type Server struct {
	// Host to bind; default "127.0.0.1".
	Host string `json:"host"`
	// Port to bind; default 4096. 0 in the file means the default, `--port 0`
	// lets the system choose.
	Port int `json:"port"`
	// Hosts are names besides loopback and Host that a request's Host header
	// may carry; default none.
	Hosts []string `json:"hosts"`
	// CORS lists origins that may call from a browser; default none.
	CORS []string `json:"cors"`
	// Data is the data folder; default $XDG_DATA_HOME/rouse. `--data` wins.
	Data string `json:"data"`
}

// Limits are the bounds of one server. 0 in the file means the default.
type Limits struct {
	// HoldQueue bounds the prompts that wait in one session; default 100.
	HoldQueue int `json:"hold_queue"`
	// RunningTurns bounds the turns that run at once on the server; the rest
	// wait in their queues. Default 4096.
	RunningTurns int `json:"running_turns"`
	// SSESubscribers bounds the open event streams; default 4096.
	SSESubscribers int `json:"sse_subscribers"`
	// SSERing is how many committed events stay in memory for readers; who is
	// further behind reads from the store. Default 8192.
	SSERing int `json:"sse_ring"`
	// BodyBytes bounds a request's body; default 10 MiB.
	BodyBytes int64 `json:"body_bytes"`
	// Steps bounds the model calls of one turn; default 200. An agent's steps
	// may be lower.
	Steps int `json:"steps"`
}

// Retention says how long finished things are kept.
type Retention struct {
	// EventsDays keeps events this many days; default 7.
	EventsDays int `json:"events_days"`
	// EventsMaxRows keeps at most this many events; default 1,000,000.
	EventsMaxRows int64 `json:"events_max_rows"`
	// IdempotencyHours keeps idempotency keys; default 24.
	IdempotencyHours int `json:"idempotency_hours"`
}

// Log says what is logged and how.
type Log struct {
	// Level is debug, info, warn or error; default "info".
	Level string `json:"level"`
	// Format is text or json; default "text".
	Format string `json:"format"`
}

// fill puts the defaults where nothing was said.
func (c *Config) fill() {
	s := &c.Server
	s.Host = cmp.Or(s.Host, "127.0.0.1")
	s.Port = cmp.Or(s.Port, 4096)

	l := &c.Limits
	l.HoldQueue = cmp.Or(l.HoldQueue, 100)
	l.RunningTurns = cmp.Or(l.RunningTurns, 4096)
	l.SSESubscribers = cmp.Or(l.SSESubscribers, 4096)
	l.SSERing = cmp.Or(l.SSERing, 8192)
	l.BodyBytes = cmp.Or(l.BodyBytes, 10<<20)
	l.Steps = cmp.Or(l.Steps, 200)

	r := &c.Retention
	r.EventsDays = cmp.Or(r.EventsDays, 7)
	r.EventsMaxRows = cmp.Or(r.EventsMaxRows, 1_000_000)
	r.IdempotencyHours = cmp.Or(r.IdempotencyHours, 24)

	c.Log.Level = cmp.Or(c.Log.Level, "info")
	c.Log.Format = cmp.Or(c.Log.Format, "text")
}

// millis is a duration that files give as a number of milliseconds; false
// means "no limit", as OpenCode writes it.
type millis struct {
	set bool
	d   time.Duration
}
