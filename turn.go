package rouse

import (
	"encoding/json"
	"time"
)

// TurnState is the state of one prompt and all that is done to answer it.
type TurnState string

// The states of a turn. The last four are settled: written once.
const (
	TurnQueued      TurnState = "queued"
	TurnRunning     TurnState = "running"
	TurnWaiting     TurnState = "waiting" // on a permission or a question
	TurnCompleted   TurnState = "completed"
	TurnFailed      TurnState = "failed"
	TurnCancelled   TurnState = "cancelled"
	TurnInterrupted TurnState = "interrupted" // Rouse's own process or lease is gone
)

// Settled reports whether the state is an end.
func (s TurnState) Settled() bool {
	switch s {
	case TurnCompleted, TurnFailed, TurnCancelled, TurnInterrupted:
		return true
	}
	return false
}

// TurnKind says what a turn asks of its engine.
type TurnKind string

// The kinds of turns.
const (
	TurnAnswer  TurnKind = ""        // answer the prompt
	TurnCompact TurnKind = "compact" // summarize the transcript
	TurnShell   TurnKind = "shell"   // run Command as the person would
)

// Turn is one prompt, one dispatch, one generation.
type Turn struct {
	ID         string    `json:"id"`
	SessionID  string    `json:"session_id"`
	Generation uint64    `json:"generation"` // given at acceptance
	State      TurnState `json:"state"`
	// Epoch is +1 on dispatch, on each genuine event and at the end, as far
	// as it was written; the lane's vitals are ahead of it.
	Epoch uint64 `json:"epoch"`
	// Claimed is the end that was decided but not yet settled (an error claim
	// waits up to 500 ms for richer evidence). No second claim is accepted.
	Claimed TurnState `json:"claimed,omitempty"`
	// Draining: settled while the engine's prompt was still open; the next
	// prompt waits for its return or its process's death.
	Draining bool   `json:"draining,omitempty"`
	Boot     string `json:"boot,omitempty"` // who dispatched it
	// Kind is what is asked: an answer, a summary, or a person's own command.
	Kind TurnKind `json:"kind,omitempty"`
	// Command is the shell command of a TurnShell.
	Command string `json:"command,omitempty"`
	// UserMessage is the prompt's message.
	UserMessage string `json:"user_message"`
	RetryOf     string `json:"retry_of,omitempty"`
	// Rescue is the rescue whose prompt this is.
	Rescue string          `json:"rescue,omitempty"`
	Agent  string          `json:"agent,omitempty"`
	Model  ModelRef        `json:"model"`
	System string          `json:"system,omitempty"`
	Tools  map[string]bool `json:"tools,omitempty"`
	Format json.RawMessage `json:"format,omitempty"`
	// Unattended: nobody is there to answer; what would ask is rejected.
	Unattended bool `json:"unattended,omitempty"`
	// Behind: accepted behind another turn of its session. While a wall stands
	// it waits, where a fresh prompt is tried or refused.
	Behind bool `json:"behind,omitempty"`
	// Force: dispatched although a wall stands.
	Force    bool      `json:"force,omitempty"`
	Finish   string    `json:"finish,omitempty"` // stop, length, max_turn_requests, error …
	Failure  *Failure  `json:"failure,omitempty"`
	Usage    Usage     `json:"usage"`
	Accepted time.Time `json:"accepted"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
}

// Class is what kind of failure a turn met; limits.Classify names it.
type Class string

// The classes of failure.
const (
	ClassNone     Class = "none"
	ClassQuota    Class = "quota"
	ClassRate     Class = "rate"
	ClassBilling  Class = "billing"
	ClassAuth     Class = "auth"
	ClassCapacity Class = "capacity"
	ClassNetwork  Class = "network"
	ClassContext  Class = "context"
	ClassModel    Class = "model"
)

// Failure is what is known of a failed end. Message is sanitized and bounded
// (2,048 bytes) before it gets here.
type Failure struct {
	Class    Class  `json:"class"`
	Code     string `json:"code"` // provider_quota_limited, provider_unavailable, agent_error …
	Provider string `json:"provider_id,omitempty"`
	Model    string `json:"model_id,omitempty"`
	Message  string `json:"message,omitempty"`
	// ResetAt is when capacity returns; zero when unknown, never a guess.
	ResetAt     time.Time `json:"reset_at,omitzero"`
	ResetSource string    `json:"reset_source,omitempty"`
	Confidence  string    `json:"confidence,omitempty"`
	LimitName   string    `json:"limit_name,omitempty"`
	// LimitModel is the model or model family that the limit names; empty when
	// it names none and the whole account is meant.
	LimitModel string `json:"limit_model,omitempty"`
	// RemediationURL goes into the incident and nowhere else: not with the turn,
	// its messages or events.
	RemediationURL string `json:"-"`
	Source         string `json:"source,omitempty"` // provider_http, acp_error, opencode_stderr, process, watch …
	Status         int    `json:"status,omitempty"` // HTTP status, where there was one
	// Retryable: the same request may succeed later without a change.
	Retryable bool `json:"retryable,omitempty"`
	// Attempts made before giving up.
	Attempts int `json:"attempts,omitempty"`
}

// Codes of a failure beyond the class; they are also the kinds of incidents.
const (
	CodeQuota       = "provider_quota_limited"
	CodeRate        = "provider_rate_limited"
	CodeAuth        = "provider_auth"
	CodeBilling     = "provider_billing"
	CodeUnavailable = "provider_unavailable"
	CodeModel       = "model_unavailable"
	CodeContext     = "context_overflow"
	CodeAgent       = "agent_error"
	CodeLaunch      = "launch_failed"
	CodeNever       = "never_started"
	CodeExited      = "agent_exited"
	CodeInterrupted = "interrupted"
	CodePerson      = "needs_person"
)

// CodeOf maps a class to its code.
func CodeOf(c Class) string {
	switch c {
	case ClassQuota:
		return CodeQuota
	case ClassRate:
		return CodeRate
	case ClassAuth:
		return CodeAuth
	case ClassBilling:
		return CodeBilling
	case ClassCapacity, ClassNetwork:
		return CodeUnavailable
	case ClassModel:
		return CodeModel
	case ClassContext:
		return CodeContext
	default:
		return CodeAgent
	}
}

// Prompt is what an engine is given to answer.
type Prompt struct {
	SessionID  string
	TurnID     string
	Generation uint64
	MessageID  string // the user message in the transcript
	Parts      []Part
	Agent      string
	Model      ModelRef
	System     string
	Tools      map[string]bool
	Format     json.RawMessage
	Unattended bool
	// Rules are the session's own permission rules and what people allowed
	// "always" in its directory; they come after the agent's, so they win.
	Rules []PermissionRule
	// Kind asks for an answer, a summary of the transcript (TurnCompact), or
	// runs Command in the bash tool without asking anybody (TurnShell).
	Kind    TurnKind
	Command string
	// Auto says that a TurnCompact was not a person's wish.
	Auto bool
}
