package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rouse"
	"rouse/internal/client"
)

// news writes what a sink is told as lines.
type news struct{ got []string }

func (n *news) add(format string, args ...any) { n.got = append(n.got, fmt.Sprintf(format, args...)) }
func (n *news) text(p client.Part, piece string, end bool) {
	n.add("%s %q %v", p.Type, piece, end)
}
func (n *news) tool(p client.Part) { n.add("tool %s %s", p.Tool, p.State.Status) }
func (n *news) step(p client.Part) { n.add("%s", p.Type) }
func (n *news) retry(_ string, s client.Status) {
	n.add("retry %d", s.Status.Attempt)
}
func (n *news) failed(_ string, e *client.MessageError) { n.add("failed %s", e.Name) }
func (n *news) idle(string)                             { n.add("idle") }
func (n *news) asked(r client.Request)                  { n.add("asked %s", r.ID) }

func event(kind, session string, properties any) client.Event {
	raw, err := json.Marshal(properties)
	if err != nil {
		panic(err)
	}
	return client.Event{Type: kind, SessionID: session, Properties: raw}
}

type obj = map[string]any

func message(id, parent string) client.Event {
	return event("message.updated", "s", obj{"info": obj{"id": id, "parentID": parent, "role": "assistant"}})
}

func textPart(id, message, text string, end int) client.Event {
	return event("message.part.updated", "s", obj{"part": obj{"id": id, "messageID": message, "sessionID": "s", "type": "text", "text": text, "time": obj{"start": 1, "end": end}}})
}

func delta(id, text string) client.Event {
	return event("message.part.delta", "s", obj{"partID": id, "field": "text", "delta": text})
}

func tool(status string) client.Event {
	return event("message.part.updated", "s", obj{"part": obj{"id": "t", "messageID": "m", "sessionID": "s", "type": "tool", "tool": "bash", "state": obj{"status": status}}})
}

func status(kind string, attempt, next int) client.Event {
	return event("session.status", "s", obj{"status": obj{"type": kind, "attempt": attempt, "next": next}})
}

func TestViewTellsNothingTwice(t *testing.T) {
	for _, x := range []struct {
		name   string
		events []client.Event
		want   string
	}{
		{"deltas, then the whole", []client.Event{message("m", "u"), textPart("p", "m", "", 0), delta("p", "he"), delta("p", "llo"), textPart("p", "m", "hello!", 9), textPart("p", "m", "hello!", 9)},
			`text "he" false|text "llo" false|text "!" true`},
		{"resumed in the middle", []client.Event{message("m", "u"), textPart("p", "m", "", 0), delta("p", "he"), textPart("p", "m", "hello", 0), delta("p", " you"), textPart("p", "m", "hello you", 9)},
			`text "he" false|text "llo" false|text " you" false|text "" true`},
		{"an old snapshot", []client.Event{message("m", "u"), textPart("p", "m", "hello", 0), textPart("p", "m", "he", 0), delta("p", "l"), delta("p", "lo!")},
			`text "hello" false|text "!" false`},
		{"changed at the end", []client.Event{message("m", "u"), textPart("p", "m", "hello ", 0), textPart("p", "m", "hello", 0), textPart("p", "m", "HELLO you", 9)},
			`text "hello " false|text "you" true`},
		{"somebody else's answer", []client.Event{message("x", "other"), textPart("p", "x", "no", 9), message("u2", "")}, ``},
		{"another session", []client.Event{event("message.updated", "z", obj{"info": obj{"id": "m", "parentID": "u"}})}, ``},
		{"tools", []client.Event{message("m", "u"), tool("pending"), tool("running"), tool("running"), tool("completed"), tool("running")},
			`tool bash pending|tool bash running|tool bash completed`},
		{"retries and idle", []client.Event{status("busy", 0, 0), status("retry", 1, 100), status("retry", 1, 100), status("retry", 2, 200), status("idle", 0, 0), status("idle", 0, 0)},
			`retry 1|retry 2|idle`},
		{"a delta of an unknown part", []client.Event{delta("p", "x")}, ``},
	} {
		t.Run(x.name, func(t *testing.T) {
			n := &news{}
			v := newView(n, "s", "u")
			for _, e := range x.events {
				if err := v.event(e); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(n.got, "|"); got != x.want {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
		})
	}
}

// TestViewText: whatever the order of deltas, snapshots and resumptions, the
// pieces are the text. A snapshot that is read beside the stream is ahead of it:
// it has what deltas bring that were sent before it was read.
func TestViewText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 40, 200).Draw(t, "text")
		n := &collect{}
		v := newView(n, "s", "u")
		feed := func(e client.Event) {
			if err := v.event(e); err != nil {
				t.Fatal(err)
			}
		}
		feed(message("m", "u"))
		feed(textPart("p", "m", "", 0))
		runes := []rune(text)
		for at := 0; at < len(runes); {
			next := rapid.IntRange(at+1, len(runes)).Draw(t, "next")
			if rapid.Bool().Draw(t, "read beside") {
				ahead := rapid.IntRange(at, len(runes)).Draw(t, "ahead")
				v.part(client.Part{ID: "p", MessageID: "m", SessionID: "s", Type: "text", Text: string(runes[:ahead]), Time: &client.Span{Start: 1}})
			}
			if rapid.Bool().Draw(t, "resumed") {
				feed(textPart("p", "m", string(runes[:next]), 0))
			} else {
				feed(delta("p", string(runes[at:next])))
			}
			at = next
		}
		feed(textPart("p", "m", text, 9))
		if n.String() != text || n.ends != 1 {
			t.Fatalf("%q became %q, %d ends", text, n.String(), n.ends)
		}
	})
}

