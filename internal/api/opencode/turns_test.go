package opencode_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"
)

// turnCases are the recorded turns; the value says at which event the turn is
// aborted, "" for a turn that runs to its end.
var turnCases = map[string]string{
	"turn-fast": "", "turn-fast-sync": "", "turn-chunks": "", "turn-think": "", "turn-tool": "", "turn-todo": "", "turn-edit": "", "turn-badtool": "",
	"turn-task": "", "turn-length": "", "turn-empty": "", "turn-break": "", "turn-breaknow": "", "turn-junk": "", "turn-system-tools-agent": "",
	"turn-rate429": "", "turn-usage429": "", "turn-week429": "", "turn-plain429": "session.status:retry", "turn-free429": "",
	"turn-e401": "", "turn-e401-sync": "", "turn-e403": "", "turn-e404": "", "turn-e503": "", "turn-bad400": "", "turn-format-json": "",
	"turn-hang-abort": "session.status:busy", "turn-hangnohdr-abort": "session.status:busy", "turn-hangmid-abort": "delta",
	"turn-drip-abort": "delta", "turn-slowtool-abort": "part:tool:running",
	"prompt-sync-empty-parts": "", "command-init": "", "shell": "",
}

// slow are the turns that end when a provider was tried often enough.
var slow = map[string]bool{"turn-breaknow": true, "turn-junk": true}

// walled are the turns that run into a usage limit of the whole account, which
// stands in the way of what comes after it: each has a server of its own.
var walled = map[string]bool{"turn-week429": true, "turn-free429": true}

func TestRecordedWalls(t *testing.T) {
	for name := range walled {
		t.Run(name, func(t *testing.T) { newWorld(t).turn(t, load(t, name), turnCases[name]) })
	}
}

func TestRecordedTurns(t *testing.T) {
	w := newWorld(t)
	for name, abortAt := range turnCases {
		if walled[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if slow[name] && testing.Short() {
				t.Skip("takes as long as the bounded retries of a provider")
			}
			t.Parallel()
			w.turn(t, load(t, name), abortAt)
		})
	}
}

// turn plays a recorded turn in a session of its own and compares what the
// reader of events and the reader of messages get.
func (w *world) turn(t *testing.T, c *recording, abortAt string) {
	id := w.session(t, map[string]any{})
	l := w.listen(t)
	ids := map[string]string{recordedID.FindString(c.Request.Path): id}
	settled := make(chan struct{})
	if abortAt != "" {
		go func() {
			defer close(settled)
			w.replay(t, c, ids)
		}()
	} else {
		w.replay(t, c, ids)
		close(settled)
	}
	var events []event
	if abortAt != "" {
		events = l.until(t, func(e *event) bool {
			return len(of([]event{*e}, id)) == 1 && strings.HasSuffix(order([]event{*e}), abortAt)
		})
		if r := w.do(t, "POST", "/session/"+id+"/abort", nil, nil); r.status != 200 || string(r.raw) != "true" {
			t.Errorf("abort: %d %s", r.status, r.raw)
		}
		if s := w.json(t, "GET", "/session/"+id, nil); s["state"] != "idle" || s["outcome"] != "cancelled" {
			t.Errorf("after abort: %v %v", s["state"], s["outcome"])
		}
	}
	<-settled
	events = append(events, l.until(t, func(e *event) bool { return e.Type == "session.idle" && len(of([]event{*e}, id)) == 1 })...)
	w.compareEvents(t, c, of(events, id))
	w.compareMessages(t, c, id)
	select {
	case e := <-l.events:
		if len(of([]event{e}, id)) == 1 && e.Type == "session.idle" {
			t.Error("idle came twice")
		}
	case <-time.After(50 * time.Millisecond):
	}
}

func (w *world) compareEvents(t *testing.T, c *recording, events []event) {
	t.Helper()
	if len(c.Events) == 0 {
		return
	}
	want := order(of(c.Events, recordedID.FindString(c.Request.Path)))
	if d := deviations[c.Case]; d.events != "" {
		want = d.events
	}
	if got := order(events); got != want {
		t.Errorf("events\n got %s\nwant %s", got, want)
	}
}

