package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"rouse"
)

// SessionHealth is the answer of GET /rouse/v1/sessions/{id}/health.
type SessionHealth struct {
	Session    string         `json:"session"`
	Turn       string         `json:"turn"`
	Generation uint64         `json:"generation"`
	State      string         `json:"state"`
	Outcome    string         `json:"outcome"`
	Queued     int            `json:"queued"`
	Verdict    *HealthVerdict `json:"verdict"`
	Evidence   HealthEvidence `json:"evidence"`
	Notice     *struct {
		Tool    string    `json:"tool"`
		At      time.Time `json:"at"`
		Visible bool      `json:"visible"`
	} `json:"notice"`
	Incident *struct {
		ID             string    `json:"id"`
		Kind           string    `json:"kind"`
		Message        string    `json:"message"`
		ResetAt        time.Time `json:"reset_at"`
		RemediationURL string    `json:"remediation_url"`
	} `json:"incident"`
}

// HealthVerdict is what the watch makes of a session.
type HealthVerdict struct {
	Code       string    `json:"code"`
	Severity   string    `json:"severity"`
	Since      time.Time `json:"since"`
	Until      time.Time `json:"until"`
	Confidence string    `json:"confidence"`
	Why        string    `json:"why"`
	Next       []string  `json:"next"`
}

// HealthEvidence is what a verdict rests on.
type HealthEvidence struct {
	Samples []struct {
		At       time.Time      `json:"at"`
		State    string         `json:"state"`
		Counters rouse.Counters `json:"counters"`
	} `json:"samples"`
	ProgressAgeMS  *int64 `json:"progress_age_ms"`
	ModelConfirmed string `json:"model_confirmed"`
	Stderr         struct {
		Supported bool           `json:"supported"`
		LastClass string         `json:"last_class"`
		Ignored   map[string]int `json:"ignored"`
	} `json:"stderr"`
	OpenTool *struct {
		Title string    `json:"title"`
		Since time.Time `json:"since"`
	} `json:"open_tool"`
	Process *struct {
		PID      int   `json:"pid"`
		Alive    bool  `json:"alive"`
		RSSBytes int64 `json:"rss_bytes"`
	} `json:"process"`
	Waiting *struct {
		For   string    `json:"for"`
		ID    string    `json:"id"`
		Since time.Time `json:"since"`
	} `json:"waiting"`
	Retry *struct {
		Attempt int       `json:"attempt"`
		NextAt  time.Time `json:"next_at"`
		Class   string    `json:"class"`
	} `json:"retry"`
	Wall *struct {
		ID      string    `json:"id"`
		ResetAt time.Time `json:"reset_at"`
	} `json:"wall"`
}

// SessionHealth says what a session does, with the evidence. raw is the answer as it
// came.
func (c *Client) SessionHealth(ctx context.Context, session string) (out SessionHealth, raw json.RawMessage, err error) {
	path := "/rouse/v1/sessions/" + url.PathEscape(session) + "/health"
	if _, err = c.do(ctx, call{method: http.MethodGet, path: path, out: &raw}); err != nil {
		return SessionHealth{}, nil, err
	}
	return out, raw, decode(raw, &out)
}

// WaitAnswer says what was reached, or how things stand when time was over.
type WaitAnswer struct {
	Reached     bool   `json:"reached"`
	Matched     string `json:"matched"`
	TimedOut    bool   `json:"timed_out"`
	State       string `json:"state"`
	Turn        string `json:"turn"`
	Outcome     string `json:"outcome"`
	Verdict     string `json:"verdict"`
	NeedsPerson bool   `json:"needs_person"`
	Wall        *struct {
		ID      string    `json:"id"`
		ResetAt time.Time `json:"reset_at"`
	} `json:"wall"`
}

// Wait waits for one of the conditions, at most so long (whole seconds, up to
// 600). raw is the answer as it came.
func (c *Client) Wait(ctx context.Context, session string, conditions []string, timeout time.Duration) (out WaitAnswer, raw json.RawMessage, err error) {
	q := url.Values{"for": {strings.Join(conditions, ",")}, "timeout": {strconv.Itoa(int(timeout / time.Second))}}
	path := "/rouse/v1/sessions/" + url.PathEscape(session) + "/wait"
	if _, err = c.do(ctx, call{method: http.MethodGet, path: path, query: q, out: &raw, bound: timeout + atOnce}); err != nil {
		return WaitAnswer{}, nil, err
	}
	return out, raw, decode(raw, &out)
}
