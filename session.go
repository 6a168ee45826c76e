package rouse

import (
	"encoding/json"
	"strings"
	"time"
)

// SessionState is what a session does now.
type SessionState string

// The states of a session. There is no failed: that is idle with an outcome.
const (
	Idle       SessionState = "idle"
	Generating SessionState = "generating"
	Waiting    SessionState = "waiting" // WaitingFor says for what
	Paused     SessionState = "paused"  // nothing running and nothing will be dispatched
)

// Session is one conversation in one directory.
type Session struct {
	ID        string `json:"id"`
	Slug      string `json:"slug"`
	Title     string `json:"title"`
	Directory string `json:"directory"`  // absolute, cleaned, existed at creation
	ProjectID string `json:"project_id"` // git root commit, or "global"
	ParentID  string `json:"parent_id,omitempty"`
	Agent     string `json:"agent,omitempty"`
	// Model is the last model named for the session; zero until one is.
	Model      ModelRef         `json:"model"`
	Permission []PermissionRule `json:"permission,omitempty"`
	Metadata   json.RawMessage  `json:"metadata,omitempty"`
	// Engine is "native" or an agent's name: of the last turn that was
	// dispatched, before the first what the session was made for.
	Engine string `json:"engine"`
	// Resume is the agents' own ids of this session, by engine: where a later
	// conversation goes on.
	Resume map[string]string `json:"resume,omitempty"`
	// Orchestrator is the session that launched this one and may prompt,
	// cancel and rescue it; empty when a person did.
	Orchestrator string `json:"orchestrator,omitempty"`

	// Running is the id of the dispatched, unsettled turn; empty when none is.
	Running string `json:"running,omitempty"`
	// RunningBoot is the boot that dispatched it; a boot that is not live
	// means the turn is orphaned.
	RunningBoot string `json:"running_boot,omitempty"`
	WaitingFor  string `json:"waiting_for,omitempty"` // "permission" or "question"
	Pause       bool   `json:"pause,omitempty"`
	// Rescue is the rescue that holds the queue: only its own prompt is
	// dispatched.
	Rescue string `json:"rescue,omitempty"`
	// Last is the turn that ended last, Outcome how; empty before the first
	// end. It is not the newest one: a rescue's turn runs before older ones.
	Last    string    `json:"last,omitempty"`
	Outcome TurnState `json:"outcome,omitempty"`
	// Generation is the last one given; the next prompt gets Generation+1.
	Generation uint64 `json:"generation"`
	Queued     int    `json:"queued"`   // accepted turns not yet dispatched
	Messages   int    `json:"messages"` // rows in the transcript

	Usage Usage `json:"usage"`
	// Revert marks messages from here on as undone until the next prompt.
	Revert   *Revert   `json:"revert,omitempty"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Archived time.Time `json:"archived,omitzero"`
	// Row is the row's version: +1 with each write. Snapshot events carry it.
	Row int64 `json:"row"`
}

// Revert is the point to which a person undid a session.
type Revert struct {
	MessageID string `json:"message_id"`
	PartID    string `json:"part_id,omitempty"`
}

// State derives the state from the row's facts.
func (s *Session) State() SessionState {
	switch {
	case s.Running != "" && s.WaitingFor != "":
		return Waiting
	case s.Running != "":
		return Generating
	case s.Pause:
		return Paused
	default:
		return Idle
	}
}

// ForPermission and ForQuestion are the values of Session.WaitingFor.
const (
	ForPermission = "permission"
	ForQuestion   = "question"
)

// Intake says what becomes of a prompt, decided inside the transaction that
// stores it.
type Intake string

// The classes of intake.
const (
	Immediate Intake = "immediate" // starts now
	Joined    Intake = "joined"    // queued in the live lane as a turn of its own
	Preempts  Intake = "preempts"  // the open question is rejected, the prompt is next
	NoReply   Intake = "no_reply"  // stored; no turn
	Held      Intake = "held"      // queued behind a runner that is gone, or maintenance
	Delayed   Intake = "delayed"   // becomes a wake
	Refused   Intake = "refused"   // nothing stored
)

// IntakeFacts is all that the decision may look at.
type IntakeFacts struct {
	Session     *Session
	RunnerLive  bool // the boot that runs the current turn is live
	Maintenance bool
	Rescuing    bool // a rescue holds the queue
	Queued      int  // turns waiting in this session
	MaxQueued   int  // bound of the hold queue; 0 is no bound
	NoReply     bool
	DelaySec    int
}

// DecideIntake is the one table of prompt intake. The error explains a
// refusal (Conflict) and is nil otherwise.
func DecideIntake(f IntakeFacts) (Intake, error) {
	s := f.Session
	busy := s.Running != "" || f.Queued > 0
	switch {
	case s.Pause:
		return Refused, Errorf(Conflict, "intake", "session %s is paused; nothing was stored: resume it first", s.ID)
	case f.NoReply:
		return NoReply, nil
	case busy && f.MaxQueued > 0 && f.Queued >= f.MaxQueued:
		return Refused, Errorf(Conflict, "intake", "the queue of session %s is full (%d prompts wait); nothing was stored", s.ID, f.Queued)
	case s.Running != "" && !f.RunnerLive, f.Maintenance:
		return Held, nil
	case s.Running != "" && s.WaitingFor == ForQuestion && !f.Rescuing:
		return Preempts, nil
	case busy || f.Rescuing:
		return Joined, nil
	case f.DelaySec > 0:
		return Delayed, nil
	default:
		return Immediate, nil
	}
}

const defaultTitle = "New session - "

// DefaultTitle is the title of a session that was given none, as OpenCode's
// clients know it (opencode 1.18.33).
func DefaultTitle(now time.Time) string {
	return defaultTitle + now.UTC().Format("2006-01-02T15:04:05.000Z")
}

// IsDefaultTitle reports whether a title may be replaced by a better one.
func IsDefaultTitle(title string) bool {
	return title == "" || strings.HasPrefix(title, defaultTitle) || strings.HasPrefix(title, "Child session - ")
}
