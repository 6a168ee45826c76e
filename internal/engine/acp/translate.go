package acp

import (
	"encoding/json"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// translate says what a message means in the engine's words. Empty is noise.
// t is nil between prompts.
func (c *Conversation) translate(h *host, t *turn, m *wire.Message, at time.Time) []engine.Body {
	switch {
	case m.Cancels != nil:
		return c.withdrawn(m.Cancels)
	case m.SessionID == "":
		return nil // nobody knows whose it is
	case m.Permission != nil:
		return c.permission(h, t, m, at)
	case m.Update == nil:
		return nil
	}
	u := m.Update
	switch u.Kind {
	case wire.KindMessage:
		if text := chunkText(u); text != "" {
			return []engine.Body{engine.Text{Text: text}}
		}
	case wire.KindThought:
		if text := chunkText(u); text != "" {
			return []engine.Body{engine.Reasoning{Text: text}}
		}
	case wire.KindTool, wire.KindToolUpdate:
		return c.tool(u.Tool, u.Meta)
	case wire.KindPlan:
		return []engine.Body{planOf(u.Plan)}
	case wire.KindUsage:
		if cost := u.Usage.Cost; cost != nil && cost.Currency == "USD" {
			c.used.Cost = cost.Amount
		}
		return []engine.Body{engine.Usage{}}
	case wire.KindSessionInfo:
		return c.sessionInfo(t, u, at)
	case wire.KindConfigOption:
		if len(u.ConfigOptions) > 0 {
			c.session.ConfigOptions = u.ConfigOptions
			if now := currentModel(c.session); now != "" && now != c.model {
				c.model = now
			}
		}
	case wire.KindCommands:
		c.compact = hasCommand(u.Raw, "compact")
	}
	return nil
}

// chunkText is a chunk's text; what is no text is named, so that it is not lost
// without a word.
func chunkText(u *wire.Update) string {
	if u.Content.Text == "" && u.Content.Other {
		return "[" + wire.Text(wire.At(u.Content.Raw, "type")) + "]"
	}
	text := u.Content.Text
	if notice, failed := judge.Adapters(text); notice || failed {
		return diagnostics.Lines(text) // an adapter passes on what a provider or a library said
	}
	return text
}

func planOf(entries []wire.PlanEntry) engine.Plan {
	p := engine.Plan{Todos: make([]rouse.Todo, 0, len(entries))}
	for _, e := range entries {
		todo := rouse.Todo{Content: e.Content, Status: e.Status, Priority: e.Priority}
		if todo.Status == "" {
			todo.Status = "pending"
		}
		if todo.Priority == "" {
			todo.Priority = "medium"
		}
		p.Todos = append(p.Todos, todo)
	}
	return p
}

// sessionInfo is a new title, or a vendor's word about a retry.
func (c *Conversation) sessionInfo(t *turn, u *wire.Update, at time.Time) []engine.Body {
	var out []engine.Body
	if title := diagnostics.Sanitize(u.Title); title != "" {
		c.titled = true
		out = append(out, engine.TitleSuggested{Title: rouse.Clip(title, 200)})
	}
	if t == nil {
		return out
	}
	if r, ok := judge.RetryIn(u.Meta); ok {
		t.retries++
		t.resting = true
		out = append(out, engine.Retry{Attempt: t.retries, Next: at, Class: r.Class, Message: diagnostics.Sanitize(r.Title)})
	}
	return out
}

// hasCommand reports that an agent offers a slash command.
func hasCommand(update json.RawMessage, name string) bool {
	var list []struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(wire.At(update, "availableCommands"), &list) != nil {
		return false
	}
	for _, c := range list {
		if c.Name == name {
			return true
		}
	}
	return false
}

// kindOf names a message for the vitals.
func kindOf(m *wire.Message) string {
	if m.Update != nil {
		return m.Update.Kind
	}
	return m.Method
}

// shows reports that a body is something of the turn itself and not only about
// it.
func shows(b engine.Body) bool {
	switch b.(type) {
	case engine.TitleSuggested, engine.Usage, engine.Noise, engine.Retry, engine.Resumed, engine.RequestWithdrawn:
		return false
	}
	return true
}
