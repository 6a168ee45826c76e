package opencode

import (
	"bytes"
	"encoding/json"
	"time"

	"rouse"
)

// The objects of OpenCode's wire (opencode 1.18.33, GET /doc and recordings).
// Times are integer milliseconds since 1970. Fields after a blank line in a
// struct are Rouse's own additions, which OpenCode's clients ignore.

type wireModel struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID"`
	Variant    string `json:"variant,omitempty"`
}

// wireSessionModel names the model id "id", as a session does on this wire.
type wireSessionModel struct {
	ID         string `json:"id"`
	ProviderID string `json:"providerID"`
	Variant    string `json:"variant,omitempty"`
}

type wireCache struct {
	Read  int64 `json:"read"`
	Write int64 `json:"write"`
}

type wireTokens struct {
	Total     int64     `json:"total,omitempty"`
	Input     int64     `json:"input"`
	Output    int64     `json:"output"`
	Reasoning int64     `json:"reasoning"`
	Cache     wireCache `json:"cache"`
}

type wireTime struct {
	Created   int64 `json:"created"`
	Updated   int64 `json:"updated,omitempty"`
	Completed int64 `json:"completed,omitempty"`
	Archived  int64 `json:"archived,omitempty"`
}

type wireSpan struct {
	Start int64 `json:"start"`
	End   int64 `json:"end,omitempty"`
}

type wireRevert struct {
	MessageID string `json:"messageID"`
	PartID    string `json:"partID,omitempty"`
}

type wireSession struct {
	ID         string                 `json:"id"`
	Slug       string                 `json:"slug"`
	ProjectID  string                 `json:"projectID"`
	Directory  string                 `json:"directory"`
	Path       string                 `json:"path"`
	ParentID   string                 `json:"parentID,omitempty"`
	Cost       float64                `json:"cost"`
	Tokens     wireTokens             `json:"tokens"`
	Title      string                 `json:"title"`
	Agent      string                 `json:"agent,omitempty"`
	Model      *wireSessionModel      `json:"model,omitempty"`
	Version    string                 `json:"version"`
	Time       wireTime               `json:"time"`
	Permission []rouse.PermissionRule `json:"permission,omitempty"`
	Metadata   json.RawMessage        `json:"metadata,omitempty"`
	Revert     *wireRevert            `json:"revert,omitempty"`

	State        rouse.SessionState `json:"state"`
	WaitingFor   *string            `json:"waitingFor"`
	Outcome      *rouse.TurnState   `json:"outcome"`
	MessageCount int                `json:"messageCount"`
	Queued       int                `json:"queued"`
	Generation   uint64             `json:"generation"`
	Orchestrator string             `json:"orchestrator,omitempty"`
	// Progress is there only on GET /session/:id and only while a turn runs.
	Progress *wireProgress `json:"progress,omitempty"`
}

type wireUser struct {
	ID        string          `json:"id"`
	SessionID string          `json:"sessionID"`
	Role      rouse.Role      `json:"role"`
	Time      wireTime        `json:"time"`
	Agent     string          `json:"agent"`
	Model     wireModel       `json:"model"`
	System    string          `json:"system,omitempty"`
	Tools     map[string]bool `json:"tools,omitempty"`
	Format    json.RawMessage `json:"format,omitempty"`
}

type wirePath struct {
	Cwd  string `json:"cwd"`
	Root string `json:"root"`
}

