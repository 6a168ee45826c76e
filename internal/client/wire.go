package client

import (
	"encoding/json"

	"rouse"
)

// This file holds every JSON shape of OpenCode's wire (camelCase, integer
// milliseconds; opencode 1.18.33) with Rouse's additions; own.go those of
// Rouse's own API. Nothing else in the package knows a field's name.

// Model names a model in a prompt.
type Model struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID"`
	Variant    string `json:"variant,omitempty"`
}

// Ref is the vocabulary's form.
func (m Model) Ref() rouse.ModelRef {
	return rouse.ModelRef{Provider: m.ProviderID, Model: m.ModelID, Variant: m.Variant}
}

// modelOf gives nil for "none named", so that the field is left out.
func modelOf(ref rouse.ModelRef) *Model {
	if ref.IsZero() {
		return nil
	}
	return &Model{ref.Provider, ref.Model, ref.Variant}
}

// sessionModel is the same in a session, where the model's id is called id.
type sessionModel struct {
	ID         string `json:"id"`
	ProviderID string `json:"providerID"`
	Variant    string `json:"variant,omitempty"`
}

// Times are in milliseconds since 1970; 0 is unset.
type Times struct {
	Created   int64 `json:"created"`
	Updated   int64 `json:"updated"`
	Completed int64 `json:"completed"`
}

// Tokens of a session or message.
type Tokens struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
	Cache     struct {
		Read  int64 `json:"read"`
		Write int64 `json:"write"`
	} `json:"cache"`
}

// Session as GET /session/:id gives it.
type Session struct {
	ID        string        `json:"id"`
	Slug      string        `json:"slug"`
	Title     string        `json:"title"`
	Directory string        `json:"directory"`
	ParentID  string        `json:"parentID"`
	Agent     string        `json:"agent"`
	Model     *sessionModel `json:"model"`
	Cost      float64       `json:"cost"`
	Tokens    Tokens        `json:"tokens"`
	Time      Times         `json:"time"`

	State        string `json:"state"`
	WaitingFor   string `json:"waitingFor"`
	Outcome      string `json:"outcome"`
	MessageCount int    `json:"messageCount"`
	Queued       int    `json:"queued"`
	Generation   uint64 `json:"generation"`
}

// ModelRef is the session's model in the vocabulary's form.
func (s *Session) ModelRef() rouse.ModelRef {
	if s.Model == nil {
		return rouse.ModelRef{}
	}
	return rouse.ModelRef{Provider: s.Model.ProviderID, Model: s.Model.ID, Variant: s.Model.Variant}
}

type newSession struct {
	Title      string                 `json:"title,omitempty"`
	ParentID   string                 `json:"parentID,omitempty"`
	Agent      string                 `json:"agent,omitempty"`
	Model      *sessionModel          `json:"model,omitempty"`
	Permission []rouse.PermissionRule `json:"permission,omitempty"`
	Metadata   json.RawMessage        `json:"metadata,omitempty"`
}

// PartInput is a part of a prompt.
type PartInput struct {
	Type     string `json:"type"` // "text" or "file"
	Text     string `json:"text,omitempty"`
	Mime     string `json:"mime,omitempty"`
	Filename string `json:"filename,omitempty"`
	URL      string `json:"url,omitempty"` // data: or file:
}

type promptBody struct {
	MessageID string      `json:"messageID,omitempty"`
	Model     *Model      `json:"model,omitempty"`
	Variant   string      `json:"variant,omitempty"`
	Agent     string      `json:"agent,omitempty"`
	System    string      `json:"system,omitempty"`
	NoReply   bool        `json:"noReply,omitempty"`
	DelaySec  int         `json:"delay_sec,omitempty"`
	Parts     []PartInput `json:"parts"`
}

type queuedBody struct {
	Status string `json:"status"` // "queued", "delayed"
	FireAt int64  `json:"fireAt"`
}

// Message is the info of a message of either role.
type Message struct {
	ID         string        `json:"id"`
	SessionID  string        `json:"sessionID"`
	Role       string        `json:"role"`
	ParentID   string        `json:"parentID"`
	Agent      string        `json:"agent"`
	Model      *Model        `json:"model"` // user
	ProviderID string        `json:"providerID"`
	ModelID    string        `json:"modelID"`
	Time       Times         `json:"time"`
	Cost       float64       `json:"cost"`
	Tokens     Tokens        `json:"tokens"`
	Finish     string        `json:"finish"`
	Error      *MessageError `json:"error"`
	Summary    any           `json:"summary"` // true, or a user's diffs
}

// ModelRef is the message's model in the vocabulary's form.
func (m *Message) ModelRef() rouse.ModelRef {
	if m.Model != nil {
		return m.Model.Ref()
	}
	return rouse.ModelRef{Provider: m.ProviderID, Model: m.ModelID}
}

// MessageError is the error of an assistant message or of session.error.
type MessageError struct {
	Name string `json:"name"` // APIError, MessageAbortedError, UnknownError …
	Data struct {
		Message    string      `json:"message"`
		StatusCode int         `json:"statusCode"`
		Reason     string      `json:"reason"`
		Code       string      `json:"code"`
		Class      rouse.Class `json:"class"`
		ProviderID string      `json:"providerID"`
		ModelID    string      `json:"modelID"`
		ResetAt    int64       `json:"resetAt"`
		Attempts   int         `json:"attempts"`
	} `json:"data"`
}

