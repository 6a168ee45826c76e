// Package provider makes one model call over HTTP and streams what comes back.
// It speaks two wires, OpenAI's chat completions and Anthropic's messages, and
// decodes both itself: what a failure looked like (status, headers, body) is
// kept whole, because limits.Classify judges by it, and a token costs about a
// microsecond.
//
// Nothing is retried here. A call ends in a Result or in a *CallError that says
// how far it came; what follows from that is the caller's decision.
package provider

import (
	"encoding/json"
	"net/http"
	"time"

	"rouse"
)

// Wires.
const (
	OpenAI    = "openai"    // POST {base}/chat/completions
	Anthropic = "anthropic" // POST {base}/messages
)

// Headers by which Rouse's own engine tells the simulated provider, and no
// other, what a request is for.
const (
	TurnHeader    = "X-Rouse-Turn"    // the turn's id, the same for all its attempts
	PurposeHeader = "X-Rouse-Purpose" // PurposeTitle, PurposeCompact or absent
)

// Purposes of a request.
const (
	PurposeTitle   = "title"
	PurposeCompact = "compact"
)

// BlockKind is the kind of a piece of a message.
type BlockKind uint8

// The kinds of blocks.
const (
	TextBlock BlockKind = iota
	ReasoningBlock
	FileBlock
	CallBlock   // a tool call of the assistant
	ResultBlock // its answer, in a user message
)

// Block is a piece of a message. Which fields count depends on Kind.
type Block struct {
	Kind BlockKind
	Text string // text, reasoning; the output of a result
	// Metadata of reasoning: a JSON object with "signature" or "redacted", as
	// the Anthropic wire gave it. Reasoning without one is not sent back there.
	Metadata json.RawMessage
	File     rouse.File      // file
	CallID   string          // call, result
	Name     string          // call, result: the tool
	Input    json.RawMessage // call: a JSON object
	IsError  bool            // result
	Files    []rouse.File    // result: attachments
}

// Message is one entry of the conversation. Results travel in user messages.
type Message struct {
	Role   rouse.Role
	Blocks []Block
}

// Tool is a function offered to the model; Schema is a JSON Schema object.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Request is one model call.
type Request struct {
	Model    string
	System   []string // pieces of the system prompt, joined by a blank line
	Messages []Message
	Tools    []Tool
	// ToolChoice is "" (the model decides), "none", "required" or a tool's name.
	ToolChoice string
	// MaxTokens bounds the answer; 0 leaves it to the provider (the Anthropic
	// wire demands one: 8192 then).
	MaxTokens   int64
	Temperature *float64
	// Effort is the reasoning variant: "low", "medium", "high", …; "" and
	// "default" send nothing.
	Effort string
	// Options are further fields of the body; they win over what is set above.
	Options map[string]json.RawMessage
	// Header is added to the HTTP request.
	Header http.Header
	// IdleTimeout, if set, stands in place of the provider's.
	IdleTimeout time.Duration
}

// DeltaKind is the kind of a Delta.
type DeltaKind uint8

// The kinds of deltas, in the order in which a call produces them.
const (
	Began     DeltaKind = iota // the first event of the answer arrived; once
	Text                       // a piece of the answer
	Reasoning                  // a piece of the thinking; Metadata, when set, replaces the block's
	ToolBegan                  // ID and Name of a call are known
	ToolInput                  // a fragment of its arguments, in Text
	ToolDone                   // its arguments are complete, in Text
)

// Delta is a piece of the answer. Bytes is the size of the event that brought
// it.
type Delta struct {
	Kind     DeltaKind
	Text     string
	Metadata json.RawMessage
	Call     int // number of the tool call within the answer, from 0
	ID, Name string
	Bytes    int
}

// Call is a finished tool call. Input is what the model wrote, valid JSON or
// not; "{}" where it wrote nothing.
type Call struct {
	ID, Name string
	Input    string
}

// Finish reasons, one vocabulary for both wires.
const (
	FinishStop   = "stop"
	FinishLength = "length"
	FinishTools  = "tool-calls"
	FinishFilter = "content-filter"
	FinishOther  = "other"
)

// Result is what a complete answer leaves behind.
type Result struct {
	Finish string
	Tokens rouse.Tokens
	Calls  []Call
	// Header of the answer: rate-limit windows live there.
	Header http.Header
}

// Price in US dollars per million tokens.
type Price struct {
	Input, Output, CacheRead, CacheWrite float64
}

// Cost of tokens in US dollars. Reasoning is paid as output.
func Cost(t rouse.Tokens, p Price) float64 {
	return (float64(t.Input)*p.Input + float64(t.Output+t.Reasoning)*p.Output +
		float64(t.CacheRead)*p.CacheRead + float64(t.CacheWrite)*p.CacheWrite) / 1e6
}
