package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rouse"
)

// served gives a client for a handler.
func served(t *testing.T, wire string, idle time.Duration, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	tr := NewTransport()
	c, err := New(Config{ID: "p", Wire: wire, BaseURL: srv.URL + "/v1", IdleTimeout: idle, Transport: tr,
		Key: func(context.Context) (string, error) { return "k-1", nil }, Headers: map[string]string{"X-Own": "1"}, Body: map[string]any{"extra": true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.CloseIdleConnections(); srv.CloseClientConnections(); srv.Close() })
	return c
}

func flushed(w http.ResponseWriter, s string) {
	_, _ = io.WriteString(w, s)
	_ = http.NewResponseController(w).Flush()
}

func data(s string) string { return "data: " + s + "\n\n" }

// cut closes the connection without ending the answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

func TestStreamEnds(t *testing.T) {
	token, end := data(oa(`{"content":"a"}`)), data(oaEnd("stop"))
	for _, c := range []struct {
		name    string
		idle    time.Duration
		h       http.HandlerFunc
		kind    ErrorKind // "" is a result
		status  int
		emitted bool
		body    string
	}{
		{"complete", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, token+end+data("[DONE]")) }, "", 0, false, ""},
		{"complete without end mark", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, token+end) }, "", 0, false, ""},
		{"cut after the finish reason", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, token+end); cut(w) }, "", 0, false, ""},
		{"open after the end mark", 0, func(w http.ResponseWriter, r *http.Request) {
			flushed(w, token+end+data("[DONE]"))
			<-r.Context().Done()
		}, "", 0, false, ""},
		{"no stream at all", 0, func(w http.ResponseWriter, _ *http.Request) {
			flushed(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`)
		}, "", 0, false, ""},
		{"status", 0, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429); flushed(w, `{"error":{}}`) }, HTTPError, 429, false, `{"error":{}}`},
		{"redirect is not followed", 0, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, HTTPError, http.StatusTemporaryRedirect, false, ""},
		{"error inside", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, token+data(`{"error":{"code":"x"}}`)) }, InStream, 200, true, `{"error":{"code":"x"}}`},
		{"error event inside", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, "event: error\n"+data(`{"m":1}`)) }, InStream, 200, false, `{"m":1}`},
		{"error document", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, ` {"error":{"code":"x"}}`) }, InStream, 200, false, ` {"error":{"code":"x"}}`},
		{"some document", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, `{"ok":true}`) }, Garbage, 200, false, `{"ok":true}`},
		{"HTML", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, "<html>x</html>") }, Garbage, 200, false, "<html>x</html>"},
		{"no JSON", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, token+data("hello")) }, Garbage, 200, true, "hello"},
		{"empty", 0, func(http.ResponseWriter, *http.Request) {}, NoFinish, 200, false, ""},
		{"no finish reason", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, token+data("[DONE]")) }, NoFinish, 200, true, ""},
		{"end inside an event", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, token+`data: {"cho`) }, NoFinish, 200, true, ""},
		{"cut", 0, func(w http.ResponseWriter, _ *http.Request) { flushed(w, token); cut(w) }, Broken, 200, true, ""},
		{"cut before the answer", 0, func(w http.ResponseWriter, _ *http.Request) { cut(w) }, TransportFail, 0, false, ""},
		{"stalled", 50 * time.Millisecond, func(w http.ResponseWriter, r *http.Request) { flushed(w, token); <-r.Context().Done() }, Stalled, 200, true, ""},
		{"stalled before the answer", 50 * time.Millisecond, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }, Stalled, 0, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ds []Delta
			res, err := served(t, OpenAI, c.idle, c.h).Stream(t.Context(), Request{Model: "m"}, func(d Delta) { ds = append(ds, d) })
			if c.kind == "" {
				if err != nil || res.Finish != FinishStop || told(ds) != "began text(a)" {
					t.Fatalf("got %s, %+v, %v", told(ds), res, err)
				}
				return
			}
			var ce *CallError
			if !errors.As(err, &ce) {
				t.Fatalf("got %v, want a CallError", err)
			}
			if ce.Kind != c.kind || ce.Status != c.status || ce.Emitted != c.emitted || string(ce.Body) != c.body {
				t.Fatalf("got %s, status %d, emitted %v, body %q (%v)", ce.Kind, ce.Status, ce.Emitted, ce.Body, err)
			}
		})
	}
}

