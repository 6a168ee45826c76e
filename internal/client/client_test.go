package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve gives a client of a server with one handler.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := New(srv.URL, "secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestErrorsKeepTheServersWords(t *testing.T) {
	for _, x := range []struct {
		status     int
		body       string
		kind       rouse.Kind
		msg, field string
	}{
		{404, `{"name":"NotFoundError","data":{"message":"Session not found: ses_x"}}`, rouse.NotFound, "Session not found: ses_x", ""},
		{400, `{"name":"BadRequest","data":{"message":"model: no","field":"model"}}`, rouse.Invalid, "model: no", "model"},
		{404, `{"_tag":"PermissionNotFoundError","message":"gone"}`, rouse.NotFound, "gone", ""},
		{409, `{"name":"WallOpen","data":{"message":"limit","wall":{}}}`, rouse.Conflict, "limit", ""},
		{422, `{"name":"IdempotencyMismatch","data":{"message":"other body"}}`, rouse.Mismatch, "other body", ""},
		{401, ``, rouse.Denied, "the server wants a token, and not this one: give its own with --token or ROUSE_TOKEN, or use the data folder of the server", ""},
		{500, `{"name":"UnknownError","data":{"message":"It failed.","ref":"err_1"}}`, rouse.Internal, "It failed (reference err_1)", ""},
		{502, `<html>`, rouse.Upstream, "the server answered Bad Gateway", ""},
		{501, `{"data":{"message":"later"}}`, rouse.Unsupported, "later", ""},
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("no token: %v", r.Header)
			}
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(x.status)
			fmt.Fprint(w, x.body)
		})
		_, err := c.Session(context.Background(), "ses_x")
		if rouse.KindOf(err) != x.kind || rouse.SafeMessage(err) != x.msg || rouse.FieldOf(err) != x.field {
			t.Errorf("%d: %s %q %q", x.status, rouse.KindOf(err), rouse.SafeMessage(err), rouse.FieldOf(err))
		}
		if r, ok := RefusalOf(err); !ok || r.Status != x.status || r.RetryAfter != 7*time.Second || errors.Is(err, ErrUnreachable) {
			t.Errorf("%d: refusal %+v", x.status, r)
		}
	}
}

func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	c, err := New(srv.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Health(context.Background())
	if !errors.Is(err, ErrUnreachable) || rouse.SafeMessage(err) != "no server answers at "+srv.URL+": `rouse serve` starts one" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	mine := errors.New("mine")
	cancel(mine)
	if _, err = c.Health(ctx); !errors.Is(err, mine) || errors.Is(err, ErrUnreachable) {
		t.Errorf("cancelled: %v", err)
	}
	if err := c.Follow(context.Background(), Stream{}, nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("follow: %v", err)
	}
}

func TestNotARouseServer(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	if _, err := c.Agents(context.Background()); rouse.KindOf(err) != rouse.Upstream || !strings.Contains(rouse.SafeMessage(err), "is it a Rouse server?") {
		t.Errorf("%v", err)
	}
}

// TestAStrangersRefusal: whatever else listens there, and however it refuses.
func TestAStrangersRefusal(t *testing.T) {
	for status, body := range map[int]string{404: "404 page not found\n", 405: "", 403: "<html>", 301: "", 400: `{"detail":"Bad Request"}`, 418: `[]`} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
		_, err := c.Agents(context.Background())
		want := fmt.Sprintf("what answers at %s is no Rouse server: it says %d %s to /", c.URL(), status, http.StatusText(status))
		if !strings.HasPrefix(rouse.SafeMessage(err), want) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestPromptOnTheWire(t *testing.T) {
	var got struct {
		method, path, key, dir string
		body                   map[string]any
	}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got.method, got.path, got.key, got.dir = r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("X-Opencode-Directory")
		got.body = nil
		_ = json.NewDecoder(r.Body).Decode(&got.body)
		w.Header().Set("X-Rouse-Message", "msg_1")
		w.Header().Set("X-Rouse-Turn", "trn_1")
		w.Header().Set("X-Rouse-Generation", "3")
		w.WriteHeader(http.StatusNoContent)
	})
	acc, err := c.PromptAsync(context.Background(), "ses_1", Prompt{
		Key: "k", Directory: "/a b", Parts: []PartInput{{Type: "text", Text: "hi"}},
		Model: rouse.ModelRef{Provider: "p", Model: "m/x", Variant: "high"},
	})
	if err != nil || acc != (Accepted{MessageID: "msg_1", TurnID: "trn_1", Generation: 3}) {
		t.Errorf("%+v %v", acc, err)
	}
	body, _ := json.Marshal(got.body)
	want := `{"model":{"modelID":"m/x","providerID":"p","variant":"high"},"parts":[{"text":"hi","type":"text"}],"variant":"high"}`
	if got.method != "POST" || got.path != "/session/ses_1/prompt_async" || got.key != "k" || got.dir != "%2Fa%20b" || string(body) != want {
		t.Errorf("%+v\n%s", got, body)
	}
}

