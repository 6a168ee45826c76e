package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestRefusedBodies: one sentence of ours that names the field, whatever is
// wrong with a body.
func TestRefusedBodies(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		kind, body  string
		status      int
		field, said string
	}{
		{"application/json", `{oops`, 400, `"body"`, "not valid JSON: at byte 2"},
		{"application/json", `x`, 400, `"body"`, "not valid JSON: at byte 1"},
		{"application/json", `{"prompt":"x"`, 400, `"body"`, "not valid JSON: it ends too early"},
		{"application/json", `{"prompt":"x"} y`, 400, `"body"`, "not valid JSON: at byte 16"},
		{"application/json", ``, 400, ``, "the body is missing"},
		{"application/json", `[]`, 400, `"body"`, "expected a JSON object"},
		{"application/json", `"text"`, 400, `"body"`, "expected a JSON object"},
		{"application/json", `{"prompt":5}`, 400, `"prompt"`, "prompt: expected string"},
		{"application/json", `{"prompt":"x","nonsense":1}`, 400, `"nonsense"`, "nonsense: there is no such field"},
		{"application/json", "{\"prompt\":\"caf\xe9\"}", 400, `"prompt"`, "prompt: it is not valid UTF-8"},
		{"application/json", "{\"prompt\":\"x\",\"model\":\"\xc3\"}", 400, `"model"`, "model: it is not valid UTF-8"},
		{"application/json", "{\"caf\xe9\":1}", 400, `"body"`, "the body: it is not valid UTF-8"},
		{"application/json", "{\"prompt\":\"caf\xe9\"", 400, `"body"`, "not valid UTF-8"},
		{"text/plain", `{"prompt":"x"}`, 415, `"Content-Type"`, "application/json, not as text/plain"},
		{"application/x-www-form-urlencoded", `{"prompt":"x"}`, 415, `"Content-Type"`, "application/json, not as application/x-www-form-urlencoded"},
	} {
		req, err := http.NewRequest("POST", s.url+"/rouse/v1/launch", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.token)
		req.Header.Set("Content-Type", c.kind)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if told := string(raw); err != nil || res.StatusCode != c.status || !strings.Contains(told, c.said) ||
			c.field != "" && !strings.Contains(told, `"field":`+c.field) || strings.Contains(told, "validation failed") {
			t.Errorf("%s %q: %d %s (%v)", c.kind, c.body, res.StatusCode, told, err)
		}
	}
}
