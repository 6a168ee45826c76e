package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"rouse"
)

// Wall is a usage limit that is known to stand.
type Wall struct {
	ID         string      `json:"id"`
	Provider   string      `json:"provider"`
	Account    string      `json:"account"` // "default", or the provider inside an agent program
	LimitName  string      `json:"limit_name"`
	Model      string      `json:"model"` // "": the whole account
	Class      rouse.Class `json:"class"`
	State      string      `json:"state"`
	ResetAt    time.Time   `json:"reset_at"` // zero: not said
	Confidence string      `json:"confidence"`
	ProbeAt    time.Time   `json:"probe_at"`
	Refusals   int         `json:"refusals"`
	Message    string      `json:"message"`
	Held       []string    `json:"held"`
}

// Walls lists the walls that are not closed; all lists closed ones too. raw is
// the answer as it came.
func (c *Client) Walls(ctx context.Context, all bool) (walls []Wall, raw json.RawMessage, err error) {
	q := url.Values{}
	if all {
		q.Set("all", "true")
	}
	if _, err = c.do(ctx, call{method: http.MethodGet, path: "/rouse/v1/walls", query: q, out: &raw}); err != nil {
		return nil, nil, err
	}
	var out struct {
		Walls []Wall `json:"walls"`
	}
	err = decode(raw, &out)
	return out.Walls, raw, err
}

// CloseWall closes a wall by hand. raw is the wall as it then is.
func (c *Client) CloseWall(ctx context.Context, id string) (w Wall, raw json.RawMessage, err error) {
	if _, err = c.do(ctx, call{method: http.MethodDelete, path: "/rouse/v1/walls/" + url.PathEscape(id), out: &raw}); err != nil {
		return w, nil, err
	}
	return w, raw, decode(raw, &w)
}

// Preflight says whether a model can take work now.
type Preflight struct {
	Usable       bool      `json:"usable"`
	Model        string    `json:"model"`
	Reason       string    `json:"reason"` // "", unknown_model, not_connected, no_credentials, wall
	Message      string    `json:"message"`
	Wall         *Wall     `json:"wall"`
	Until        time.Time `json:"until"` // zero: not known
	UsableModels []string  `json:"usable_models"`
}

// Preflight asks about a model; "" is the default one. raw is the answer as it
// came.
func (c *Client) Preflight(ctx context.Context, model string) (p Preflight, raw json.RawMessage, err error) {
	q := url.Values{}
	if model != "" {
		q.Set("model", model)
	}
	if _, err = c.do(ctx, call{method: http.MethodGet, path: "/rouse/v1/preflight", query: q, out: &raw}); err != nil {
		return p, nil, err
	}
	return p, raw, decode(raw, &p)
}
