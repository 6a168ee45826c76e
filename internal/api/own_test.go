package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"rouse/internal/api"
	"rouse/internal/config"
)

func (s *server) launch(status int, body object) object {
	s.t.Helper()
	if _, ok := body["directory"]; !ok {
		body["directory"] = s.dir
	}
	return s.call(status, s.token, "POST", "/rouse/v1/launch", body)
}

func TestLaunchVerifies(t *testing.T) {
	s := start(t)
	for model, kind := range map[string]string{"echo": "text", "reason": "reasoning", "tool": "tool", "hang": "text"} {
		out := s.launch(201, object{"prompt": "go", "model": "drill/" + model})
		first := out["first_event"].(object)
		if out["verified"] != true || out["generation"] != 1.0 || first["at"] == nil {
			t.Errorf("%s: %v", model, out)
		}
		if k := first["kind"]; k != kind && k != "completed" {
			t.Errorf("%s: first event %v, want %s", model, k, kind)
		}
		if m := out["model"].(object); m["provider_id"] != "drill" || m["model_id"] != model {
			t.Errorf("%s: %v", model, m)
		}
	}
	out := s.launch(201, object{"parts": []object{{"type": "text", "text": "go"}, {"type": "file", "mime": "text/plain", "url": "data:text/plain,hi"}}, "model": "drill/echo"})
	if out["verified"] != true {
		t.Errorf("%v", out)
	}
}

// A launch that does not generate says so, names its reason, and its session
// stays.
func TestLaunchFails(t *testing.T) {
	s := start(t)
	for model, says := range map[string]string{"auth": "API key", "quota": "limit", "mute": "no sign of generation within 1s"} {
		out := s.launch(502, object{"prompt": "go", "model": "drill/" + model, "verify_timeout_sec": 1})
		data := out["data"].(object)
		if out["name"] != "LaunchFailed" || !strings.Contains(data["message"].(string), says) {
			t.Errorf("%s: %v", model, out)
		}
		row := s.call(200, s.token, "GET", "/rouse/v1/sessions/"+data["session"].(string), nil)
		if want := map[string]string{"auth": "settled:failed", "quota": "waiting_quota", "mute": "working"}[model]; row["verdict"] != want || data["verdict"] != want {
			t.Errorf("%s: verdicts %v, %v", model, row["verdict"], data["verdict"])
		}
		if len(row["evidence"].([]any)) == 0 {
			t.Errorf("%s: a verdict without evidence", model)
		}
	}
}

func TestLaunchRefuses(t *testing.T) {
	s := start(t)
	for field, body := range map[string]object{
		"prompt":       {},
		"model":        {"prompt": "x", "model": "nomodel"},
		"agent":        {"prompt": "x", "agent": "worker"},
		"directory":    {"prompt": "x", "directory": "/not/there"},
		"orchestrator": {"prompt": "x", "orchestrator": "ses_nope"},
		"":             {"prompt": "x", "parts": []object{{"type": "bogus"}}},
	} {
		out := s.launch(400, body)
		if got := out["data"].(object)["field"]; field != "" && got != field {
			t.Errorf("%s: names %v", field, got)
		}
	}
	s.launch(400, object{"prompt": "x", "unknown": 1})
	if list := s.call(200, s.token, "GET", "/rouse/v1/sessions", nil); list["total"] != 0.0 {
		t.Errorf("something was created: %v", list)
	}
}

// A tool inside a session launches with that session's directory and model,
// becomes the orchestrator, and may drive what it launched and nothing else.
func TestLaunchFromInside(t *testing.T) {
	s := start(t)
	boss := s.launch(201, object{"prompt": "go", "model": "drill/echo"})["session"].(string)
	other := s.launch(201, object{"prompt": "go", "model": "drill/echo"})["session"].(string)
	token := api.AgentToken(s.token, boss)
	out := s.call(201, token, "POST", "/rouse/v1/launch", object{"prompt": "work", "orchestrator": other})
	child := out["session"].(string)
	row := s.call(200, token, "GET", "/rouse/v1/sessions/"+child, nil)
	if row["orchestrator"] != boss || row["directory"] != s.dir || row["model"].(object)["model_id"] != "echo" {
		t.Errorf("%v", row)
	}
	id := s.call(200, api.AgentToken(s.token, child), "GET", "/rouse/v1/sessions/"+child+"/identity", nil)
	if id["role"] != "worker" || id["orchestrator"] != boss || id["session"] != child {
		t.Errorf("%v", id)
	}
	prompt := object{"sessionID": child, "parts": []object{{"type": "text", "text": "more"}}}
	req, err := json.Marshal(prompt)
	if err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]int{child: 204, other: 403} {
		r, err := http.NewRequest("POST", s.url+"/prompt_async", bytes.NewReader(bytes.ReplaceAll(req, []byte(child), []byte(session))))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("prompt to %s: %d, want %d", session, res.StatusCode, want)
		}
	}
	s.call(403, token, "GET", "/rouse/v1/sessions", nil)
	s.call(403, token, "POST", "/rouse/v1/launch", object{"prompt": "x", "auto": true})
}

