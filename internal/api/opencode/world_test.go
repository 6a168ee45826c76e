package opencode_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse/internal/config"
	"rouse/internal/daemon"
)

// recordings is found before a test changes the directory.
var recordings, _ = filepath.Abs("testdata/wire")

// recording is one recorded request of the real server and its answer.
type recording struct {
	Case    string
	Request struct {
		Method  string
		Path    string
		Headers map[string]string
		Body    json.RawMessage
	}
	Response struct {
		Status  int
		Headers map[string]string
		Body    any
	}
	Events   []event
	Messages any
}

type event struct {
	Type       string
	Properties json.RawMessage
}

func load(t *testing.T, name string) *recording {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(recordings, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var c recording
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(name, err)
	}
	c.Case = name
	return &c
}

// world is a running server with the drill's provider, and a second provider
// that answers what the drill does not.
type world struct {
	url   string
	dir   string // a git repository with a README
	other string // a directory outside of any repository
}

func newWorld(t *testing.T) *world {
	t.Helper()
	home, mock := t.TempDir(), mockProvider(t)
	w := &world{dir: filepath.Join(t.TempDir(), "project"), other: filepath.Join(t.TempDir(), "other")}
	for _, dir := range []string{filepath.Join(w.dir, ".git"), w.other} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file(t, filepath.Join(w.dir, "README.md"), "# lab\n")
	file(t, filepath.Join(w.dir, ".git", "HEAD"), "ref: refs/heads/master\n")
	models := map[string]any{}
	for _, id := range append([]string{"fast"}, mockModels...) {
		models[id] = map[string]any{"name": "Mock " + id, "tool_call": true, "cost": map[string]any{"input": 1, "output": 2},
			"limit": map[string]any{"context": 128000, "output": 8192}}
	}
	raw, err := json.Marshal(map[string]any{"model": "drill/echo", "small_model": "drill/echo", "provider": map[string]any{"mock": map[string]any{
		"name": "Mock", "npm": "@ai-sdk/openai-compatible", "options": map[string]any{"apiKey": "sk-mock", "baseURL": mock + "/v1"}, "models": models}}})
	if err != nil {
		t.Fatal(err)
	}
	explicit := filepath.Join(home, "rouse.jsonc")
	file(t, explicit, string(raw))
	paths := config.DefaultPaths(func(name string) string { return map[string]string{"HOME": home, "ROUSE_KEYRING": "off"}[name] })
	paths.Explicit = explicit
	t.Chdir(w.dir)
	ready, done := make(chan daemon.Ready, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		done <- daemon.Run(ctx, daemon.Options{Paths: paths, Data: filepath.Join(home, "data"), NoAuth: true, Drill: true,
			Logger: slog.New(slog.DiscardHandler), Ready: func(r daemon.Ready) { ready <- r }})
	}()
	select {
	case r := <-ready:
		w.url = r.URL
	case err := <-done:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func file(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// drilled maps the models of the recordings to the drill's, with what the
// prompt has to say to get the same kind of answer.
var drilled = map[string][2]string{
	"fast": {"echo"}, "chunks": {"stream", "[[drill tokens=3 rate=0]]"}, "think": {"reason"}, "tool": {"tool"}, "question": {"question"},
	"drip": {"stream", "[[drill tokens=1000 rate=20]]"}, "hang": {"mute"}, "hangnohdr": {"mute"}, "hangmid": {"hang"}, "slowtool": {"slowtool"},
	"break": {"break"}, "usage429": {"quota"}, "rate429": {"rate"}, "e401": {"auth"}, "slowstart": {"echo", "[[drill delay=300ms]]"},
	"todo":    {"tool", `[[drill tool=todowrite input='{"todos":[{"content":"first thing","status":"in_progress","priority":"high"}]}']]`},
	"edit":    {"tool", `[[drill tool=write input='{"filePath":"new.txt","content":"hello\n"}']]`},
	"badtool": {"tool", `[[drill tool=nope_tool input='{}']]`},
	"task":    {"tool", `[[drill tool=task input='{"description":"Sub work","prompt":"sub prompt","subagent_type":"worker"}']]`},
}

// body is the recorded body for this server: its models and directories.
func (w *world) body(c *recording) json.RawMessage {
	raw := c.Request.Body
	if len(raw) == 0 {
		return nil
	}
	if raw[0] == '"' { // not JSON on purpose
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return json.RawMessage(s)
		}
	}
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	if ref, ok := m["model"].(map[string]any); ok && ref["providerID"] == "mock" {
		w.drill(m, ref)
	}
	out, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return out
}

func (w *world) drill(m, ref map[string]any) {
	key := "modelID"
	if _, ok := ref[key]; !ok {
		key = "id"
	}
	as, ok := drilled[ref[key].(string)]
	if !ok {
		return
	}
	ref["providerID"], ref[key] = "drill", as[0]
	if parts, ok := m["parts"].([]any); ok && as[1] != "" {
		first := parts[0].(map[string]any)
		first["text"] = first["text"].(string) + " " + as[1]
	}
}

// reply is our answer.
type reply struct {
	status int
	header http.Header
	raw    []byte
}

func (w *world) do(t *testing.T, method, path string, body []byte, headers map[string]string) reply {
	t.Helper()
	req, err := http.NewRequest(method, w.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, raw}
}

func (w *world) json(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := w.do(t, method, path, raw, nil)
	var out map[string]any
	if r.status > 299 || json.Unmarshal(r.raw, &out) != nil {
		t.Fatalf("%s %s: %d %s", method, path, r.status, r.raw)
	}
	return out
}

func (w *world) session(t *testing.T, body map[string]any) string {
	t.Helper()
	return w.json(t, "POST", "/session?directory="+url.QueryEscape(w.dir), body)["id"].(string)
}

var recordedID = regexp.MustCompile(`(ses|msg|prt|per|que)_0{10,}[0-9]+`)

// prepare makes what a case needs and gives the real ids of the recorded ones.
func (w *world) prepare(t *testing.T, c *recording, needs string) map[string]string {
	t.Helper()
	ids := map[string]string{}
	if needs == "" || needs == "unknown" {
		return ids
	}
	id := w.session(t, map[string]any{"title": "My session"})
	var message, part string
	switch needs {
	case "noted":
		for i := range 8 {
			body, err := json.Marshal(map[string]any{"noReply": true, "parts": []any{map[string]any{"type": "text", "text": "n" + string(rune('0'+i))}}})
			if err != nil {
				t.Fatal(err)
			}
			if r := w.do(t, "POST", "/session/"+id+"/prompt_async", body, nil); r.status != 204 {
				t.Fatalf("%d %s", r.status, r.raw)
			}
		}
		var list []struct {
			Info  struct{ ID string }
			Parts []struct{ ID string }
		}
		r := w.do(t, "GET", "/session/"+id+"/message", nil, nil)
		if err := json.Unmarshal(r.raw, &list); err != nil {
			t.Fatal(err)
		}
		message, part = list[0].Info.ID, list[0].Parts[0].ID
	case "parent":
		w.session(t, map[string]any{"parentID": id})
	}
	text := c.Request.Path + string(c.Request.Body)
	for _, found := range recordedID.FindAllString(text, -1) {
		switch found[:4] {
		case "ses_":
			ids[found] = id
		case "msg_":
			if message != "" {
				ids[found] = message
			}
		case "prt_":
			if part != "" && (strings.Contains(c.Request.Path, found) || c.Case != "part-patch-mismatch") {
				ids[found] = part
			}
		}
	}
	return ids
}

func replaced(s string, ids map[string]string) string {
	for from, to := range ids {
		s = strings.ReplaceAll(s, from, to)
	}
	return s
}

var recordedCursor = regexp.MustCompile(`before=[A-Za-z0-9_-]{20,}`)

// path is the recorded path for this server.
func (w *world) path(t *testing.T, c *recording, ids map[string]string) string {
	p := replaced(c.Request.Path, ids)
	p = strings.ReplaceAll(p, url.QueryEscape("/srv/other"), url.QueryEscape(w.other))
	if recordedCursor.MatchString(p) {
		base, _, _ := strings.Cut(p, "?")
		cursor := w.do(t, "GET", base+"?limit=2", nil, nil).header.Get("X-Next-Cursor")
		p = recordedCursor.ReplaceAllString(p, "before="+cursor)
	}
	return p
}

// replay sends the recorded request and compares the answer.
func (w *world) replay(t *testing.T, c *recording, ids map[string]string) reply {
	t.Helper()
	headers := map[string]string{}
	for k, v := range c.Request.Headers {
		headers[k] = strings.ReplaceAll(v, "/srv/other", w.other)
	}
	r := w.do(t, c.Request.Method, w.path(t, c, ids), []byte(replaced(string(w.body(c)), ids)), headers)
	d, deviates := deviations[c.Case]
	want := c.Response.Status
	if d.status != 0 {
		want = d.status
	}
	if r.status != want {
		t.Errorf("status %d, want %d (recorded %d): %s", r.status, want, c.Response.Status, r.raw)
		return r
	}
	for _, name := range []string{"x-next-cursor", "link"} {
		if name == "x-next-cursor" && strings.HasPrefix(c.Request.Path, "/session?") {
			continue // our list of sessions can be paged
		}
		if _, recorded := c.Response.Headers[name]; recorded != (r.header.Get(name) != "") {
			t.Errorf("header %s: recorded %v, ours %q", name, recorded, r.header.Get(name))
		}
	}
	if len(r.raw) == 0 {
		if want != 204 && c.Response.Body != "" {
			t.Errorf("an empty body with status %d", r.status)
		}
		return r
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content-type %q", got)
	}
	var body any
	if err := json.Unmarshal(r.raw, &body); err != nil {
		t.Fatalf("%v: %s", err, r.raw)
	}
	if r.status >= 400 {
		problem(t, body, r.raw)
	}
	if !deviates || !d.body {
		shape("", c.Response.Body, body, func(s string) { t.Error(s) })
	}
	return r
}

// problem checks that an error has our one shape whatever else it repeats.
func problem(t *testing.T, body any, raw []byte) {
	t.Helper()
	m, _ := body.(map[string]any)
	data, _ := m["data"].(map[string]any)
	if name, _ := m["name"].(string); name == "" || data["message"] == nil || data["message"] == "" {
		t.Errorf("no {name, data:{message}}: %s", raw)
	}
}

// listen follows all events until the test ends.
func (w *world) listen(t *testing.T) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", w.url+"/event", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{events: make(chan event, 10000), done: make(chan struct{})}
	go l.read(res.Body)
	t.Cleanup(func() { cancel(); res.Body.Close(); <-l.done })
	l.until(t, func(e *event) bool { return e.Type == "server.connected" })
	return l
}

type listener struct {
	events chan event
	done   chan struct{}
}

func (l *listener) read(body io.Reader) {
	defer close(l.done)
	defer close(l.events)
	var buf []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := body.Read(chunk)
		buf = append(buf, chunk[:n]...)
		for {
			i := bytes.Index(buf, []byte("\n\n"))
			if i < 0 {
				break
			}
			for line := range strings.Lines(string(buf[:i])) {
				var e event
				if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
					l.events <- e
				}
			}
			buf = buf[i+2:]
		}
		if err != nil {
			return
		}
	}
}