type collect struct {
	news
	strings.Builder
	ends int
}

func (c *collect) text(_ client.Part, piece string, end bool) {
	c.WriteString(piece)
	if end {
		c.ends++
	}
}

func TestTerminalKeepsTheAnswerApart(t *testing.T) {
	var out, side bytes.Buffer
	term := &terminal{out: &out, side: &side, brief: true, now: func() time.Time { return time.UnixMilli(0) }}
	v := newView(term, "s", "u")
	for _, e := range []client.Event{
		message("m", "u"), textPart("p", "m", "", 0), delta("p", "on \x1b[31mred"),
		event("message.part.updated", "s", obj{"part": obj{"id": "t", "messageID": "m", "sessionID": "s", "type": "tool", "tool": "bash", "state": obj{"status": "running", "input": obj{"command": "ls\n-l"}}}}),
		textPart("p", "m", "on \x1b[31mred", 5), textPart("q", "m", "two\n", 9),
		event("message.part.updated", "s", obj{"part": obj{"id": "w", "messageID": "m", "sessionID": "s", "type": "text", "text": "limit", "metadata": obj{"error": true}}}),
		event("session.status", "s", obj{"status": obj{"type": "retry", "attempt": 1, "next": 4000, "class": "rate", "message": "slow down"}}),
	} {
		if err := v.event(e); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "on [31mred\ntwo\n" {
		t.Errorf("stdout %q", out.String())
	}
	if side.String() != "→ bash  ls -l\n… attempt 1 failed (rate): slow down; next in 4s\n" {
		t.Errorf("stderr %q", side.String())
	}
}

func TestExitCodes(t *testing.T) {
	refused := func(status int, name string) error {
		return &rouse.Error{Kind: rouse.Internal, Err: &client.Refusal{Status: status, Name: name}}
	}
	for _, x := range []struct {
		err  error
		want int
	}{
		{nil, 0}, {errors.New("x"), 1}, {usage("x"), 2}, {rouse.Errorf(rouse.Invalid, "config", "x"), 2},
		{refused(409, "WallOpen"), 4}, {refused(409, "ConflictError"), 8}, {refused(404, ""), 8}, {refused(400, ""), 8},
		{refused(501, ""), 8}, {refused(503, ""), 8}, {refused(500, ""), 1}, {rouse.Errorf(rouse.Conflict, "daemon", "x"), 8},
		{&rouse.Error{Kind: rouse.Unavailable, Err: errors.Join(client.ErrUnreachable)}, 9},
		{rouse.Wrap("x", errTimeout), 124}, {rouse.Wrap("x", errInterrupted), 130}, {&exit{6, nil}, 6},
	} {
		if got := codeOf(x.err); got != x.want {
			t.Errorf("%v: %d, want %d", x.err, got, x.want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	failed := func(name string, class rouse.Class, reason string) *client.MessageError {
		e := &client.MessageError{Name: name}
		e.Data.Class, e.Data.Reason, e.Data.Message = class, reason, "why"
		return e
	}
	for _, x := range []struct {
		err     *client.MessageError
		outcome string
		code    int
	}{
		{nil, "completed", 0},
		{failed("APIError", rouse.ClassQuota, ""), "failed", 4},
		{failed("APIError", rouse.ClassBilling, ""), "failed", 4},
		{failed("APIError", rouse.ClassRate, ""), "failed", 3},
		{failed("UnknownError", "", ""), "failed", 3},
		{failed("MessageAbortedError", "", ""), "cancelled", 5},
		{failed("MessageAbortedError", "", "the server stopped"), "interrupted", 5},
	} {
		outcome, code, text := outcomeOf(&client.Entry{Info: client.Message{Error: x.err}})
		if outcome != x.outcome || code != x.code || (text == "") != (x.err == nil) {
			t.Errorf("%+v: %s %d %q", x.err, outcome, code, text)
		}
	}
}

func TestSmallWords(t *testing.T) {
	for d, want := range map[time.Duration]string{-1: "0s", 59 * time.Second: "59s", 61 * time.Minute: "1h", 47 * time.Hour: "47h", 50 * time.Hour: "2d"} {
		if got := age(d); got != want {
			t.Errorf("age %s: %s", d, got)
		}
	}
	for n, want := range map[int64]string{0: "", 999: "999", 128_000: "128k", 1_000_000: "1M", 1_250_000: "1.2M"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands %d: %s", n, got)
		}
	}
	if got := short("äöü", 2); got != "ä…" {
		t.Errorf("short: %s", got)
	}
	if raw, _ := json.Marshal([]stamp{at(1796042248242), {}}); string(raw) != `["2026-11-30T12:37:28.242Z",null]` {
		t.Errorf("stamp: %s", raw)
	}
	whole := time.Date(2026, 11, 30, 12, 37, 28, 0, time.FixedZone("", 3600))
	if raw, _ := json.Marshal([]instant{instant(whole), instant(whole.Add(60 * time.Millisecond)), {}}); string(raw) != `["2026-11-30T11:37:28Z","2026-11-30T11:37:28.060Z",null]` {
		t.Errorf("instant: %s", raw)
	}
}
