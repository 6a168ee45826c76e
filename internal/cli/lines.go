package cli

import (
	"encoding/json"
	"io"
	"time"

	"rouse/internal/client"
)

// lines shows news to a program: one JSON object per line, each with type, at
// and session. Text and reasoning come when their part is whole.
type lines struct {
	enc *json.Encoder
	now func() time.Time
}

func newLines(w io.Writer) *lines {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &lines{enc: enc, now: time.Now}
}

// lineJSON is one line. Type is session, text, reasoning, tool, step_start,
// step_finish, retry, asked, answered, error, idle or done.
type lineJSON struct {
	Type    string     `json:"type"`
	At      stamp      `json:"at"`
	Session string     `json:"session"`
	Part    *partJSON  `json:"part,omitempty"`
	Error   *errorJSON `json:"error,omitempty"`
	Retry   *retryJSON `json:"retry,omitempty"`
	Request *askedJSON `json:"request,omitempty"`
	Done    *doneJSON  `json:"done,omitempty"`
}

type retryJSON struct {
	Attempt int    `json:"attempt"`
	Next    stamp  `json:"next"`
	Class   string `json:"class,omitempty"`
	Message string `json:"message,omitempty"`
}

type askedJSON struct {
	ID         string   `json:"id"`
	Kind       string   `json:"kind"`
	Permission string   `json:"permission,omitempty"`
	Patterns   []string `json:"patterns,omitempty"`
	Questions  []string `json:"questions,omitempty"`
	Answer     string   `json:"answer,omitempty"` // of type answered
}

// doneJSON is how a run ended.
type doneJSON struct {
	Outcome    string `json:"outcome"` // completed, failed, cancelled, interrupted
	ExitCode   int    `json:"exit_code"`
	Message    string `json:"message,omitempty"`
	Turn       string `json:"turn,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
	Finish     string `json:"finish,omitempty"`
}

func (l *lines) put(kind, session string, fill func(*lineJSON)) {
	x := lineJSON{Type: kind, At: stamp(l.now()), Session: session}
	if fill != nil {
		fill(&x)
	}
	_ = l.enc.Encode(x) // a reader that went away ends the program by SIGPIPE
}

func (l *lines) part(kind string, p client.Part) {
	l.put(kind, p.SessionID, func(x *lineJSON) { s := shapePart(p); x.Part = &s })
}

func (l *lines) text(p client.Part, _ string, end bool) {
	if end {
		l.part(p.Type, p)
	}
}

func (l *lines) tool(p client.Part) {
	if p.State.Status != "pending" {
		l.part("tool", p)
	}
}

func (l *lines) step(p client.Part) {
	kind := "step_start"
	if p.Type == "step-finish" {
		kind = "step_finish"
	}
	l.part(kind, p)
}

func (l *lines) retry(session string, s client.Status) {
	l.put("retry", session, func(x *lineJSON) {
		x.Retry = &retryJSON{s.Status.Attempt, at(s.Status.Next), string(s.Status.Class), s.Status.Message}
	})
}

func (l *lines) failed(session string, e *client.MessageError) {
	l.put("error", session, func(x *lineJSON) { x.Error = shapeError(e) })
}

func (l *lines) idle(session string) { l.put("idle", session, nil) }

func (l *lines) asked(r client.Request) {
	l.put("asked", r.SessionID, func(x *lineJSON) { x.Request = shapeRequest(r, "") })
}

func shapeRequest(r client.Request, answer string) *askedJSON {
	out := &askedJSON{ID: r.ID, Kind: "permission", Permission: r.Permission, Patterns: r.Patterns, Answer: answer}
	if r.Permission == "" {
		out.Kind = "question"
	}
	for _, q := range r.Questions {
		out.Questions = append(out.Questions, q.Question)
	}
	return out
}
