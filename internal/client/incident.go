package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Incident is what a person sees of a failure.
type Incident struct {
	ID         string   `json:"id"`
	Session    string   `json:"session"`
	Kind       string   `json:"kind"`
	Message    string   `json:"message"`
	Status     string   `json:"status"`
	OccurredAt string   `json:"occurred_at"`
	ResetAt    string   `json:"reset_at"`
	Link       string   `json:"remediation_url"` // where a person can mend it; "" for none
	Actions    []string `json:"actions"`
}

// Incidents lists incidents, newest first; status "" is all. raw is the answer
// as it came.
func (c *Client) Incidents(ctx context.Context, status, session string) (list []Incident, raw json.RawMessage, err error) {
	q := url.Values{}
	for k, v := range map[string]string{"status": status, "session": session} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if _, err = c.do(ctx, call{method: http.MethodGet, path: "/rouse/v1/incidents", query: q, out: &raw}); err != nil {
		return nil, nil, err
	}
	var out struct {
		Incidents []Incident `json:"incidents"`
	}
	err = decode(raw, &out)
	return out.Incidents, raw, err
}

// Act takes an action of an incident; model is for continue_with.
func (c *Client) Act(ctx context.Context, incident, action, model string) (session, turn string, raw json.RawMessage, err error) {
	in := map[string]string{"action": action}
	if model != "" {
		in["model"] = model
	}
	if _, err = c.do(ctx, call{method: http.MethodPost, path: "/rouse/v1/incidents/" + url.PathEscape(incident) + "/actions", in: in, out: &raw, bound: atOnce}); err != nil {
		return "", "", nil, err
	}
	var out struct{ Session, Turn string }
	err = decode(raw, &out)
	return out.Session, out.Turn, raw, err
}