type wireAssistant struct {
	ID         string          `json:"id"`
	SessionID  string          `json:"sessionID"`
	Role       rouse.Role      `json:"role"`
	Time       wireTime        `json:"time"`
	ParentID   string          `json:"parentID"`
	ModelID    string          `json:"modelID"`
	ProviderID string          `json:"providerID"`
	Variant    string          `json:"variant,omitempty"`
	Mode       string          `json:"mode"`
	Agent      string          `json:"agent"`
	Path       wirePath        `json:"path"`
	Cost       float64         `json:"cost"`
	Tokens     wireTokens      `json:"tokens"`
	Finish     string          `json:"finish,omitempty"`
	Error      *wireError      `json:"error,omitempty"`
	Summary    bool            `json:"summary,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
}

// wireEntry is a message as the message routes give it.
type wireEntry struct {
	Info  any   `json:"info"` // wireUser or wireAssistant
	Parts []any `json:"parts"`
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func renderTokens(t rouse.Tokens, total bool) wireTokens {
	w := wireTokens{Input: t.Input, Output: t.Output, Reasoning: t.Reasoning,
		Cache: wireCache{Read: t.CacheRead, Write: t.CacheWrite}}
	if total {
		w.Total = t.Total()
	}
	return w
}

// object returns raw when it is a JSON object, else nil: a row must never
// make a whole answer unreadable.
func object(raw json.RawMessage) json.RawMessage {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(trimmed) {
		return nil
	}
	return trimmed
}

// objectOr is object with a fallback for the fields this wire requires.
func objectOr(raw json.RawMessage) json.RawMessage {
	if o := object(raw); o != nil {
		return o
	}
	return json.RawMessage("{}")
}

func renderSession(s *rouse.Session) wireSession {
	w := wireSession{
		ID: s.ID, Slug: s.Slug, ProjectID: s.ProjectID, Directory: s.Directory,
		ParentID: s.ParentID, Cost: s.Usage.Cost, Tokens: renderTokens(s.Usage.Tokens, false),
		Title: s.Title, Agent: s.Agent, Version: rouse.Version,
		Time:       wireTime{Created: millis(s.Created), Updated: millis(s.Updated), Archived: millis(s.Archived)},
		Permission: s.Permission, Metadata: object(s.Metadata),
		State: s.State(), MessageCount: s.Messages, Queued: s.Queued,
		Generation: s.Generation, Orchestrator: s.Orchestrator,
	}
	if !s.Model.IsZero() {
		w.Model = &wireSessionModel{ID: s.Model.Model, ProviderID: s.Model.Provider, Variant: s.Model.Variant}
	}
	if s.Revert != nil {
		w.Revert = &wireRevert{MessageID: s.Revert.MessageID, PartID: s.Revert.PartID}
	}
	if s.Running != "" && s.WaitingFor != "" {
		w.WaitingFor = &s.WaitingFor
	}
	if s.Outcome != "" {
		w.Outcome = &s.Outcome
	}
	return w
}

func renderSessions(list []rouse.Session) []wireSession {
	out := make([]wireSession, len(list))
	for i := range list {
		out[i] = renderSession(&list[i])
	}
	return out
}

// renderMessage gives the info object of a message.
func renderMessage(m *rouse.Message) any {
	if m.Role == rouse.User {
		return wireUser{
			ID: m.ID, SessionID: m.SessionID, Role: m.Role, Time: wireTime{Created: millis(m.Created)},
			Agent: m.Agent, System: m.System, Tools: m.Tools, Format: object(m.Format),
			Model: wireModel{ProviderID: m.Model.Provider, ModelID: m.Model.Model, Variant: m.Model.Variant},
		}
	}
	mode := m.Agent
	if m.Summary {
		mode = "compaction" // opencode 1.18.33 names both mode and agent so
	}
	w := wireAssistant{
		ID: m.ID, SessionID: m.SessionID, Role: m.Role,
		Time:     wireTime{Created: millis(m.Created), Completed: millis(m.Completed)},
		ParentID: m.ParentID, ModelID: m.Model.Model, ProviderID: m.Model.Provider, Variant: m.Model.Variant,
		Mode: mode, Agent: mode, Path: wirePath{Cwd: m.Directory, Root: m.Directory},
		Cost: m.Usage.Cost, Tokens: renderTokens(m.Usage.Tokens, true),
		Finish: m.Finish, Error: renderMessageError(m.Error), Summary: m.Summary,
	}
	if len(m.Structured) > 0 && json.Valid(m.Structured) {
		w.Structured = m.Structured
	}
	return w
}

func renderEntry(e *rouse.Entry) wireEntry {
	w := wireEntry{Info: renderMessage(&e.Message), Parts: make([]any, len(e.Parts))}
	for i := range e.Parts {
		w.Parts[i] = renderPart(&e.Parts[i])
	}
	return w
}
