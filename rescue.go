package rouse

import "time"

// RescuePrefix is the prefix of a rescue's id.
const RescuePrefix = "rsc"

// RescueStatus is how far a rescue is.
type RescueStatus string

// The states of a rescue.
const (
	RescueRunning RescueStatus = "running"
	RescueDone    RescueStatus = "done"
	RescueFailed  RescueStatus = "failed"
	RescuePerson  RescueStatus = "needs_person" // the budget is used up
)

// The stages of a rescue, in order. Each is stored before the next deed.
const (
	StageAuthorized = "authorized"
	StageWritten    = "written" // from here the queue is held
	StageAborted    = "aborted"
	StageIdle       = "idle"
	StagePrompted   = "prompted"
	StageGenerating = "generating" // the queue is released
)

// RescueStage is one stage as it went.
type RescueStage struct {
	Name   string    `json:"name"`
	At     time.Time `json:"at"`
	OK     bool      `json:"ok"`
	Detail string    `json:"detail,omitempty"`
}

// Rescue ends a session's hung turn and wakes it with facts.
type Rescue struct {
	ID        string        `json:"id"`
	SessionID string        `json:"session"`
	By        string        `json:"by"` // "user", or the orchestrator's session
	Reason    string        `json:"reason"`
	Status    RescueStatus  `json:"status"`
	Stages    []RescueStage `json:"stages"`
	// Reassignment is the one thing to do next; Given are the caller's facts.
	Reassignment string   `json:"reassignment"`
	Given        []string `json:"given,omitempty"`
	Model        ModelRef `json:"model"`
	Force        bool     `json:"force,omitempty"` // whatever speaks against it
	// Aborted is the turn that was ended, empty when none ran; Silence how long
	// it had shown no progress; Last how the turn before had ended. TurnID and
	// Generation are the new turn.
	Aborted    string        `json:"aborted,omitempty"`
	Silence    time.Duration `json:"silence,omitempty"`
	Last       TurnState     `json:"last,omitempty"`
	TurnID     string        `json:"turn,omitempty"`
	Generation uint64        `json:"generation,omitempty"`
	Facts      *Facts        `json:"facts,omitempty"`
	Clause     string        `json:"clause,omitempty"`
	Created    time.Time     `json:"created"`
	Ended      time.Time     `json:"ended,omitzero"`
}

// Stage is the last stage that went well, or "".
func (r *Rescue) Stage() string {
	for i := len(r.Stages) - 1; i >= 0; i-- {
		if r.Stages[i].OK {
			return r.Stages[i].Name
		}
	}
	return ""
}

// The bounds of what a caller may add to a rescue's facts: they go into a prompt.
const (
	MaxFacts     = 50
	MaxFact      = 4_000  // bytes
	MaxFactsText = 64_000 // bytes of all together
)

// Facts is what is true now, gathered by the server and not remembered by a
// model.
type Facts struct {
	Directory string   `json:"directory"`
	Git       bool     `json:"git,omitempty"`    // it is in a repository
	Branch    string   `json:"branch,omitempty"` // empty outside git, or detached
	Head      string   `json:"head,omitempty"`   // commit and subject; empty before the first
	Dirty     []string `json:"dirty"`            // changed files, at most 50
	MoreDirty int      `json:"more_dirty,omitempty"`
	// DirtyUnknown: git did not say which files are changed.
	DirtyUnknown bool       `json:"dirty_unknown,omitempty"`
	LastTools    []ToolFact `json:"last_tools"` // the last finished calls, newest last
	InFlight     []ToolFact `json:"in_flight"`  // what ran when the turn was ended
}

// ToolFact is one tool call in a line.
type ToolFact struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	State string `json:"state"`
}
