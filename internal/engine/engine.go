// Package engine is the border between a session's lane and whatever answers
// its prompts: Rouse's own loop (native), an agent program (acp) or the drill.
//
// The lane opens a Conversation once and gives it one Prompt at a time. The
// engine reports through the Sink while it works and returns an Outcome, never
// a bare error. enginetest is the suite that every engine passes.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"rouse"
)

// Engine opens conversations.
type Engine interface {
	// Open makes a new conversation or resumes Spec.Resume. ctx bounds the
	// opening only. An error says why nothing can be asked of it; its safe
	// message is shown to a person.
	Open(ctx context.Context, spec Spec, sink Sink) (Conversation, error)
}

// Conversation answers one prompt at a time. The Sink lives as long as it.
type Conversation interface {
	// Prompt works until the turn ends and always gives an Outcome. ctx ends
	// it by force (Stop, shutdown); context.Cause says why.
	Prompt(ctx context.Context, p rouse.Prompt) Outcome
	// Answer replies to a request that was asked through the Sink. An unknown
	// or settled request is NotFound.
	Answer(ctx context.Context, requestID string, r rouse.Reply) error
	// Cancel asks the running prompt to end. The lane owns what follows if it
	// does not. No prompt running is no error.
	Cancel(ctx context.Context) error
	// Stop ends the running prompt by force.
	Stop(ctx context.Context) error
	// Probe asks whether the other side still answers its protocol;
	// ErrUnsupported where there is no harmless request.
	Probe(ctx context.Context) error
	// Info describes the conversation as it is now.
	Info() Info
	// Close frees everything; a second call is no error. No update follows.
	Close() error
}

// ErrUnsupported is Probe's answer where there is no harmless request.
var ErrUnsupported = errors.New("engine: probe unsupported")

// LaunchError is why a conversation could not be opened, where more is known
// than a message: its Failure becomes the turn's.
type LaunchError struct {
	Failure rouse.Failure
	Err     error // for the log
}

// Error is the failure's message, which is safe to show.
func (e *LaunchError) Error() string { return e.Failure.Message }

// Unwrap gives the cause.
func (e *LaunchError) Unwrap() error { return e.Err }

// Spec is what a conversation is opened with.
type Spec struct {
	Session   rouse.Session
	Directory string
	Agent     string
	Model     rouse.ModelRef
	// Resume is the engine's own session id of an earlier conversation.
	Resume string
	// Env is given to processes that the engine starts for the session:
	// ROUSE_SERVER, ROUSE_TOKEN, ROUSE_SESSION.
	Env []string
}

// Info describes a conversation.
type Info struct {
	EngineSession  string // resume id
	PID            int    // 0: no process of its own
	ModelConfirmed string // "true", "false", "unknown"
	Diagnostics    string // "supported", "unsupported"
	// Idle is how long the conversation is worth keeping between prompts; 0 is
	// the lane's own measure.
	Idle time.Duration
}

// Sink takes what an engine reports. Update may block for back-pressure until
// the lane has room or ctx ends; it never drops. It is safe for concurrent use.
type Sink interface {
	Update(ctx context.Context, u Update)
}

// Update is one report. At is when the reader saw it, not when the lane did.
type Update struct {
	Generation uint64
	At         time.Time
	// Genuine: progress of the turn itself. It does not follow from the kind
	// alone: an adapter's banner is text and is noise.
	Genuine bool
	Bytes   int // size on the wire, for vitals
	Body    Body
}

// Body is the sealed sum of what can be reported.
type Body interface{ body() }

// Text is a piece of the answer. Consecutive pieces are one part.
type Text struct{ Text string }

// Reasoning is a piece of the model's thinking. Metadata, when set, replaces
// the part's metadata (a JSON object; Anthropic's signature lives there).
type Reasoning struct {
	Text     string
	Metadata json.RawMessage
}

// StepStarted begins a step: one model call, one assistant message. An engine
// that knows no steps never sends it; the lane then makes one message.
type StepStarted struct {
	Agent string
	Model rouse.ModelRef
	// Compaction: the step summarizes the transcript. Auto says that an
	// overflow caused it.
	Compaction, Auto bool
}