// until collects events up to the one that fits.
func (l *listener) until(t *testing.T, fits func(*event) bool) []event {
	t.Helper()
	var out []event
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case e, ok := <-l.events:
			if !ok {
				t.Fatalf("the stream ended after %s", order(out))
			}
			out = append(out, e)
			if fits(&e) {
				return out
			}
		case <-deadline:
			t.Fatalf("waited in vain; got %s", order(out))
		}
	}
}

// of keeps the events of one session.
func of(list []event, session string) []event {
	return slices.DeleteFunc(slices.Clone(list), func(e event) bool {
		var p struct {
			SessionID string
			Info      struct{ ID string }
		}
		_ = json.Unmarshal(e.Properties, &p)
		return p.SessionID != session && p.Info.ID != session
	})
}

// noise are events that opencode 1.18.33 sends beside a turn: its snapshots,
// its plugins, titles and counters of the session row.
var noise = []string{"session.created", "session.updated", "session.diff", "server.connected", "server.heartbeat", "plugin.added", "catalog.updated",
	"integration.updated", "reference.updated", "file.edited", "file.watcher.updated", "project.updated", "command.executed"}

// order gives the sequence of what happened, without noise and repetitions:
// opencode 1.18.33 says busy at each step, the user's message again with its
// diffs, the assistant's once with and once without its time, and a running
// tool again with each piece of its output.
func order(list []event) string {
	var out []string
	status, users, tools := "", map[string]bool{}, map[string]string{}
	for _, e := range list {
		var p struct {
			Info struct{ ID, Role string }
			Part struct {
				ID, Type string
				State    struct{ Status string }
			}
			Status struct{ Type string }
		}
		_ = json.Unmarshal(e.Properties, &p)
		label := e.Type
		switch e.Type {
		case "message.updated":
			label += ":" + p.Info.Role
			if p.Info.Role == "user" {
				if users[p.Info.ID] {
					continue
				}
				users[p.Info.ID] = true
			}
		case "message.part.updated":
			label = "part:" + p.Part.Type
			if state := p.Part.State.Status; state != "" {
				if tools[p.Part.ID] == state {
					continue
				}
				tools[p.Part.ID] = state
				label += ":" + state
			}
			if p.Part.Type == "patch" {
				continue
			}
		case "message.part.delta":
			label = "delta"
		case "session.status":
			if p.Status.Type == status {
				continue
			}
			status = p.Status.Type
			label += ":" + status
		}
		if slices.Contains(noise, e.Type) || len(out) > 0 && out[len(out)-1] == label && label != "part:text" {
			continue
		}
		out = append(out, label)
	}
	return strings.Join(out, " ")
}
