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

// Rouse's own API: snake_case, times in RFC 3339.

// Row is one session of GET /rouse/v1/sessions.
type Row struct {
	ID           string         `json:"id"`
	Title        string         `json:"title"`
	Directory    string         `json:"directory"`
	Agent        string         `json:"agent"`
	Engine       string         `json:"engine"`
	Model        rouse.ModelRef `json:"model"`
	State        string         `json:"state"`
	Outcome      string         `json:"outcome"`
	Verdict      string         `json:"verdict"`
	Evidence     []string       `json:"evidence"`
	Until        time.Time      `json:"until"`
	Generation   uint64         `json:"generation"`
	Queued       int            `json:"queued"`
	Messages     int            `json:"messages"`
	Orchestrator string         `json:"orchestrator"`
	PID          int            `json:"pid"`       // of the agent program; 0: none
	RSS          int64          `json:"rss_bytes"` // of it and what it started
	UpdatedAt    time.Time      `json:"updated_at"`
}

// Rows is the answer of GET /rouse/v1/sessions.
type Rows struct {
	Sessions []Row `json:"sessions"`
	Total    int   `json:"total"`
	HasMore  bool  `json:"has_more"`
}

// LaunchRequest is the body of POST /rouse/v1/launch.
type LaunchRequest struct {
	Directory        string      `json:"directory,omitempty"`
	Title            string      `json:"title,omitempty"`
	Agent            string      `json:"agent,omitempty"`
	Model            string      `json:"model,omitempty"` // "provider/model"
	Prompt           string      `json:"prompt,omitempty"`
	Parts            []PartInput `json:"parts,omitempty"`
	Orchestrator     string      `json:"orchestrator,omitempty"`
	Force            bool        `json:"force,omitempty"`
	Auto             bool        `json:"auto,omitempty"`
	VerifyTimeoutSec int         `json:"verify_timeout_sec,omitempty"`
}

// LaunchFailure is the data of a launch that did not generate.
type LaunchFailure struct {
	Message  string          `json:"message"`
	Session  string          `json:"session"`
	Turn     string          `json:"turn"`
	Verdict  json.RawMessage `json:"verdict"`
	Incident json.RawMessage `json:"incident"`
}

// RowQuery selects sessions of GET /rouse/v1/sessions; empty fields select all.
type RowQuery struct {
	Directory string
	State     string
	Limit     int
	Cursor    string
}

// Rows lists sessions as `rouse ps` shows them. raw is the answer as it came.
func (c *Client) Rows(ctx context.Context, in RowQuery) (rows Rows, raw json.RawMessage, err error) {
	q := url.Values{}
	for name, val := range map[string]string{"directory": in.Directory, "state": in.State, "cursor": in.Cursor} {
		if val != "" {
			q.Set(name, val)
		}
	}
	if in.Limit > 0 {
		q.Set("limit", strconv.Itoa(in.Limit))
	}
	if _, err = c.do(ctx, call{method: http.MethodGet, path: "/rouse/v1/sessions", query: q, out: &raw}); err != nil {
		return Rows{}, nil, err
	}
	return rows, raw, decode(raw, &rows)
}

// LaunchAnswer is the answer of a launch that generates.
type LaunchAnswer struct {
	Session    string   `json:"session"`
	Turn       string   `json:"turn"`
	Generation uint64   `json:"generation"`
	Message    string   `json:"message"`
	Verified   bool     `json:"verified"`
	Warnings   []string `json:"warnings"`
}

// Launch creates a session, prompts it and waits until it generates. raw is
// the answer as it came. One that does not generate is an Upstream error whose
// LaunchFailure (see Failed) names the session, which stays.
func (c *Client) Launch(ctx context.Context, in LaunchRequest) (out LaunchAnswer, raw json.RawMessage, err error) {
	if _, err = c.do(ctx, call{method: http.MethodPost, path: "/rouse/v1/launch", in: in, out: &raw}); err != nil {
		return LaunchAnswer{}, nil, err
	}
	return out, raw, decode(raw, &out)
}

// Failed gives what the server says of a launch that did not generate.
func Failed(err error) (LaunchFailure, bool) {
	r, ok := RefusalOf(err)
	if !ok || r.Status != http.StatusBadGateway || rouse.KindOf(err) != rouse.Upstream {
		return LaunchFailure{}, false
	}
	var f LaunchFailure
	if json.Unmarshal(r.Data, &f) != nil || f.Session == "" {
		return LaunchFailure{}, false
	}
	return f, true
}
