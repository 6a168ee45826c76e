package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"rouse"
)

// NewSession describes a session to create. Empty fields are the server's choice.
type NewSession struct {
	Directory  string
	Title      string
	ParentID   string
	Agent      string
	Model      rouse.ModelRef
	Permission []rouse.PermissionRule
	Metadata   json.RawMessage
}

func esc(id string) string { return url.PathEscape(id) }

func inDirectory(dir string) url.Values {
	if dir == "" {
		return nil
	}
	return url.Values{"directory": {dir}}
}

// Create makes a session. warning is what the server says about its directory
// (a linked git worktree); usually empty.
func (c *Client) Create(ctx context.Context, in NewSession) (s *Session, warning string, err error) {
	body := newSession{Title: in.Title, ParentID: in.ParentID, Agent: in.Agent, Permission: in.Permission, Metadata: in.Metadata}
	if !in.Model.IsZero() {
		body.Model = &sessionModel{ID: in.Model.Model, ProviderID: in.Model.Provider, Variant: in.Model.Variant}
	}
	s = new(Session)
	h, err := c.do(ctx, call{method: http.MethodPost, path: "/session", query: inDirectory(in.Directory), in: body, out: s})
	if err != nil {
		return nil, "", err
	}
	return s, h.Get("X-Session-Directory-Warning"), nil
}

// Session reads one session; NotFound.
func (c *Client) Session(ctx context.Context, id string) (*Session, error) {
	s := new(Session)
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/session/" + esc(id), out: s})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SessionPage is one page of a list, newest first.
type SessionPage struct {
	Sessions []Session
	Total    int
	HasMore  bool
	Next     string // cursor of the next page
}

// Sessions lists sessions of a directory ("" is all), newest first. roots
// leaves out sub-agents' sessions; limit 0 is the server's choice.
func (c *Client) Sessions(ctx context.Context, directory string, roots bool, limit int, cursor string) (SessionPage, error) {
	q := inDirectory(directory)
	if q == nil {
		q = url.Values{}
	}
	if roots {
		q.Set("roots", "true")
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	var page SessionPage
	h, err := c.do(ctx, call{method: http.MethodGet, path: "/session", query: q, out: &page.Sessions})
	if err != nil {
		return SessionPage{}, err
	}
	page.Total, _ = strconv.Atoi(h.Get("X-Total-Count")) // another server may not count
	page.HasMore, page.Next = h.Get("X-Has-More") == "true", h.Get("X-Next-Cursor")
	return page, nil
}

// Delete removes a session with all it holds, aborting its turn first.
func (c *Client) Delete(ctx context.Context, id string) error { return c.verb(ctx, id, "", nil, nil) }

// Abort ends the running turn and returns when it is settled; idle is no error.
func (c *Client) Abort(ctx context.Context, id string) error {
	return c.verb(ctx, id, "/abort", nil, nil)
}

// Pause lets the running turn end and dispatches nothing until Resume.
func (c *Client) Pause(ctx context.Context, id string) error {
	return c.verb(ctx, id, "/pause", nil, nil)
}

// Resume runs what was queued behind a pause.
func (c *Client) Resume(ctx context.Context, id string) error {
	return c.verb(ctx, id, "/resume", nil, nil)
}

// Fork copies a session, up to a message or whole ("").
func (c *Client) Fork(ctx context.Context, id, messageID string) (*Session, error) {
	s := new(Session)
	in := map[string]string{}
	if messageID != "" {
		in["messageID"] = messageID
	}
	if err := c.verb(ctx, id, "/fork", in, s); err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Client) verb(ctx context.Context, id, path string, in, out any) error {
	method := http.MethodPost
	if path == "" {
		method = http.MethodDelete
	}
	_, err := c.do(ctx, call{method: method, path: "/session/" + esc(id) + path, in: in, out: out})
	return err
}

// Prompt is what a session is asked. Key makes it happen once: the same key
// and body again give the same answer. MessageID may name the message ahead.
type Prompt struct {
	Key       string
	MessageID string
	Directory string
	Parts     []PartInput
	Agent     string
	Model     rouse.ModelRef
	System    string
	NoReply   bool
	DelaySec  int
}

// Accepted says what became of a prompt.
type Accepted struct {
	MessageID  string
	TurnID     string
	Generation uint64
	// Status is "" (it runs or joins a live runner), "queued" or "delayed".
	Status string
	FireAt time.Time
}

func (p *Prompt) call(path string, out any) call {
	k := call{method: http.MethodPost, path: path, out: out, header: http.Header{}, in: promptBody{
		MessageID: p.MessageID, Model: modelOf(p.Model), Variant: p.Model.Variant, Agent: p.Agent,
		System: p.System, NoReply: p.NoReply, DelaySec: p.DelaySec, Parts: p.Parts,
	}}
	if p.Key != "" {
		k.header.Set("Idempotency-Key", p.Key)
	}
	if p.Directory != "" {
		k.header.Set("X-Opencode-Directory", url.PathEscape(p.Directory))
	}
	return k
}

// PromptAsync hands a prompt over and returns when it is on the server's disk.
func (c *Client) PromptAsync(ctx context.Context, id string, p Prompt) (Accepted, error) {
	var q queuedBody
	h, err := c.do(ctx, p.call("/session/"+esc(id)+"/prompt_async", &q))
	if err != nil {
		return Accepted{}, err
	}
	return accepted(h, q), nil
}

// Ask sends a prompt and waits for the end of its turn: the last assistant
// message, whose Info.Error says how it failed if it did.
func (c *Client) Ask(ctx context.Context, id string, p Prompt) (*Entry, Accepted, error) {
	var e Entry
	h, err := c.do(ctx, p.call("/session/"+esc(id)+"/message", &e))
	if err != nil {
		return nil, Accepted{}, err
	}
	return &e, accepted(h, queuedBody{}), nil
}

func accepted(h http.Header, q queuedBody) Accepted {
	a := Accepted{MessageID: h.Get("X-Rouse-Message"), TurnID: h.Get("X-Rouse-Turn"), Status: q.Status}
	a.Generation, _ = strconv.ParseUint(h.Get("X-Rouse-Generation"), 10, 64) // absent for noReply
	if q.FireAt > 0 {
		a.FireAt = time.UnixMilli(q.FireAt)
	}
	return a
}

// MessageQuery selects a page of a transcript: the newest Limit messages, those
// before a cursor, or the oldest after one. Limit 0 is all.
type MessageQuery struct {
	Limit         int
	Before, After string
}

// MessagePage is one page, oldest first; Next goes on in the query's direction.
type MessagePage struct {
	Entries []Entry
	Next    string
}

// Messages reads a page of a session's transcript.
func (c *Client) Messages(ctx context.Context, id string, in MessageQuery) (MessagePage, error) {
	q := url.Values{}
	if in.Limit > 0 {
		q.Set("limit", strconv.Itoa(in.Limit))
	}
	if in.Before != "" {
		q.Set("before", in.Before)
	}
	if in.After != "" {
		q.Set("after", in.After)
	}
	var page MessagePage
	h, err := c.do(ctx, call{method: http.MethodGet, path: "/session/" + esc(id) + "/message", query: q, out: &page.Entries, bound: unbounded})
	if err != nil {
		return MessagePage{}, err
	}
	page.Next = h.Get("X-Next-Cursor")
	return page, nil
}