func (w *world) compareMessages(t *testing.T, c *recording, id string) {
	t.Helper()
	r := w.do(t, "GET", "/session/"+id+"/message", nil, nil)
	var got []any
	if err := json.Unmarshal(r.raw, &got); r.status != 200 || err != nil {
		t.Fatalf("messages: %d %s", r.status, r.raw)
	}
	want, ok := c.Messages.([]any)
	if !ok || deviations[c.Case].messages {
		return
	}
	shape("messages", want, got, func(s string) { t.Error(s) })
	for i := range min(len(want), len(got)) {
		if w, g := role(want[i]), role(got[i]); w != g {
			t.Errorf("message %d is of %s, recorded of %s", i, g, w)
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d messages, recorded %d", len(got), len(want))
	}
}

func role(m any) any { return m.(map[string]any)["info"].(map[string]any)["role"] }

// otherCases are recordings that the tests below use as a whole.
var otherCases = map[string]bool{
	"flow-permission-once": true, "flow-permission-always": true, "flow-permission-reject": true, "flow-permission-abort": true,
	"flow-question-reply": true, "flow-question-reject": true, "flow-question-abort": true,
	"permission-list-once": true, "permission-list-always": true, "permission-list-reject": true,
	"permission-reply-once": true, "permission-reply-always": true, "permission-reply-reject": true, "permission-reply-bad": true, "permission-respond-legacy": true,
	"question-list-reply": true, "question-list-reject": true, "question-list-abort": true, "question-reply": true, "question-reject": true,
	"turn-unknown-model-sync": true, "turn-unknown-model-async": true, "turn-unknown-provider-sync": true, "turn-unknown-provider-async": true,
	"turn-unknown-agent-sync": true, "turn-unknown-agent-async": true,
	"turn-noreply": true, "turn-queue-busy": true, "turn-queue-drain": true, "flow-shell": true,
	"shell-while-busy": true, "revert-while-busy": true, "message-delete-busy": true, "session-delete-busy": true,
	"fork": true, "fork-at": true, "fork-messages": true, "revert": true, "revert-messages": true, "unrevert": true, "diff-msg": true,
	"summarize": true, "summarize-messages": true, "events-fork-revert-summarize": true, "init": true,
	"auth-ok": true, "auth-bearer": true, "auth-query-token": true, "auth-wrong-pw": true, "auth-wrong-user": true, "auth-options": true,
	"auth-none-session": true, "auth-none-event": true, "auth-none-health": true, "auth-none-doc": true, "auth-none-root": true, "auth-none-v2health": true,
	"cors-preflight": true, "cors-preflight-foreign": true,
}

func TestRecordedRefusals(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"turn-unknown-model-sync", "turn-unknown-model-async", "turn-unknown-provider-sync", "turn-unknown-provider-async",
		"turn-unknown-agent-sync", "turn-unknown-agent-async"} {
		t.Run(name, func(t *testing.T) {
			c := load(t, name)
			id := w.session(t, map[string]any{})
			w.replay(t, c, map[string]string{recordedID.FindString(c.Request.Path): id})
			if s := w.json(t, "GET", "/session/"+id, nil); s["messageCount"] != 0.0 || s["state"] != "idle" {
				t.Errorf("something was stored: %v", s)
			}
		})
	}
}

func TestRecordedRequestsToAPerson(t *testing.T) {
	w := newWorld(t)
	ask := []any{map[string]any{"permission": "bash", "pattern": "*", "action": "ask"}}
	for name, flow := range map[string]struct {
		model, kind, list string
		answer            string // the recorded answer; "" aborts
	}{
		"flow-permission-once":   {"tool", "permission", "permission-list-once", "permission-reply-once"},
		"flow-permission-reject": {"tool", "permission", "permission-list-reject", "permission-reply-reject"},
		"flow-permission-legacy": {"tool", "permission", "permission-list-reject", "permission-respond-legacy"},
		"flow-permission-always": {"tool", "permission", "permission-list-always", "permission-reply-always"},
		"flow-permission-abort":  {"tool", "permission", "", ""},
		"flow-question-reply":    {"question", "question", "question-list-reply", "question-reply"},
		"flow-question-reject":   {"question", "question", "question-list-reject", "question-reject"},
		"flow-question-abort":    {"question", "question", "question-list-abort", ""},
	} {
		t.Run(name, func(t *testing.T) {
			id := w.session(t, map[string]any{"permission": ask})
			l := w.listen(t)
			body := map[string]any{"model": map[string]any{"providerID": "drill", "modelID": flow.model}, "parts": []any{map[string]any{"type": "text", "text": "x"}}}
			raw, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			if r := w.do(t, "POST", "/session/"+id+"/prompt_async", raw, nil); r.status != 204 {
				t.Fatalf("%d %s", r.status, r.raw)
			}
			events := l.until(t, func(e *event) bool { return e.Type == flow.kind+".asked" })
			var asked struct{ ID string }
			if err := json.Unmarshal(events[len(events)-1].Properties, &asked); err != nil {
				t.Fatal(err)
			}
			if flow.list != "" {
				w.replay(t, load(t, flow.list), nil)
			}
			if flow.kind == "permission" {
				w.replay(t, load(t, "permission-reply-bad"), map[string]string{"per_00000000000000000000000001": asked.ID})
			}
			if flow.answer == "" {
				if r := w.do(t, "POST", "/session/"+id+"/abort", nil, nil); r.status != 200 {
					t.Errorf("abort: %d %s", r.status, r.raw)
				}
			} else {
				c := load(t, flow.answer)
				ids := map[string]string{}
				for _, found := range recordedID.FindAllString(c.Request.Path, -1) {
					ids[found] = map[string]string{"ses_": id, "per_": asked.ID, "que_": asked.ID}[found[:4]]
				}
				w.replay(t, c, ids)
			}
			events = append(events, l.until(t, func(e *event) bool { return e.Type == "session.idle" })...)
			if r := w.do(t, "GET", "/"+flow.kind+"?directory="+url.QueryEscape(w.dir), nil, nil); string(r.raw) != "[]" {
				t.Errorf("still open: %s", r.raw)
			}
			if name == "flow-permission-legacy" {
				return // the same as reject, answered on the older route
			}
			c := load(t, name)
			c.Request.Path = first(c.Events)
			w.compareEvents(t, c, of(events, id))
			w.compareMessages(t, c, id)
		})
	}
}

// first is the session of the first event.
func first(events []event) string {
	for _, e := range events {
		if id := recordedID.FindString(string(e.Properties)); strings.HasPrefix(id, "ses_") {
			return id
		}
	}
	return ""
}
