package opencode_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rouse/internal/api"
)

func (w *world) prompt(t *testing.T, id, model, text string) reply {
	t.Helper()
	provider, name, _ := strings.Cut(model, "/")
	raw, err := json.Marshal(map[string]any{"model": map[string]any{"providerID": provider, "modelID": name}, "parts": []any{map[string]any{"type": "text", "text": text}}})
	if err != nil {
		t.Fatal(err)
	}
	r := w.do(t, "POST", "/session/"+id+"/prompt_async", raw, nil)
	if r.status != 204 {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	return r
}

// said runs a turn to its end and gives the id of its prompt.
func (w *world) said(t *testing.T, l *listener, id, text string) string {
	t.Helper()
	r := w.prompt(t, id, "drill/echo", text)
	l.until(t, idleOf(id))
	return r.header.Get("X-Rouse-Message")
}

func idleOf(id string) func(*event) bool {
	return func(e *event) bool { return e.Type == "session.idle" && len(of([]event{*e}, id)) == 1 }
}

func TestRecordedNoReply(t *testing.T) {
	w := newWorld(t)
	c := load(t, "turn-noreply")
	id := w.session(t, map[string]any{})
	l := w.listen(t)
	w.replay(t, c, map[string]string{recordedID.FindString(c.Request.Path): id})
	events := l.until(t, func(e *event) bool { return e.Type == "message.part.updated" })
	w.compareEvents(t, c, of(events, id))
	w.compareMessages(t, c, id)
	if s := w.json(t, "GET", "/session/"+id, nil); s["state"] != "idle" || s["generation"] != 0.0 {
		t.Errorf("%v", s)
	}
}

// Prompts of a busy session are turns of their own, and abort leaves them to
// run. (opencode 1.18.33 drops them: they stay without an answer.)
func TestRecordedQueue(t *testing.T) {
	w := newWorld(t)
	t.Run("turn-queue-drain", func(t *testing.T) {
		id := w.session(t, map[string]any{})
		l := w.listen(t)
		w.prompt(t, id, "drill/echo", "first [[drill delay=400ms]]")
		w.prompt(t, id, "drill/echo", "second while busy")
		events := l.until(t, idleOf(id))
		if n := strings.Count(order(of(events, id)), "session.idle"); n != 1 {
			t.Errorf("idle came %d times", n)
		}
		c := load(t, "turn-queue-drain")
		c.Request.Path = first(c.Events)
		var got []any
		if err := json.Unmarshal(w.do(t, "GET", "/session/"+id+"/message", nil, nil).raw, &got); err != nil || len(got) != 4 {
			t.Fatalf("%d messages, want 4 (%v)", len(got), err)
		}
	})
	t.Run("turn-queue-busy", func(t *testing.T) {
		id := w.session(t, map[string]any{})
		l := w.listen(t)
		w.prompt(t, id, "drill/hang", "first")
		l.until(t, func(e *event) bool { return e.Type == "message.part.delta" })
		w.prompt(t, id, "drill/echo", "second while busy")
		w.prompt(t, id, "drill/echo", "third while busy")
		w.do(t, "POST", "/session/"+id+"/abort", nil, nil)
		l.until(t, idleOf(id))
		answers := 0
		var list []struct {
			Info struct {
				Role  string
				Error *struct{ Name string }
			}
		}
		if err := json.Unmarshal(w.do(t, "GET", "/session/"+id+"/message", nil, nil).raw, &list); err != nil {
			t.Fatal(err)
		}
		aborted := 0
		for _, m := range list {
			if m.Info.Role == "assistant" && m.Info.Error == nil {
				answers++
			} else if m.Info.Error != nil && m.Info.Error.Name == "MessageAbortedError" {
				aborted++
			}
		}
		if answers != 2 || aborted != 1 || len(list) != 6 {
			t.Errorf("%d answers, %d aborted, %d messages", answers, aborted, len(list))
		}
	})
}

func TestRecordedBusy(t *testing.T) {
	w := newWorld(t)
	id := w.session(t, map[string]any{})
	l := w.listen(t)
	message := w.prompt(t, id, "drill/hang", "x").header.Get("X-Rouse-Message")
	l.until(t, func(e *event) bool { return e.Type == "message.part.delta" })
	for _, name := range []string{"shell-while-busy", "revert-while-busy", "message-delete-busy"} {
		t.Run(name, func(t *testing.T) {
			c := load(t, name)
			ids := map[string]string{}
			for _, found := range recordedID.FindAllString(c.Request.Path+string(c.Request.Body), -1) {
				ids[found] = map[string]string{"ses_": id, "msg_": message}[found[:4]]
			}
			w.replay(t, c, ids)
		})
	}
	t.Run("session-delete-busy", func(t *testing.T) {
		w.replay(t, load(t, "session-delete-busy"), map[string]string{recordedID.FindString(load(t, "session-delete-busy").Request.Path): id})
		if r := w.do(t, "GET", "/session/"+id, nil, nil); r.status != 404 {
			t.Errorf("after delete: %d", r.status)
		}
	})
}

func TestRecordedShell(t *testing.T) {
	w := newWorld(t)
	c := load(t, "flow-shell")
	c.Request.Path = first(c.Events)
	id := w.session(t, map[string]any{})
	l := w.listen(t)
	w.json(t, "POST", "/session/"+id+"/shell", map[string]any{"agent": "build", "command": "echo shell-out"})
	events := l.until(t, idleOf(id))
	w.compareEvents(t, c, of(events, id))
	w.compareMessages(t, c, id)
}

// Fork, undo and redo, and a summary.
func TestRecordedHistory(t *testing.T) {
	w := newWorld(t)
	id := w.session(t, map[string]any{"title": "Mock title"})
	l := w.listen(t)
	first, second := w.said(t, l, id, "one"), w.said(t, l, id, "two")
	at := func(name string, message string) reply {
		t.Helper()
		c := load(t, name)
		ids := map[string]string{}
		for _, found := range recordedID.FindAllString(c.Request.Path+string(c.Request.Body), -1) {
			ids[found] = map[string]string{"ses_": id, "msg_": message}[found[:4]]
		}
		return w.replay(t, c, ids)
	}
	var forked struct{ ID, Title string }
	if err := json.Unmarshal(at("fork", "").raw, &forked); err != nil || forked.Title != "Mock title (fork #1)" || forked.ID == id {
		t.Errorf("fork: %+v %v", forked, err)
	}
	if n := w.count(t, forked.ID); n != 4 {
		t.Errorf("the fork has %d messages", n)
	}
	if err := json.Unmarshal(at("fork-at", second).raw, &forked); err != nil || w.count(t, forked.ID) != 2 {
		t.Errorf("fork at the second prompt: %+v, %d messages", forked, w.count(t, forked.ID))
	}
	at("fork-messages", "")
	at("diff-msg", first)
	at("revert", second)
	at("revert-messages", "")
	at("unrevert", "")
	if n := w.count(t, id); n != 4 {
		t.Errorf("%d messages after undo and redo", n)
	}
	at("revert", second)
	w.said(t, l, id, "instead of two")
	if n := w.count(t, id); n != 4 {
		t.Errorf("%d messages after an undo was made final", n)
	}
	at("summarize", "")
	events := l.until(t, func(e *event) bool { return e.Type == "session.compacted" })
	if got := order(of(events, id)); !strings.Contains(got, "message.updated:user part:compaction session.status:busy message.updated:assistant part:step-start part:text delta part:text part:step-finish") {
		t.Errorf("summary: %s", got)
	}
	l.until(t, idleOf(id))
	at("summarize-messages", "")
	at("init", "msg_11111111111111111111111111")
}

func (w *world) count(t *testing.T, id string) int {
	t.Helper()
	var list []any
	if err := json.Unmarshal(w.do(t, "GET", "/session/"+id+"/message", nil, nil).raw, &list); err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// The recorded door: user opencode, password pw123. Bearer is accepted here
// and any user name, and a refusal has a body.
func TestRecordedDoor(t *testing.T) {
	door := func(origins ...string) http.Handler {
		d, err := api.NewDoor(api.DoorConfig{Token: "pw123", Origins: origins, Log: slog.New(slog.DiscardHandler)},
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { api.WriteJSON(w, 200, []any{}) }))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	differs := map[string]struct {
		status int
		why    string
	}{
		"auth-bearer":     {200, "Bearer is the usual way to send a token"},
		"auth-wrong-user": {200, "the password alone decides"},
	}
	for _, name := range []string{"auth-ok", "auth-bearer", "auth-query-token", "auth-wrong-pw", "auth-wrong-user", "auth-none-session", "auth-none-event",
		"auth-none-health", "auth-none-doc", "auth-none-root", "auth-none-v2health", "auth-options", "cors-preflight", "cors-preflight-foreign"} {
		t.Run(name, func(t *testing.T) {
			c := load(t, name)
			r := httptest.NewRequest(c.Request.Method, "http://localhost"+c.Request.Path, nil)
			for k, v := range c.Request.Headers {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			door("http://localhost:3000").ServeHTTP(w, r)
			want := c.Response.Status
			if d, ok := differs[name]; ok {
				want = d.status
			}
			if w.Code != want {
				t.Errorf("status %d, want %d", w.Code, want)
			}
			if want == 401 && (w.Header().Get("WWW-Authenticate") != c.Response.Headers["www-authenticate"] || w.Body.Len() == 0) {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
			for _, h := range []string{"access-control-allow-origin", "access-control-allow-methods", "access-control-max-age", "vary"} {
				if name == "cors-preflight-foreign" && h != "access-control-allow-origin" {
					continue // a foreign origin is told nothing
				}
				if got := w.Header().Get(h); got != c.Response.Headers[h] {
					t.Errorf("%s: %q, recorded %q", h, got, c.Response.Headers[h])
				}
			}
			if strings.HasPrefix(name, "cors") { // without configuration CORS is off
				w := httptest.NewRecorder()
				door().ServeHTTP(w, r)
				if fmt.Sprint(w.Header()["Access-Control-Allow-Origin"]) != "[]" {
					t.Errorf("allows %v", w.Header())
				}
			}
			_, _ = io.Copy(io.Discard, w.Body)
		})
	}
}
