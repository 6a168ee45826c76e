package rouse

import (
	"encoding/json"
	"time"
)

// EventType names a kind of event in the log.
type EventType string

// Snapshots point at a row and carry its version: a reader renders the newest
// row, and skips an event whose row is newer than the event says (a later
// event renders it).
const (
	SessionCreated EventType = "session.created"
	SessionUpdated EventType = "session.updated"
	MessageUpdated EventType = "message.updated"
	PartUpdated    EventType = "part.updated" // start, tool transition, end
)

// Transitions carry their own facts in Data.
const (
	SessionDeleted   EventType = "session.deleted"   // Data: SessionGone
	MessageRemoved   EventType = "message.removed"   // Data: none, MessageID says which
	PartRemoved      EventType = "part.removed"      // Data: none
	TurnQueuedEvent  EventType = "turn.queued"       // Data: TurnFact
	TurnRunningEvent EventType = "turn.running"      // Data: TurnFact
	TurnWaitingEvent EventType = "turn.waiting"      // Data: TurnFact
	TurnAnswered     EventType = "turn.answered"     // Data: TurnFact; nobody is waited for any more
	TurnRetryEvent   EventType = "turn.retry"        // Data: RetryFact
	TurnSettledEvent EventType = "turn.settled"      // Data: SettledFact
	SessionPaused    EventType = "session.paused"    // Data: SessionFact
	SessionResumed   EventType = "session.resumed"   // Data: SessionFact
	SessionErrored   EventType = "session.errored"   // Data: SettledFact; an error outside a turn
	RequestAsked     EventType = "request.asked"     // Data: Request
	RequestReplied   EventType = "request.replied"   // Data: RepliedFact
	TodoUpdated      EventType = "todo.updated"      // Data: []Todo
	SessionCompacted EventType = "session.compacted" // Data: none
	CancelStage      EventType = "cancel.stage"      // Data: CancelFact
	RescueStaged     EventType = "rescue.stage"      // Data: Rescue
	VerdictChanged   EventType = "verdict"           // Data: Verdict
	NoticeCreated    EventType = "notice.created"    // Data: Notice
	NoticeUpdated    EventType = "notice.updated"    // Data: Notice; silent again
	NoticeHidden     EventType = "notice.hidden"     // Data: Notice
	IncidentOpened   EventType = "incident.opened"   // Data: Incident
	IncidentClosed   EventType = "incident.closed"   // Data: Incident
	WallOpened       EventType = "wall.opened"       // Data: Wall; also when a new refusal parks it again
	WallHalfOpen     EventType = "wall.half_open"    // Data: Wall
	WallClosed       EventType = "wall.closed"       // Data: Wall
)

// Event is one line of the log. Seq has no gaps.
type Event struct {
	Seq        int64           `json:"seq"`
	At         time.Time       `json:"at"`
	Type       EventType       `json:"type"`
	SessionID  string          `json:"session"`
	Directory  string          `json:"directory"` // of the session, for filters
	TurnID     string          `json:"turn,omitempty"`
	Generation uint64          `json:"generation,omitempty"`
	MessageID  string          `json:"message,omitempty"`
	PartID     string          `json:"part,omitempty"`
	Row        int64           `json:"row,omitempty"` // version of the row a snapshot points at
	Data       json.RawMessage `json:"data,omitempty"`

	// Body is the row as it was committed (*Session, *Message, *Part), kept
	// in memory for readers that follow live; nil when read from the store.
	// It is shared: never change it.
	Body any `json:"-"`
}

// TurnFact is the data of turn.queued, running and waiting.
type TurnFact struct {
	State      TurnState `json:"state"`
	WaitingFor string    `json:"waiting_for,omitempty"`
	Queued     int       `json:"queued"`
	Model      ModelRef  `json:"model"`
}

// RetryFact is the data of turn.retry: attempt failed, the next starts at Next.
type RetryFact struct {
	Attempt int       `json:"attempt"`
	Next    time.Time `json:"next"`
	Class   Class     `json:"class"`
	Message string    `json:"message"`
}

// SettledFact is the data of turn.settled. Idle is false when another prompt
// is queued and will run next, so that idle is announced once.
type SettledFact struct {
	State   TurnState     `json:"state"`
	Finish  string        `json:"finish,omitempty"`
	Idle    bool          `json:"idle"`
	Error   *MessageError `json:"error,omitempty"`
	Failure *Failure      `json:"failure,omitempty"`
	// Session is what the session is after it; nil in logs of older versions.
	Session *SessionFact `json:"session,omitempty"`
}

// SessionFact is the state of a session at an event.
type SessionFact struct {
	State      SessionState `json:"state"`
	Pause      bool         `json:"pause,omitempty"` // also while its turn still runs
	WaitingFor string       `json:"waiting_for,omitempty"`
	Outcome    TurnState    `json:"outcome,omitempty"`
	Incident   *Incident    `json:"incident,omitempty"` // the open one
}

// FactOf is the fact about a session; open is its open incident, or nil.
func FactOf(s *Session, open *Incident) SessionFact {
	return SessionFact{State: s.State(), Pause: s.Pause, WaitingFor: s.WaitingFor, Outcome: s.Outcome, Incident: open}
}

// RepliedFact is the data of request.replied.
type RepliedFact struct {
	RequestID string `json:"request"`
	Kind      string `json:"kind"` // ForPermission or ForQuestion
	Reply     Reply  `json:"reply"`
}

// SessionGone is the data of session.deleted: the row as it last was.
type SessionGone struct {
	Session Session `json:"session"`
}

// CancelFact is the data of cancel.stage: one rung of the ladder, also of the
// one behind an end that the engine did not give.
type CancelFact struct {
	Stage  string `json:"stage"`            // requested, forced, killed, given_up
	Detail string `json:"detail,omitempty"` // requested: by what; killed: the signal
}
