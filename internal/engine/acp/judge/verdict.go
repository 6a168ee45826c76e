package judge

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/wire"
)

// Params are what a drill may shorten.
type Params struct {
	// Grace is how long a failed attempt may stay without progress; 0:
	// diagnostics.DefaultGrace.
	Grace time.Duration
	// Before is what the session had used before the prompt, of an agent whose
	// answers count the session: the same again is no proof that a model
	// worked. Zero where they count the prompt.
	Before wire.Usage
}

// Outcome is how a turn ended.
type Outcome string

// The outcomes.
const (
	Open      Outcome = "open" // nothing proves an end
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
)

// Evidence is what an outcome was decided by.
type Evidence string

// The kinds of evidence.
const (
	EvidenceNone   Evidence = "none"
	EvidenceStderr Evidence = "stderr"         // a diagnostic of the agent's, or its deadline
	EvidenceExit   Evidence = "process_exit"   // the process ended with the prompt open
	EvidenceRPC    Evidence = "rpc_error"      // the answer is an error
	EvidenceStop   Evidence = "stop_reason"    // the answer is trusted
	EvidenceStatus Evidence = "thread_status"  // a vendor's typed status
	EvidenceText   Evidence = "error_text"     // the closing text is a failure's
	EvidenceEmpty  Evidence = "empty_end_turn" // an end without any work
)

// Verdict is what is known of a turn: as it is while open, as it was at the
// deciding moment afterwards.
type Verdict struct {
	Outcome  Outcome
	Evidence Evidence
	// Class is set for Failed only; ClassNone is a failure of no known class.
	Class     rouse.Class
	StartedAt time.Time
	DecidedAt time.Time // zero while open

	// ToolOpen are the ids of tools that did not end, in the order in which
	// they were first seen, PermissionOpen the ids of unanswered requests: what
	// a supervisor must close. A completed turn may have some.
	ToolOpen       []string
	PermissionOpen []json.RawMessage

	Genuine, Noise int       // messages of the agent inside the window
	LastGenuine    time.Time // zero: none
	// ModelUsageSeen is proof that a model worked.
	ModelUsageSeen bool

	// Text is what the agent said about a failure, raw: it must be sanitized
	// before a person or a log sees it. "" when it said nothing.
	Text string
	// Finding is the diagnostic that decided or was pending; nil without one.
	Finding *diagnostics.Finding
	// Error is the answer's error; nil unless Evidence is rpc_error.
	Error *wire.Error
	// StopReason and Usage are the answer's; HasUsage is false when it names
	// none. Usage may be the session's so far.
	StopReason string
	Usage      wire.Usage
	HasUsage   bool
}

// decision is the part of a verdict that a rule gives.
type decision struct {
	outcome  Outcome
	evidence Evidence
	class    rouse.Class
	text     string
	finding  *diagnostics.Finding
}

// Open reports whether nothing was decided yet.
func (t *Turn) Open() bool { return t.v.Outcome == Open }

// decide ends the turn. Whoever calls it has seen that it is open.
func (t *Turn) decide(at time.Time, d decision) {
	t.v.ToolOpen, t.v.PermissionOpen = t.tools.open(), slices.Clone(t.asked)
	t.v.Outcome, t.v.Evidence, t.v.DecidedAt = d.outcome, d.evidence, at
	t.v.Text, t.v.Finding = d.text, d.finding
	if d.outcome == Failed {
		t.v.Class = cmp.Or(d.class, rouse.ClassNone)
	}
}

// Verdict is what is known now.
func (t *Turn) Verdict() Verdict {
	v := t.v
	if t.Open() {
		v.ToolOpen, v.PermissionOpen = t.tools.open(), slices.Clone(t.asked)
	}
	return v
}

// openTools knows the last status of every tool.
type openTools struct {
	isOpen map[string]bool
	order  []string
}

// see takes what a message tells of a tool. A tool that never had a status is
// pending; a message without one changes nothing.
func (o *openTools) see(tool wire.Tool) {
	if tool.ID == "" {
		return // nothing could ever close it
	}
	if o.isOpen == nil {
		o.isOpen = map[string]bool{}
	}
	_, known := o.isOpen[tool.ID]
	if !known {
		o.order = append(o.order, tool.ID)
	}
	if tool.Status != "" || !known {
		o.isOpen[tool.ID] = !slices.Contains(ended, tool.Status)
	}
}

// ended are the statuses after which a tool does nothing more.
var ended = []string{"completed", "failed", "cancelled"}

func (o *openTools) open() []string {
	var ids []string
	for _, id := range o.order {
		if o.isOpen[id] {
			ids = append(ids, id)
		}
	}
	return ids
}