// StepEnded ends a step with the model's finish reason ("stop", "tool-calls",
// "length", "content-filter" …).
type StepEnded struct {
	Finish string
	Usage  rouse.Usage
	// Structured is the value of a turn with a JSON schema format.
	Structured json.RawMessage
}

// ToolStarted is a call the model began. State is ToolPending while its input
// still streams and ToolRunning (with Input) once it runs; the same CallID may
// be sent again to go from one to the other. Nested calls of a child name
// their Parent and make no part of their own.
type ToolStarted struct {
	CallID, Name, Title string
	State               rouse.ToolState
	Input               json.RawMessage
	Metadata            json.RawMessage
	Parent              string
}

// ToolProgress updates a running call. Nil fields leave the part as it is; an
// update with neither only shows that the tool's child moves.
type ToolProgress struct {
	CallID, Title string
	Metadata      json.RawMessage
}

// ToolEnded ends a call; Error set means it failed.
type ToolEnded struct {
	CallID, Title, Output, Error string
	Metadata                     json.RawMessage
	Attachments                  []rouse.File
}

// Plan replaces the session's todo list.
type Plan struct{ Todos []rouse.Todo }

// PermissionAsked opens a request. The engine waits for Answer. The lane fills
// session, turn, message and time.
type PermissionAsked struct{ Request rouse.Request }

// QuestionAsked opens a request with questions.
type QuestionAsked struct{ Request rouse.Request }

// RequestWithdrawn says that the engine no longer waits for the answer.
type RequestWithdrawn struct{ RequestID string }

// Retry says that an attempt failed and when the next starts. Broken: the
// attempt had already produced parts; they are closed and marked.
type Retry struct {
	Attempt int
	Next    time.Time
	Class   rouse.Class
	Message string
	Broken  bool
}

// Resumed says that the wait of a Retry is over and the next attempt runs.
type Resumed struct{}

// Usage is a running count; it is noise for the watch.
type Usage struct{ Usage rouse.Usage }

// Diagnostic is a finding outside the protocol (an agent's stderr record).
// Terminal claims the end of the turn with it.
type Diagnostic struct {
	Failure  rouse.Failure
	Terminal bool
	Reason   string // why it was ignored, where it was
	Count    int    // how many ignored lines it stands for; 0 is one
}

// History is a replayed update of an earlier turn: never progress.
type History struct{}

// Exit says that the process behind the conversation ended.
type Exit struct {
	Reason string
	Killed bool // by Rouse
}

// TitleSuggested is a title for the session from the model or agent.
type TitleSuggested struct{ Title string }

// Noise is everything else: it shows that a pipe lives, not that a turn moves.
type Noise struct{ Kind string }

func (Text) body()             {}
func (Reasoning) body()        {}
func (StepStarted) body()      {}
func (StepEnded) body()        {}
func (ToolStarted) body()      {}
func (ToolProgress) body()     {}
func (ToolEnded) body()        {}
func (Plan) body()             {}
func (PermissionAsked) body()  {}
func (QuestionAsked) body()    {}
func (RequestWithdrawn) body() {}
func (Retry) body()            {}
func (Resumed) body()          {}
func (Usage) body()            {}
func (Diagnostic) body()       {}
func (History) body()          {}
func (Exit) body()             {}
func (TitleSuggested) body()   {}
func (Noise) body()            {}

// Outcome is how a prompt ended, with its evidence.
type Outcome struct {
	// State is TurnCompleted, TurnFailed or TurnCancelled. Interrupted is not
	// an engine's to say.
	State   rouse.TurnState
	Finish  string // stop, length, max_turn_requests, refusal, error …
	Failure *rouse.Failure
	// Evidence says in one line what the outcome rests on.
	Evidence string
	Usage    rouse.Usage
	// OpenTools and OpenRequests are call and request ids left open; the lane
	// closes them.
	OpenTools    []string
	OpenRequests []string
}