// Aborted says that the turn was cancelled or interrupted.
func (e *MessageError) Aborted() bool { return e.Name == "MessageAbortedError" }

// Part of a message.
type Part struct {
	ID        string          `json:"id"`
	SessionID string          `json:"sessionID"`
	MessageID string          `json:"messageID"`
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Synthetic bool            `json:"synthetic"`
	Metadata  json.RawMessage `json:"metadata"`
	Time      *Span           `json:"time"`
	Tool      string          `json:"tool"`
	CallID    string          `json:"callID"`
	State     *ToolState      `json:"state"`
	Reason    string          `json:"reason"` // step-finish
	Filename  string          `json:"filename"`
	Mime      string          `json:"mime"`
	URL       string          `json:"url"`
}

// Span of a part, in milliseconds; End 0 is "still open".
type Span struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// ToolState is the state of a tool part.
type ToolState struct {
	Status   string          `json:"status"` // pending, running, completed, error
	Title    string          `json:"title"`
	Input    json.RawMessage `json:"input"`
	Output   string          `json:"output"`
	Error    string          `json:"error"`
	Metadata json.RawMessage `json:"metadata"`
	Time     *Span           `json:"time"`
}

// Entry is a message with its parts.
type Entry struct {
	Info  Message `json:"info"`
	Parts []Part  `json:"parts"`
}

// Request is an open permission or question.
type Request struct {
	ID         string          `json:"id"`
	SessionID  string          `json:"sessionID"`
	Permission string          `json:"permission"`
	Patterns   []string        `json:"patterns"`
	Metadata   json.RawMessage `json:"metadata"`
	Questions  []struct {
		Question string `json:"question"`
		Header   string `json:"header"`
	} `json:"questions"`
}

type permissionReply struct {
	Reply   string `json:"reply"`
	Message string `json:"message,omitempty"`
}

type questionReply struct {
	Answers [][]string `json:"answers"`
}

type envelope struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties"`
	Directory  string          `json:"directory"`
	Payload    *envelope       `json:"payload"` // /global/event wraps
}

// owner finds the session of an event, wherever its type keeps it.
type owner struct {
	SessionID string `json:"sessionID"`
	Info      struct {
		ID        string `json:"id"`
		SessionID string `json:"sessionID"`
	} `json:"info"`
	Part struct {
		SessionID string `json:"sessionID"`
	} `json:"part"`
}

// Status is the properties of session.status.
type Status struct {
	Status struct {
		Type    string      `json:"type"` // idle, busy, retry
		Attempt int         `json:"attempt"`
		Message string      `json:"message"`
		Next    int64       `json:"next"`
		Class   rouse.Class `json:"class"`
	} `json:"status"`
}

// Delta is the properties of message.part.delta.
type Delta struct {
	MessageID string `json:"messageID"`
	PartID    string `json:"partID"`
	Field     string `json:"field"`
	Delta     string `json:"delta"`
}

// PartUpdated, MessageUpdated and Errored are the properties of
// message.part.updated, message.updated and session.error.
type (
	PartUpdated    struct{ Part Part }
	MessageUpdated struct{ Info Message }
	Errored        struct{ Error *MessageError }
)

// Provider as GET /provider and /config/providers give it.
type Provider struct {
	ID     string                   `json:"id"`
	Name   string                   `json:"name"`
	Source string                   `json:"source"`
	Env    []string                 `json:"env"`
	Models map[string]ProviderModel `json:"models"`
}

// ProviderModel is a model of a provider.
type ProviderModel struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Capabilities struct {
		Reasoning  bool `json:"reasoning"`
		Attachment bool `json:"attachment"`
		ToolCall   bool `json:"toolcall"`
	} `json:"capabilities"`
	Cost struct {
		Input  float64 `json:"input"`
		Output float64 `json:"output"`
	} `json:"cost"`
	Limit struct {
		Context int64 `json:"context"`
		Output  int64 `json:"output"`
	} `json:"limit"`
	Variants map[string]json.RawMessage `json:"variants"`
}

// Quota marks a provider that said it takes no work until a time.
type Quota struct {
	ProviderID string      `json:"providerID"`
	ModelID    string      `json:"modelID"` // "": the whole account
	Limit      string      `json:"limit"`
	ResetAt    int64       `json:"resetAt"` // ms; 0: not said
	Confidence string      `json:"confidence"`
	Class      rouse.Class `json:"class"`
	State      string      `json:"state"` // open, half_open
}

// Providers is the answer of GET /provider.
type Providers struct {
	All       []Provider        `json:"all"`
	Default   map[string]string `json:"default"`
	Connected []string          `json:"connected"`
	// Unusable says of providers that are configured but not connected why.
	Unusable map[string]string `json:"unusable"`
	Quota    []Quota           `json:"quota"`
}

// Agent as GET /agent gives it.
type Agent struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Mode        string  `json:"mode"`
	Native      bool    `json:"native"`
	Hidden      bool    `json:"hidden"`
	Model       *Model  `json:"model"`
	Temperature float64 `json:"temperature"`
}

// Health is the answer of GET /global/health.
type Health struct {
	Healthy bool   `json:"healthy"`
	Version string `json:"version"`
}

type problem struct {
	Name    string          `json:"name"`
	Tag     string          `json:"_tag"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

type problemData struct {
	Message string `json:"message"`
	Field   string `json:"field"`
	Ref     string `json:"ref"`
}
