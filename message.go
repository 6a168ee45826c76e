package rouse

import (
	"encoding/json"
	"time"
)

// Role of a message.
type Role string

// The two roles of a transcript.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one row of a transcript; its content is in its parts. An
// assistant message is one step of a turn (one model call), so a turn with
// tools has several, all with the user message as parent.
type Message struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	Role      Role   `json:"role"`
	// Generation of the turn; for noReply messages, the last one given.
	Generation uint64          `json:"generation"`
	TurnID     string          `json:"turn_id,omitempty"`
	ParentID   string          `json:"parent_id,omitempty"` // assistant: the user message
	Agent      string          `json:"agent,omitempty"`
	Model      ModelRef        `json:"model"`
	System     string          `json:"system,omitempty"`
	Tools      map[string]bool `json:"tools,omitempty"`
	Format     json.RawMessage `json:"format,omitempty"`
	Directory  string          `json:"directory,omitempty"` // assistant: where it worked
	// Summary marks an assistant message that compacts what came before it.
	Summary    bool            `json:"summary,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Finish     string          `json:"finish,omitempty"`
	Error      *MessageError   `json:"error,omitempty"`
	Usage      Usage           `json:"usage"`
	Created    time.Time       `json:"created"`
	Completed  time.Time       `json:"completed,omitzero"`
	Row        int64           `json:"row"`
}

// MessageError is the error of an assistant message. State says which of the
// wire's error types it is: cancelled and interrupted are aborts, failed is a
// provider's or agent's error.
type MessageError struct {
	State   TurnState `json:"state"`
	Reason  string    `json:"reason,omitempty"` // interrupted: why
	Failure *Failure  `json:"failure,omitempty"`
}

// PartKind is the kind of a part.
type PartKind string

// The kinds of parts, named as on OpenCode's wire.
const (
	TextPart       PartKind = "text"
	ReasoningPart  PartKind = "reasoning"
	FilePart       PartKind = "file"
	ToolPart       PartKind = "tool"
	StepStart      PartKind = "step-start"
	StepFinish     PartKind = "step-finish"
	AgentPart      PartKind = "agent"
	SubtaskPart    PartKind = "subtask"
	CompactionPart PartKind = "compaction"
)

// Part is a piece of a message. Fields beyond the first block belong to the
// kinds that name them.
type Part struct {
	ID        string   `json:"id"`
	SessionID string   `json:"session_id"`
	MessageID string   `json:"message_id"`
	Kind      PartKind `json:"kind"`
	Row       int64    `json:"row"`
	// Open: still growing or running; the lane holds the live text.
	Open bool `json:"open,omitempty"`

	Text      string          `json:"text,omitempty"` // text, reasoning
	Synthetic bool            `json:"synthetic,omitempty"`
	Ignored   bool            `json:"ignored,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"` // a JSON object
	Start     time.Time       `json:"start,omitzero"`
	End       time.Time       `json:"end,omitzero"`

	Tool *ToolCall `json:"tool,omitempty"` // tool
	File *File     `json:"file,omitempty"` // file
	Step *Step     `json:"step,omitempty"` // step-finish
	// Extra is the body of agent, subtask and compaction parts, as the client
	// sent it.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Broken marks what a model call left behind that was then tried again:
	// shown, but not part of the conversation the model sees.
	Broken *Broken `json:"broken,omitempty"`
}

// Broken says which attempt left a part behind and why.
type Broken struct {
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"`
}

// ToolState is the state of a tool call.
type ToolState string

// The states of a tool call.
const (
	ToolPending   ToolState = "pending"
	ToolRunning   ToolState = "running"
	ToolCompleted ToolState = "completed"
	ToolFailed    ToolState = "error"
)

// ToolCall is the body of a tool part.
type ToolCall struct {
	Name   string          `json:"name"`
	CallID string          `json:"call_id"`
	State  ToolState       `json:"state"`
	Input  json.RawMessage `json:"input,omitempty"` // a JSON object
	Raw    string          `json:"raw,omitempty"`   // pending: the input so far
	Title  string          `json:"title,omitempty"`
	Output string          `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Metadata is a JSON object: exit code, diff, child session …
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Attachments []File          `json:"attachments,omitempty"`
}

// File is an attached file: a data:, file: or http(s): URL with its type.
type File struct {
	Mime     string          `json:"mime"`
	Filename string          `json:"filename,omitempty"`
	URL      string          `json:"url"`
	Source   json.RawMessage `json:"source,omitempty"`
}

// Step is the body of a step-finish part.
type Step struct {
	Reason string `json:"reason"` // stop, tool-calls, length …
	Usage  Usage  `json:"usage"`
}

// Entry is a message with its parts, in order.
type Entry struct {
	Message Message
	Parts   []Part
}

// Todo is one line of a session's list.
type Todo struct {
	Content  string `json:"content"`
	Status   string `json:"status"`   // pending, in_progress, completed, cancelled
	Priority string `json:"priority"` // high, medium, low
}

// Request is an open question to a person: a permission or a question.
type Request struct {
	ID         string `json:"id"`
	SessionID  string `json:"session_id"`
	TurnID     string `json:"turn_id"`
	Generation uint64 `json:"generation"`
	// Kind is ForPermission or ForQuestion.
	Kind      string    `json:"kind"`
	MessageID string    `json:"message_id,omitempty"`
	CallID    string    `json:"call_id,omitempty"`
	Asked     time.Time `json:"asked"`

	Permission string          `json:"permission,omitempty"`
	Patterns   []string        `json:"patterns,omitempty"`
	Always     []string        `json:"always,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`

	Questions []Question `json:"questions,omitempty"`
}

// Question is one question of a question request.
type Question struct {
	Question string   `json:"question"`
	Header   string   `json:"header"`
	Options  []Option `json:"options"`
	Multiple bool     `json:"multiple,omitempty"`
	Custom   *bool    `json:"custom,omitempty"`
}

// Option is one offered answer.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// Verb of a Reply.
const (
	ReplyOnce      = "once"
	ReplyAlways    = "always"
	ReplyReject    = "reject"
	ReplyAnswer    = "answer"    // a question's answers
	ReplyCancelled = "cancelled" // the turn is being cancelled
)

// Reply answers a Request.
type Reply struct {
	Verb    string     `json:"verb"`
	Message string     `json:"message,omitempty"` // reject: told to the model
	Answers [][]string `json:"answers,omitempty"` // per question, the chosen labels
	// By says who answered when it was no person: "superseded", "unattended", "cancel".
	By string `json:"by,omitempty"`
}
