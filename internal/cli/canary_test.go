package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// canaries are what an agent must not get past Rouse by way of its stderr, its
// errors and its titles, one of each kind. What it says as an answer is the
// user's and is kept.
var canaries = []string{"sk-ant-api03-canarycanary0123456789", "canary@example.org", "/home/canary", "canaryhost.example", "wrk_canary0123", "ses_canary0123", "canary prompt text"}

// leaked is a failure's text with all of them that may stand in one.
func leaked(text string) string {
	return text + ". Resets in 2h. key sk-ant-api03-canarycanary0123456789 of canary@example.org in /home/canary/.config see https://canaryhost.example/workspace/wrk_canary0123/go session ses_canary0123"
}

// leakyAgent is an agent program that leaks. The last word of its prompt says how its
// turn ends; LEAKY=dies makes it die before it is ready.
func leakyAgent() {
	if os.Getenv("LEAKY") == "dies" { // it knows of no prompt yet
		fmt.Fprintln(os.Stderr, leaked("cannot start"))
		os.Exit(1)
	}
	for range 3 { // what is no record, and holds a whole prompt
		fmt.Fprintln(os.Stderr, "canary prompt text", leaked("warning"))
		fmt.Fprintln(os.Stderr, `INFO 2026-11-30T12:00:00 +0ms service=llm prompt="canary prompt text" error={} stream error`)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Prompt []struct{ Text string }
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := func(kind string, v any) {
			b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, kind: v})
			fmt.Println(string(b))
		}
		switch m.Method {
		case "initialize":
			answer("result", map[string]any{"protocolVersion": 1, "agentInfo": map[string]string{"name": "OpenCode", "version": "1"}})
		case "session/new":
			answer("result", map[string]string{"sessionId": "ses_live01"})
		case "session/prompt":
			leak(m.Params.Prompt[len(m.Params.Prompt)-1].Text, answer)
		default:
			answer("error", map[string]any{"code": -32601, "message": leaked("no such method")})
		}
	}
}

func leak(text string, answer func(string, any)) {
	update := func(v map[string]any) {
		b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": "ses_live01", "update": v}})
		fmt.Println(string(b))
	}
	record := func(text string) {
		q, _ := json.Marshal("AI_APICallError: " + leaked(text))
		fmt.Fprintf(os.Stderr, "timestamp=%s level=ERROR message=\"stream error\" providerID=mock modelID=m session.id=ses_live01 agent=build error.error=%s error.requestBodyValues=\"canary prompt text\"\n",
			time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), q)
	}
	update(map[string]any{"sessionUpdate": "session_info_update", "title": leaked("Titled"),
		"_meta": map[string]any{"jetbrains": map[string]any{"air": map[string]any{"sessionFailure": map[string]string{"severity": "warning", "category": "service", "title": leaked("Retrying after a failure")}}}}})
	switch words := strings.Fields(text); words[len(words)-1] {
	case "record":
		record("5-hour usage limit reached")
	case "grace":
		record("The provider is overloaded")
	case "rpc":
		answer("error", map[string]any{"code": -32603, "message": leaked("Unauthorized"), "data": map[string]any{"message": leaked("Unauthorized"), "requestBody": "canary prompt text"}})
	case "text":
		update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": leaked("Error: 429 too many requests")}})
		answer("result", map[string]string{"stopReason": "end_turn"})
	case "exit":
		fmt.Fprintln(os.Stderr, leaked("fatal"))
		os.Exit(3)
	}
}