func TestSessionRows(t *testing.T) {
	s := start(t)
	s.launch(201, object{"prompt": "go", "model": "drill/echo", "title": "one"})
	hang := s.launch(201, object{"prompt": "go", "model": "drill/hang"})["session"].(string)
	s.launch(502, object{"prompt": "go", "model": "drill/quota"})
	list := s.call(200, s.token, "GET", "/rouse/v1/sessions?limit=2", nil)
	if list["total"] != 3.0 || list["has_more"] != true || len(list["sessions"].([]any)) != 2 || list["next"] == nil {
		t.Errorf("%v", list)
	}
	list = s.call(200, s.token, "GET", "/rouse/v1/sessions?limit=2&cursor="+list["next"].(string), nil)
	if list["has_more"] != false || len(list["sessions"].([]any)) != 1 {
		t.Errorf("%v", list)
	}
	list = s.call(200, s.token, "GET", "/rouse/v1/sessions?state=generating", nil)
	rows := list["sessions"].([]any)
	if len(rows) != 1 || rows[0].(object)["id"] != hang || rows[0].(object)["verdict"] != "working" || rows[0].(object)["turn"] == nil {
		t.Errorf("%v", list)
	}
	evidence, err := json.Marshal(rows[0].(object)["evidence"])
	if err != nil || !strings.Contains(string(evidence), "last progress") {
		t.Errorf("evidence %s", evidence)
	}
	s.call(400, s.token, "GET", "/rouse/v1/sessions?state=asleep", nil)
	s.call(400, s.token, "GET", "/rouse/v1/sessions?limit=x", nil)
	s.call(404, s.token, "GET", "/rouse/v1/sessions/ses_nope", nil)
	s.call(404, s.token, "GET", "/rouse/v1/nope", nil)
	s.call(404, s.token, "PUT", "/rouse/v1/sessions", nil)
}

func TestPreflight(t *testing.T) {
	s := start(t)
	for model, reason := range map[string]any{"": nil, "drill/echo": nil, "drill/nope": "unknown_model", "nobody/x": "not_connected"} {
		out := s.call(200, s.token, "GET", "/rouse/v1/preflight?model="+model, nil)
		if out["usable"] != (reason == nil) || out["reason"] != reason || len(out["usable_models"].([]any)) == 0 {
			t.Errorf("%q: %v", model, out)
		}
	}
	s.call(400, s.token, "GET", "/rouse/v1/preflight?model=x", nil)
	keyless := 0
	for _, k := range config.KnownProviders() {
		out := s.call(200, s.token, "GET", "/rouse/v1/preflight?model="+k.ID+"/x", nil)
		if out["reason"] != "no_credentials" {
			continue
		}
		keyless++
		if message := fmt.Sprint(out["message"]); !strings.Contains(message, "rouse auth login "+k.ID) || strings.Contains(message, "usable") {
			t.Errorf("%s: %v", k.ID, message)
		}
	}
	if keyless == 0 {
		t.Error("no well-known provider is without a key")
	}
}

func TestOpenAPI(t *testing.T) {
	s := start(t)
	doc := s.call(200, s.token, "GET", "/rouse/v1/openapi.json", nil)
	if v := doc["openapi"].(string); !strings.HasPrefix(v, "3.1") {
		t.Errorf("openapi %s", v)
	}
	paths := doc["paths"].(object)
	for _, p := range []string{"/launch", "/sessions", "/sessions/{id}", "/sessions/{id}/identity", "/sessions/{id}/health", "/sessions/{id}/wait", "/sessions/{id}/cancel", "/preflight"} {
		if paths[p] == nil && paths["/rouse/v1"+p] == nil {
			t.Errorf("%s is not described", p)
		}
	}
	for _, open := range []string{"/healthz", "/readyz"} {
		if out := s.call(200, "", "GET", open, nil); out["ok"] != true || len(out) != 1 {
			t.Errorf("%s: %v", open, out)
		}
	}
}

// The own stream tells each change once, in order, and can be resumed.
func TestOwnStream(t *testing.T) {
	s := start(t)
	read := func(after string, until string) (types []string, last string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/rouse/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.token)
		req.Header.Set("Last-Event-ID", after)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			line := lines.Text()
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				last = id
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				var e struct {
					Type, State string
					At          time.Time
				}
				if err := json.Unmarshal([]byte(data), &e); err != nil || e.At.IsZero() {
					t.Fatalf("%s: %v", data, err)
				}
				types = append(types, e.Type+" "+e.State)
				if types[len(types)-1] == until {
					return types, last
				}
			}
		}
		t.Fatalf("ended after %v", types)
		return nil, ""
	}
	s.launch(201, object{"prompt": "go", "model": "drill/tool"})
	all, _ := read("0", "rouse.turn.settled completed")
	if all[0] != "rouse.session.state idle" {
		t.Errorf("%v", all)
	}
	all, _ = read("1", "rouse.turn.settled completed")
	want := "rouse.turn.queued queued,rouse.turn.running running,rouse.session.state generating,rouse.turn.settled completed"
	if got := strings.Join(all, ","); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