func TestQueued(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"status":"delayed","fireAt":1000}`)
	})
	acc, err := c.PromptAsync(context.Background(), "ses_1", Prompt{})
	if err != nil || acc.Status != "delayed" || !acc.FireAt.Equal(time.UnixMilli(1000)) {
		t.Errorf("%+v %v", acc, err)
	}
}

func TestFailedLaunch(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, `{"name":"LaunchFailed","data":{"message":"quota","session":"ses_1","turn":"trn_1"}}`)
	})
	_, _, err := c.Launch(context.Background(), LaunchRequest{})
	if f, ok := Failed(err); !ok || f.Session != "ses_1" || f.Message != "quota" {
		t.Errorf("%+v %v", f, err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{}
	find := func(server, token string) (*Client, error) {
		return Find(Where{Server: server, Token: token, Data: dir, Getenv: func(n string) string { return env[n] }})
	}
	if _, err := find("", ""); !errors.Is(err, ErrNoServer) || !errors.Is(err, ErrUnreachable) {
		t.Errorf("nothing: %v", err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("token", "tok\n")
	write("server.json", `{"url":"http://127.0.0.1:1","pid":1,"token_file":`+fmt.Sprintf("%q", filepath.Join(dir, "token"))+`}`)
	for _, x := range []struct{ server, token, env, val, url, want string }{
		{"", "", "", "", "http://127.0.0.1:1", "tok"},
		{"", "mine", "", "", "http://127.0.0.1:1", "mine"},
		{"", "", "ROUSE_TOKEN", "e", "http://127.0.0.1:1", "e"},
		{"", "", "OPENCODE_SERVER_PASSWORD", "o", "http://127.0.0.1:1", "o"},
		{"http://127.0.0.1:1/", "", "", "", "http://127.0.0.1:1", "tok"},
		{"other:2", "", "", "", "http://other:2", ""}, // our token is not for strangers
		{"", "", "ROUSE_SERVER", "http://other:3", "http://other:3", ""},
		{"http://u:pw@h:4/x?y", "", "", "", "http://h:4/x", "pw"},
	} {
		clear(env)
		env[x.env] = x.val
		c, err := find(x.server, x.token)
		if err != nil || c.URL() != x.url || c.Token() != x.want {
			t.Errorf("%+v: %v %+v", x, err, c)
		}
	}
	if _, err := New("ftp://x", ""); rouse.FieldOf(err) != "server" {
		t.Errorf("ftp: %v", err)
	}
}

// A server that takes the connection and says nothing is not waited for without
// end, and what is said of it is another thing than that there is none.
func TestSilentServer(t *testing.T) {
	stuck := make(chan struct{})
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stuck:
		case <-r.Context().Done():
		}
	})
	defer close(stuck)
	_, err := c.do(t.Context(), call{method: http.MethodGet, path: "/x", bound: 20 * time.Millisecond})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.do(ctx, call{method: http.MethodGet, path: "/x"}); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnreachable) {
		t.Errorf("the caller's own end: %v", err)
	}
}

// Text that is not UTF-8 would arrive as another text: it is not sent.
func TestMutilated(t *testing.T) {
	for text, want := range map[string]bool{"": false, "plain": false, "caf\xe9": true, "\ufffd": false, `\ufffd`: false, `\\ufffd`: false,
		"x\\\xff": true, `\ufffd` + "\xff": true, "\xff\xfe": true, "日本\n": false} {
		raw, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		if got := mutilated(raw); got != want {
			t.Errorf("%q as %s: %v", text, raw, got)
		}
	}
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	if _, _, err := c.Rescue(t.Context(), "ses_1", RescueRequest{Facts: []string{"fine", "caf\xe9"}}); rouse.KindOf(err) != rouse.Invalid || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%v", err)
	}
}