// TestWholeTimeout: bytes do not prolong the bound of the whole call.
func TestWholeTimeout(t *testing.T) {
	c := served(t, OpenAI, 0, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			flushed(w, data(oa(`{"content":"a"}`)))
		}
	})
	c.cfg.Timeout = 50 * time.Millisecond
	_, err := c.Stream(t.Context(), Request{Model: "m"}, func(Delta) {})
	var ce *CallError
	if !errors.As(err, &ce) || ce.Kind != Stalled || !ce.Emitted || !errors.Is(err, errTimeout) {
		t.Fatalf("got %v", err)
	}
}

func TestStreamRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	c, err := New(Config{ID: "p", Wire: OpenAI, BaseURL: "http://" + addr, Transport: NewTransport()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Stream(t.Context(), Request{Model: "m"}, func(Delta) {})
	var ce *CallError
	if !errors.As(err, &ce) || ce.Kind != TransportFail || strings.Contains(ce.Error(), "/chat/") {
		t.Fatalf("got %v", err)
	}
}

func TestStreamCancel(t *testing.T) {
	why := errors.New("a person said so")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := served(t, OpenAI, 0, func(w http.ResponseWriter, r *http.Request) {
		flushed(w, data(oa(`{"content":"a"}`)))
		<-r.Context().Done()
	})
	_, err := c.Stream(ctx, Request{Model: "m"}, func(d Delta) {
		if d.Kind == Text {
			cancel(why)
		}
	})
	if !errors.Is(err, why) {
		t.Fatalf("got %v, want the cause", err)
	}
}

func TestErrorBodyIsBounded(t *testing.T) {
	c := served(t, OpenAI, 0, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 3<<20))
	})
	_, err := c.Stream(t.Context(), Request{Model: "m"}, func(Delta) {})
	var ce *CallError
	if !errors.As(err, &ce) || len(ce.Body) != maxErrorBody {
		t.Fatalf("got %v", err)
	}
}

// TestKeepsConnection: after a complete answer the next call takes the same
// connection.
func TestKeepsConnection(t *testing.T) {
	from := map[string]bool{}
	c := served(t, OpenAI, 0, func(w http.ResponseWriter, r *http.Request) {
		from[r.RemoteAddr] = true
		flushed(w, data(oaEnd("stop"))+data("[DONE]"))
	})
	for range 3 {
		if _, err := c.Stream(t.Context(), Request{Model: "m"}, func(Delta) {}); err != nil {
			t.Fatal(err)
		}
	}
	if len(from) != 1 {
		t.Fatalf("%d connections", len(from))
	}
}

var conversation = Request{
	Model: "m", System: []string{"be brief", "here"}, MaxTokens: 100, Effort: "high",
	Tools: []Tool{{"bash", "runs", json.RawMessage(`{"type":"object"}`)}},
	Messages: []Message{
		{rouse.User, []Block{{Kind: TextBlock, Text: "look"}, {Kind: FileBlock, File: rouse.File{Mime: "image/png", URL: "data:image/png;base64,AAAA"}}}},
		{rouse.Assistant, []Block{{Kind: ReasoningBlock, Text: "hm", Metadata: json.RawMessage(`{"signature":"s"}`)}, {Kind: ReasoningBlock, Text: "unsigned"}, {Kind: TextBlock, Text: "ok"}, {Kind: CallBlock, CallID: "c1", Name: "bash", Input: json.RawMessage(`{"a":1}`)}, {Kind: CallBlock, CallID: "c2", Name: "bash", Input: json.RawMessage(`{"a`)}}},
		{rouse.User, []Block{{Kind: ResultBlock, CallID: "c1", Name: "bash", Text: "out", Files: []rouse.File{{Mime: "image/png", URL: "data:image/png;base64,BBBB"}}}, {Kind: ResultBlock, CallID: "c2", Name: "bash", Text: "bad", IsError: true}}},
		{rouse.User, []Block{{Kind: TextBlock, Text: "go on"}}},
	},
	Options: map[string]json.RawMessage{"seed": json.RawMessage(`7`)},
	Header:  http.Header{"X-Turn": {"t1"}},
}

func sent(t *testing.T, wire string, r Request) (map[string]any, http.Header, string) {
	t.Helper()
	var body map[string]any
	var h http.Header
	var path string
	c := served(t, wire, 0, func(w http.ResponseWriter, r *http.Request) {
		h, path = r.Header, r.URL.Path
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.WriteHeader(400)
	})
	_, err := c.Stream(t.Context(), r, func(Delta) {})
	var ce *CallError
	if !errors.As(err, &ce) || ce.Status != 400 {
		t.Fatal(err)
	}
	return body, h, path
}

