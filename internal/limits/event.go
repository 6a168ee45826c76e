package limits

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// Readers of foreign structure: absent is zero.

func object(m map[string]any, path ...string) map[string]any {
	for _, k := range path {
		m, _ = m[k].(map[string]any)
	}
	return m
}

func text(m map[string]any, k string) string { s, _ := m[k].(string); return s }

// eventOf decodes an event. One that is no object proves nothing; only an
// answer's body may be an array.
func eventOf(b []byte) map[string]any {
	if !bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		return nil
	}
	return decode(b)
}

// statusInside takes the status that a document carries itself.
func (x *facts) statusInside(d map[string]any) {
	for _, k := range [...]string{"status_code", "status", "httpStatusCode", "api_error_status"} {
		if n, ok := positive(d[k]); ok && n >= 400 && n < 600 {
			x.status = int(n)
			return
		}
	}
}

// envelope reads status and headers that travel inside a stream's event.
func (x *facts) envelope(d map[string]any) {
	x.statusInside(d)
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

// acp reads what only an ACP error has.
func (x *facts) acp(d map[string]any) {
	if n, ok := d["code"].(json.Number); ok {
		if i, err := strconv.Atoi(n.String()); err == nil && i >= 100 && i <= 599 {
			x.status = i
		}
	}
	data, _ := d["data"].(map[string]any)
	if data == nil {
		return
	}
	x.docs = append(x.docs, data)
	x.statusInside(data)
	x.errorInfo(data)
	x.named(text(data, "modelId"))
	for _, k := range [2]string{"message", "details"} {
		if s, ok := data[k].(string); ok {
			x.speak(s, 0)
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
		x.speak(text(f, "title"), 0)
		found = true
	}
	return found
}

// sdk reads what agents' SDKs report: a rejected limit event, a failed result,
// Codex's error notification. Snapshots prove nothing.
func (x *facts) sdk(d map[string]any) bool {
	switch {
	case text(d, "type") == "rate_limit_event":
		return x.rateLimitEvent(d)
	case text(d, "type") == "result":
		return x.sdkResult(d)
	case text(d, "method") == "error":
		return x.codexNotice(d)
	}
	return false
}
