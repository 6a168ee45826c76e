package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// RescueRequest asks for a rescue; empty fields leave the choice to the server.
type RescueRequest struct {
	Model        string   `json:"model,omitempty"`
	Facts        []string `json:"facts,omitempty"`
	Reassignment string   `json:"reassignment,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	Force        bool     `json:"force,omitempty"`
}

// Rescue is how far a rescue is.
type Rescue struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Turn   string `json:"turn"`
	Stages []struct {
		Name   string `json:"name"`
		OK     bool   `json:"ok"`
		Detail string `json:"detail"`
	} `json:"stages"`
}

// Rescue ends a hung turn and wakes the session with facts. raw is the answer
// as it came.
func (c *Client) Rescue(ctx context.Context, session string, in RescueRequest) (out Rescue, raw json.RawMessage, err error) {
	path := "/rouse/v1/sessions/" + url.PathEscape(session) + "/rescue"
	if _, err = c.do(ctx, call{method: http.MethodPost, path: path, in: in, out: &raw, bound: atOnce}); err != nil {
		return Rescue{}, nil, err
	}
	return out, raw, decode(raw, &out)
}

// RescueState asks how far a rescue is.
func (c *Client) RescueState(ctx context.Context, id string) (out Rescue, raw json.RawMessage, err error) {
	if _, err = c.do(ctx, call{method: http.MethodGet, path: "/rouse/v1/rescues/" + url.PathEscape(id), out: &raw}); err != nil {
		return Rescue{}, nil, err
	}
	return out, raw, decode(raw, &out)
}