func TestOpenAIRequest(t *testing.T) {
	body, h, path := sent(t, OpenAI, conversation)
	if path != "/v1/chat/completions" || h.Get("Authorization") != "Bearer k-1" || h.Get("X-Own") != "1" || h.Get("X-Turn") != "t1" {
		t.Fatalf("path %s, headers %v", path, h)
	}
	got, _ := json.Marshal(body["messages"])
	want := `[{"content":"be brief\n\nhere","role":"system"},` +
		`{"content":[{"text":"look","type":"text"},{"image_url":{"url":"data:image/png;base64,AAAA"},"type":"image_url"}],"role":"user"},` +
		`{"content":"ok","role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1}","name":"bash"},"id":"c1","type":"function"},{"function":{"arguments":"{}","name":"bash"},"id":"c2","type":"function"}]},` +
		`{"content":"out","role":"tool","tool_call_id":"c1"},{"content":"bad","role":"tool","tool_call_id":"c2"},` +
		`{"content":[{"image_url":{"url":"data:image/png;base64,BBBB"},"type":"image_url"}],"role":"user"},{"content":"go on","role":"user"}]`
	if string(got) != want {
		t.Fatalf("messages:\n got %s\nwant %s", got, want)
	}
	if fmt.Sprint([]any{body["seed"], body["extra"], body["max_tokens"], body["reasoning_effort"], body["stream"]}) != "[7 true 100 high true]" {
		t.Fatalf("body %v", body)
	}
}

func TestAnthropicRequest(t *testing.T) {
	body, h, path := sent(t, Anthropic, conversation)
	if path != "/v1/messages" || h.Get("X-Api-Key") != "k-1" || h.Get("Anthropic-Version") == "" {
		t.Fatalf("path %s, headers %v", path, h)
	}
	got, _ := json.Marshal(body["messages"])
	want := `[{"content":[{"text":"look","type":"text"},{"source":{"data":"AAAA","media_type":"image/png","type":"base64"},"type":"image"}],"role":"user"},` +
		`{"content":[{"signature":"s","thinking":"hm","type":"thinking"},{"text":"ok","type":"text"},{"id":"c1","input":{"a":1},"name":"bash","type":"tool_use"},{"id":"c2","input":{},"name":"bash","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"content":[{"text":"out","type":"text"},{"source":{"data":"BBBB","media_type":"image/png","type":"base64"},"type":"image"}],"tool_use_id":"c1","type":"tool_result"},{"content":"bad","is_error":true,"tool_use_id":"c2","type":"tool_result"},{"cache_control":{"type":"ephemeral"},"text":"go on","type":"text"}],"role":"user"}]`
	if string(got) != want {
		t.Fatalf("messages:\n got %s\nwant %s", got, want)
	}
	if fmt.Sprint(body["max_tokens"]) != fmt.Sprint(16000+8192) || body["temperature"] != nil {
		t.Fatalf("body %v", body)
	}
}

// TestAnthropicThinking: an option that makes the model think fits the rest of
// the request to itself.
func TestAnthropicThinking(t *testing.T) {
	cold := 0.0
	r := Request{Model: "m", MaxTokens: 100, Temperature: &cold, Tools: conversation.Tools, Messages: conversation.Messages,
		Options: map[string]json.RawMessage{"thinking": json.RawMessage(`{"type":"enabled","budget_tokens":4000}`)}}
	body, _, _ := sent(t, Anthropic, r)
	if fmt.Sprint(body["max_tokens"]) != fmt.Sprint(4000+8192) || body["temperature"] != nil || body["thinking"] == nil {
		t.Errorf("%v", body)
	}
	r.ToolChoice = "required"
	if body, _, _ = sent(t, Anthropic, r); body["thinking"] != nil || fmt.Sprint(body["tool_choice"]) != "map[type:any]" {
		t.Errorf("%v", body)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []Config{{Wire: OpenAI, BaseURL: "nowhere"}, {Wire: OpenAI, BaseURL: "ftp://x/"}, {Wire: "other", BaseURL: "https://x/v1"}} {
		if _, err := New(c); rouse.KindOf(err) != rouse.Invalid || rouse.FieldOf(err) == "" {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestCost(t *testing.T) {
	got := Cost(rouse.Tokens{Input: 1e6, Output: 1e6, Reasoning: 1e6, CacheRead: 1e6, CacheWrite: 1e6}, Price{1, 2, 0.5, 4})
	if got != 1+2+2+0.5+4 {
		t.Fatal(got)
	}
}
