package limits

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Marks that are no vendor's codes but ours: what kind of record was read.
const (
	rejectedEvent     = "rouse:rejected_event"
	antigravityRecord = "rouse:agy_error"
)

func object(m map[string]any, path ...string) map[string]any {
	for _, k := range path {
		m, _ = m[k].(map[string]any)
	}
	return m
}

func text(m map[string]any, k string) string { s, _ := m[k].(string); return s }

// envelope reads status and headers that travel inside a stream's event.
func (x *facts) envelope(d map[string]any) {
	for _, k := range []string{"status_code", "status"} {
		if n, ok := positive(d[k]); ok && n >= 400 && n < 600 {
			x.status = int(n)
		}
	}
	h, _ := d["headers"].(map[string]any)
	if h == nil {
		return
	}
	x.headers = http.Header{}
	for k, v := range h {
		switch v := v.(type) {
		case string:
			x.headers.Set(k, v)
		case json.Number:
			x.headers.Set(k, v.String())
		}
	}
}

// update reads an ACP session update or prompt result. Only the typed failures
// that agents put into _meta are evidence; content never is.
func (x *facts) update(d map[string]any) bool {
	found := false
	if e := object(d, "_meta", "codex", "error"); e != nil {
		x.codex(e)
		found = true
	}
	if f := object(d, "_meta", "jetbrains", "air", "sessionFailure"); f != nil {
		x.category = text(f, "category") + ":" + text(f, "severity")
		x.retries = x.retries || text(f, "severity") == "warning"
		x.speak(text(f, "title"), 1)
		found = true
	}
	return found
}

// codex reads Codex's error object, wherever it travels.
func (x *facts) codex(e map[string]any) {
	x.docs = append(x.docs, e)
	x.errorInfo(e)
	for _, k := range []string{"message", "additionalDetails"} {
		x.speak(text(e, k), 1)
	}
	if again, ok := e["willRetry"].(bool); ok && again {
		x.retries = true
	}
}

// errorInfo notes the codes of an agent's error data; an object contributes
// its keys, and the status inside.
func (x *facts) errorInfo(data map[string]any) {
	for _, k := range []string{"errorKind", "codexErrorInfo", "codex_error_info"} {
		o, ok := data[k].(map[string]any)
		if !ok {
			x.code(data[k])
			continue
		}
		for key, v := range o {
			x.code(key)
			inner, _ := v.(map[string]any)
			for _, name := range []string{"httpStatusCode", "http_status_code"} {
				if n, ok := positive(inner[name]); ok && n >= 100 && n < 600 {
					x.status = int(n)
				}
			}
		}
	}
}

// sdk reads what agents' SDKs report: a rejected limit event, a failed result,
// Codex's error notification. Snapshots prove nothing.
func (x *facts) sdk(d map[string]any) bool {
	switch {
	case d == nil:
		return false
	case text(d, "type") == "rate_limit_event":
		info := object(d, "rate_limit_info")
		if text(info, "status") != "rejected" {
			return false
		}
		x.code(rejectedEvent)
		x.docs = append(x.docs, map[string]any{"resets_at": info["resetsAt"]})
		x.claim(text(info, "rateLimitType"))
		return true
	case text(d, "type") == "result":
		if failed, _ := d["is_error"].(bool); !failed {
			return false
		}
		if n, ok := positive(d["api_error_status"]); ok {
			x.status = int(n)
		}
		x.code(d["terminal_reason"])
		x.speak(text(d, "result"), 1)
		return true
	case text(d, "method") == "error":
		p := object(d, "params")
		e := object(p, "error")
		if e == nil {
			return false
		}
		x.codex(e)
		if again, _ := p["willRetry"].(bool); again {
			x.retries = true
		}
		x.windows(object(d, "rateLimits"))
		return true
	}
	return false
}

// claim names the window and model family of Anthropic's claims
// ("five_hour", "seven_day_opus").
func (x *facts) claim(c string) {
	x.window = claimName(c)
	if family, ok := strings.CutPrefix(c, "seven_day_"); ok {
		x.model = family
	}
}

// windows reads Codex's rate limits that were joined to an error: the
// exhausted window, the later one if both are.
func (x *facts) windows(limits map[string]any) {
	var last time.Time
	for _, k := range []string{"primary", "secondary"} {
		w := object(limits, k)
		used, ok := positive(w["usedPercent"])
		at, known := epoch(w["resetsAt"])
		if !ok || used < 100 || !known || !at.After(last) {
			continue
		}
		last = at
		x.docs = append(x.docs, map[string]any{"resets_at": w["resetsAt"]})
		if minutes, ok := positive(w["windowDurationMins"]); ok {
			x.window = windowName(int(minutes))
		}
	}
}
