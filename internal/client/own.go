package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"rouse"
)

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
