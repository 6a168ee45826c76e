package test

import (
	"encoding/json"
	"strings"
	"time"
)

// chat is a session that somebody sits in front of.
type chat struct {
	*lab
	id string
}

// chat makes one.
func (l *lab) chat() *chat {
	l.t.Helper()
	body := map[string]any{"agent": l.program.name, "title": "lab"}
	if m := l.program.model; m != "" {
		body["model"] = map[string]string{"providerID": "acp:" + l.program.name, "id": m}
	}
	var s sessionRow
	l.call("POST", "/session?directory="+l.project, body, &s)
	return &chat{l, s.ID}
}

// asks sends a prompt and does not wait.
func (c *chat) asks(text string) {
	c.t.Helper()
	c.call("POST", "/session/"+c.id+"/prompt_async", map[string]any{"parts": []any{map[string]string{"type": "text", "text": text}}}, nil)
}

// state is the session as the wire shows it.
func (c *chat) state() (s sessionRow) {
	c.t.Helper()
	c.call("GET", "/session/"+c.id, nil, &s)
	return s
}

// settles waits until nothing runs and gives the outcome.
func (c *chat) settles() string {
	c.t.Helper()
	var s sessionRow
	c.until("the turn's end", func() bool { s = c.state(); return s.State == "idle" && s.Queued == 0 && s.Outcome != "" })
	return s.Outcome
}

func (c *chat) until(what string, ok func() bool) {
	c.t.Helper()
	eventually(c.t, what, ok)
}

// saidMessage is a message of the session.
type saidMessage struct {
	Info struct {
		ID, Role, ModelID, ProviderID, Finish string
		Error                                 json.RawMessage
	}
	Parts []struct {
		Type, Text, Tool, CallID string
		State                    struct {
			Status, Output, Title, Error string
			Input                        map[string]any
			Metadata                     map[string]any
		}
	}
}

// messages are all, oldest first.
func (c *chat) messages() (list []saidMessage) {
	c.t.Helper()
	c.call("GET", "/session/"+c.id+"/message", nil, &list)
	return list
}

// answer is the last message with its text.
func (c *chat) answer() (m saidMessage, text string) {
	c.t.Helper()
	list := c.messages()
	if len(list) == 0 {
		c.t.Fatal("the session has no messages")
	}
	m = list[len(list)-1]
	for _, p := range m.Parts {
		if p.Type == "text" {
			text += p.Text
		}
	}
	return m, text
}

// permission is an open one as OpenCode's wire has it.
type permission struct {
	ID, SessionID, Permission string
	Patterns                  []string
	Metadata                  map[string]any
	Always                    []string
	Tool                      struct{ MessageID, CallID string }
}

// asked waits for a permission of the session, or its end.
func (c *chat) asked() (p permission, ok bool) {
	c.t.Helper()
	c.until("a permission", func() bool {
		var open []permission
		c.call("GET", "/permission?directory="+c.project, nil, &open)
		for _, o := range open {
			if o.SessionID == c.id {
				p, ok = o, true
			}
		}
		s := c.state()
		return ok || s.State == "idle" && s.Queued == 0
	})
	return p, ok
}

// healthRow is what the server makes of the session.
type healthRow struct {
	Verdict  struct{ Code, Why string }
	Evidence struct {
		Process        struct{ PID int }
		ModelConfirmed string `json:"model_confirmed"`
		Stderr         struct{ Supported bool }
	}
	Incident *incidentRow
}

type incidentRow struct {
	Kind, Provider, Model, Message, Source string
	ResetAt                                *time.Time `json:"reset_at"`
}

// health asks for it.
func (c *chat) health() (h healthRow) {
	c.t.Helper()
	c.call("GET", "/rouse/v1/sessions/"+c.id+"/health", nil, &h)
	return h
}

// works waits until the agent's model was asked and something came of it: the
// process is known and the turn has progress.
func (c *chat) works() (pid int) {
	c.t.Helper()
	c.until("progress", func() bool {
		pid = c.health().Evidence.Process.PID
		_, text := c.answer()
		return pid != 0 && strings.Contains(text, "Let me think")
	})
	return pid
}

// abort ends the turn as OpenCode's clients do.
func (c *chat) abort() {
	c.t.Helper()
	c.call("POST", "/session/"+c.id+"/abort", nil, nil)
}
