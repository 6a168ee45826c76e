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
	// FirstGenuine is the kind of the first progress; "" before it.
	FirstGenuine string `json:"first_genuine,omitempty"`
	PID          int    `json:"pid,omitempty"`
	// StoreDown: the lane could not write; it dispatches nothing.
	StoreDown bool `json:"store_down,omitempty"`
	Draining  bool `json:"draining,omitempty"`
}
