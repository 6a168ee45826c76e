package cli

import (
	"encoding/json"

	"rouse"
	"rouse/internal/client"
)

// The CLI's own JSON: snake_case, RFC 3339 in UTC with milliseconds.

type messageJSON struct {
	ID          string         `json:"id"`
	Session     string         `json:"session"`
	Role        string         `json:"role"`
	Parent      string         `json:"parent,omitempty"`
	Agent       string         `json:"agent,omitempty"`
	Model       rouse.ModelRef `json:"model"`
	CreatedAt   stamp          `json:"created_at"`
	CompletedAt stamp          `json:"completed_at"`
	Finish      string         `json:"finish,omitempty"`
	Error       *errorJSON     `json:"error,omitempty"`
	Usage       *rouse.Usage   `json:"usage,omitempty"`
	Parts       []partJSON     `json:"parts,omitempty"`
}

type errorJSON struct {
	Name     string      `json:"name"`
	Message  string      `json:"message"`
	Class    rouse.Class `json:"class,omitempty"`
	Code     string      `json:"code,omitempty"`
	Status   int         `json:"status,omitempty"`
	Provider string      `json:"provider_id,omitempty"`
	Model    string      `json:"model_id,omitempty"`
	Reason   string      `json:"reason,omitempty"`
	Attempts int         `json:"attempts,omitempty"`
	ResetAt  *stamp      `json:"reset_at,omitempty"`
}

type partJSON struct {
	ID        string          `json:"id"`
	Session   string          `json:"session"`
	Message   string          `json:"message"`
	Kind      string          `json:"kind"`
	Text      string          `json:"text,omitempty"`
	Synthetic bool            `json:"synthetic,omitempty"`
	Tool      *toolJSON       `json:"tool,omitempty"`
	Finish    string          `json:"finish,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Mime      string          `json:"mime,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	StartedAt *stamp          `json:"started_at,omitempty"`
	EndedAt   *stamp          `json:"ended_at,omitempty"`
}

type toolJSON struct {
	Name   string          `json:"name"`
	CallID string          `json:"call_id"`
	State  string          `json:"state"`
	Title  string          `json:"title,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Output string          `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func shapeMessage(e client.Entry) messageJSON {
	m := &e.Info
	out := messageJSON{
		ID: m.ID, Session: m.SessionID, Role: m.Role, Parent: m.ParentID, Agent: m.Agent, Model: m.ModelRef(),
		CreatedAt: at(m.Time.Created), CompletedAt: at(m.Time.Completed), Finish: m.Finish, Error: shapeError(m.Error),
	}
	if m.Role == string(rouse.Assistant) {
		t := m.Tokens
		out.Usage = &rouse.Usage{Cost: m.Cost, Tokens: rouse.Tokens{
			Input: t.Input, Output: t.Output, Reasoning: t.Reasoning, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write}}
	}
	for _, p := range e.Parts {
		out.Parts = append(out.Parts, shapePart(p))
	}
	return out
}

func shapeError(e *client.MessageError) *errorJSON {
	if e == nil {
		return nil
	}
	d := &e.Data
	return &errorJSON{
		Name: e.Name, Message: d.Message, Class: d.Class, Code: d.Code, Status: d.StatusCode, Provider: d.ProviderID,
		Model: d.ModelID, Reason: d.Reason, Attempts: d.Attempts, ResetAt: maybe(d.ResetAt),
	}
}

func shapePart(p client.Part) partJSON {
	out := partJSON{
		ID: p.ID, Session: p.SessionID, Message: p.MessageID, Kind: p.Type, Text: p.Text, Synthetic: p.Synthetic,
		Finish: p.Reason, Filename: p.Filename, Mime: p.Mime, Metadata: p.Metadata,
	}
	span := p.Time
	if s := p.State; s != nil {
		out.Tool = &toolJSON{Name: p.Tool, CallID: p.CallID, State: s.Status, Title: s.Title, Input: s.Input, Output: s.Output, Error: s.Error}
		span = s.Time
		if out.Metadata == nil {
			out.Metadata = s.Metadata
		}
	}
	if span != nil {
		out.StartedAt, out.EndedAt = maybe(span.Start), maybe(span.End)
	}
	return out
}

// maybe is a time that is left out when there is none.
func maybe(ms int64) *stamp {
	if ms == 0 {
		return nil
	}
	s := at(ms)
	return &s
}
