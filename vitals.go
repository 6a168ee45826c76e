package rouse

import "time"

// Counters of a running turn.
type Counters struct {
	Events       int64 `json:"events"`  // updates of any kind
	Genuine      int64 `json:"genuine"` // updates that are progress
	Messages     int64 `json:"messages"`
	Parts        int64 `json:"parts"`
	TextBytes    int64 `json:"text_bytes"` // answer and reasoning
	OutputTokens int64 `json:"output_tokens"`
}

// OpenTool is the top-level tool call that runs now.
type OpenTool struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	Title string    `json:"title,omitempty"`
	Since time.Time `json:"since"`
}

// Vitals is what the lane knows of its running turn, stamped by whoever read
// the engine, not by the lane.
type Vitals struct {
	TurnID      string     `json:"turn"`
	Generation  uint64     `json:"generation"`
	Epoch       uint64     `json:"epoch"`
	Started     time.Time  `json:"started"`
	LastGenuine time.Time  `json:"last_genuine,omitzero"`
	LastByte    time.Time  `json:"last_byte,omitzero"`
	Counters    Counters   `json:"counters"`
	OpenTool    *OpenTool  `json:"open_tool,omitempty"`
	Retry       *RetryFact `json:"retry,omitempty"`
	// RetrySince is when the attempt failed that Retry is about.
	RetrySince time.Time `json:"retry_since,omitzero"`
	// Waiting is the open request to a person.
	Waiting *WaitFact `json:"waiting,omitempty"`
	// Clock is Started, or the last genuine event, with its monotonic reading:
	// what silence is measured from.
	Clock time.Time `json:"-"`
	// Stood is the part of the time since Clock in which a person or a known
	// retry was waited for, waits that are over.
	Stood time.Duration `json:"stood,omitempty"`
	// Probe is what the last question to the protocol brought.
	Probe *ProbeFact `json:"probe,omitempty"`
	// NoProbe: the engine has no harmless question.
	NoProbe bool        `json:"no_probe,omitempty"`
	Stderr  *StderrFact `json:"stderr,omitempty"`
	// FirstGenuine is the kind of the first progress; "" before it.
	FirstGenuine string `json:"first_genuine,omitempty"`
	PID          int    `json:"pid,omitempty"`
	// ModelConfirmed says whether the engine really uses the turn's model:
	// "true", "false" (it may have ignored it), "unknown", or "".
	ModelConfirmed string `json:"model_confirmed,omitempty"`
	// StoreDown: the lane could not write; it dispatches nothing.
	StoreDown bool `json:"store_down,omitempty"`
	Draining  bool `json:"draining,omitempty"`
}

// WaitFact is an open request to a person.
type WaitFact struct {
	For   string    `json:"for"` // ForPermission or ForQuestion
	ID    string    `json:"id"`
	Since time.Time `json:"since"`
}

// ProbeFact is a question to the engine's protocol: Answered is zero while it
// is open, and Asked stays that of the first one that was not answered. Nothing
// is known of an engine that has no harmless question.
type ProbeFact struct {
	Asked    time.Time `json:"asked"`
	Answered time.Time `json:"answered,omitzero"`
}

// StderrFact is what the engine's diagnostics brought. It is replaced, never
// changed.
type StderrFact struct {
	Supported string         `json:"supported"` // "supported", "unsupported", or "" for an engine that has none
	LastClass Class          `json:"last_class,omitempty"`
	Ignored   map[string]int `json:"ignored,omitempty"` // by reason
}

// RetryGrace is how long after its time a known retry is still believed in.
const RetryGrace = 60 * time.Second

// Silence is the time since the last genuine event (or the dispatch) in which
// nobody was waited for: neither a person, nor a retry that is known and, by
// at most grace, overdue.
func (v *Vitals) Silence(now time.Time, grace time.Duration) time.Duration {
	silence := now.Sub(v.Clock) - v.Stood
	if v.Waiting != nil {
		silence -= span(v.Clock, v.Waiting.Since, now)
	} else if v.Retry != nil {
		silence -= span(v.Clock, v.RetrySince, earlier(now, v.Retry.Next.Add(grace)))
	}
	return max(0, silence)
}

// Stand adds to Stood what the wait that ends at now took.
func (v *Vitals) Stand(since, now time.Time) { v.Stood += span(v.Clock, since, now) }

// StandRetry is Stand for the retry that ends at now.
func (v *Vitals) StandRetry(now time.Time, grace time.Duration) {
	if v.Retry != nil {
		v.Stand(v.RetrySince, earlier(now, v.Retry.Next.Add(grace)))
	}
}

// span is the time from the later of the first two to the third, at least 0.
func span(clock, since, to time.Time) time.Duration {
	if since.Before(clock) {
		since = clock
	}
	return max(0, to.Sub(since))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