// TestCanary lets an agent leak in every way, through the recorder, and looks
// for it in all that Rouse keeps, logs, tells and writes.
func TestCanary(t *testing.T) {
	dir := t.TempDir()
	home, data, made := filepath.Join(dir, "h"), filepath.Join(dir, "data"), filepath.Join(dir, "made")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	command := []string{"rouse", "drill", "record", "--out", made, "--", "leaky-agent"}
	agent := func(env map[string]string) map[string]any {
		return map[string]any{"extends": "opencode", "command": command, "env": env}
	}
	conf, err := json.Marshal(map[string]any{"acp": map[string]any{"leaky": agent(nil), "stillborn": agent(map[string]string{"LEAKY": "dies"})}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "rouse.json")
	if err := os.WriteFile(file, conf, 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+home, "ROUSE_KEYRING=off", "NO_COLOR=1", "ROUSE_DATA="+data, "ROUSE_CONFIG="+file, "GORACE=atexit_sleep_ms=0")
	said := map[string]string{}

	serve := exec.Command("rouse", "serve", "--ready-json", "--port", "0", "--drill", "--drill-speed", "100", "--log-level", "debug")
	serve.Env, serve.Dir = env, home
	var log safeBuffer
	serve.Stderr = &log
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		_ = serve.Wait() // it was told to end
	})
	defer stop()
	defer http.DefaultClient.CloseIdleConnections()
	var ready struct{ URL string }
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(data, "token"))
	if err != nil {
		t.Fatal(err)
	}
	rouse := func(args ...string) string {
		cmd := exec.Command("rouse", args...)
		cmd.Env, cmd.Dir = env, home
		b, _ := cmd.CombinedOutput() // most of them fail
		said["rouse "+strings.Join(args, " ")] = string(b)
		return string(b)
	}
	get := func(path string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		endless := strings.Contains(path, "/events?")
		if endless { // what is in the log comes at once
			ctx, cancel = context.WithTimeout(ctx, time.Second)
			defer cancel()
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, ready.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(path, err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil && !endless {
			t.Fatal(path, err)
		}
		said["GET "+path] = string(b)
		return string(b)
	}
	for _, how := range []string{"text", "rpc", "exit", "grace", "record"} {
		if got := rouse("run", "--agent", "leaky", "go on to", how); strings.Contains(got, "completed") || strings.TrimSpace(got) == "" {
			t.Errorf("%s: %s", how, got)
		}
	}
	rouse("run", "--agent", "stillborn", "go on")
	rouse("run", "--agent", "leaky", "behind", "the wall")
	rouse("launch", "--agent", "leaky", "behind the wall")
	for _, args := range [][]string{{"agents"}, {"agents", "--json", "leaky"}, {"agents", "stillborn"}, {"doctor"}, {"doctor", "--json"}, {"incidents"}, {"walls"}, {"ps"}, {"providers"}} {
		rouse(args...)
	}
	var sessions []struct{ ID string }
	if err := json.Unmarshal([]byte(get("/session")), &sessions); err != nil || len(sessions) < 5 {
		t.Fatalf("%d sessions: %v", len(sessions), err)
	}
	for _, s := range sessions {
		get("/session/" + s.ID)
		get("/session/" + s.ID + "/message")
		get("/rouse/v1/sessions/" + s.ID)
		get("/rouse/v1/sessions/" + s.ID + "/health")
	}
	for _, path := range []string{"/rouse/v1/sessions", "/rouse/v1/incidents", "/rouse/v1/walls", "/rouse/v1/agents", "/rouse/v1/status", "/provider", "/agent", "/session/status"} {
		get(path)
	}
	if events := get("/rouse/v1/events?after=0"); strings.Count(events, "turn.settled") < 5 {
		t.Errorf("the events hold %d ends of turns", strings.Count(events, "turn.settled"))
	}
	keep(t, said, data) // with the WAL of a living server
	stop()
	keep(t, said, data)
	keep(t, said, made)
	said["the log"] = log.String()
	for where, text := range said {
		for _, c := range canaries {
			if i := strings.Index(text, c); i >= 0 {
				t.Errorf("%s holds %q: …%s…", where, c, text[max(0, i-120):min(len(text), i+len(c)+60)])
			}
		}
	}
	for _, must := range []string{"usage limit", "verloaded", "Unauthorized", "ended in the middle of the turn", "exited before it was ready", "429 too many"} {
		found := false
		for _, text := range said {
			found = found || strings.Contains(text, must)
		}
		if !found {
			t.Errorf("nobody is told %q", must)
		}
	}
}

// keep reads all files of a folder.
func keep(t *testing.T, said map[string]string, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		said[path] += string(text)
		return err
	})
	if err != nil || len(said) == 0 {
		t.Fatal(dir, err)
	}
}

// safeBuffer is written by a process and read by the test.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
