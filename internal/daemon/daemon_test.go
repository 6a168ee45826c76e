package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse"
	"rouse/internal/config"
	"rouse/internal/daemon"
)

func TestMain(m *testing.M) {
	if data := os.Getenv("ROUSE_TEST_SERVE"); data != "" {
		serveChild(data)
	}
	goleak.VerifyTestMain(m)
}

func options(t *testing.T, data string) daemon.Options {
	t.Helper()
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home, "ROUSE_KEYRING": "off"}[name] }
	return daemon.Options{Paths: config.DefaultPaths(env), Data: data, Drill: true, Logger: slog.New(slog.DiscardHandler)}
}

// start runs a server until the test or stop ends it.
func start(t *testing.T, opt daemon.Options) (r daemon.Ready, stop func()) {
	t.Helper()
	ready := make(chan daemon.Ready, 1)
	opt.Ready = func(r daemon.Ready) { ready <- r }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- daemon.Run(ctx, opt) }()
	select {
	case r = <-ready:
	case err := <-done:
		t.Fatal("did not start:", err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		http.DefaultClient.CloseIdleConnections()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error("stop:", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the server did not stop")
		}
	}
	t.Cleanup(stop)
	return r, stop
}

func call(t *testing.T, r daemon.Ready, method, path string, body any, into any) *http.Response {
	t.Helper()
	var rd io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		rd = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, r.URL+path, rd)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, raw)
		}
	}
	return res
}

func TestServeAPromptAndRemember(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	r, stop := start(t, options(t, data))
	var s struct{ ID string }
	call(t, r, "POST", "/session?directory="+t.TempDir(), map[string]any{"title": "first"}, &s)
	var answer struct {
		Parts []struct{ Type, Text string }
	}
	res := call(t, r, "POST", "/session/"+s.ID+"/message", map[string]any{
		"model": "drill/echo", "parts": []map[string]string{{"type": "text", "text": "hello there"}}}, &answer)
	var text []string
	for _, p := range answer.Parts {
		text = append(text, p.Text)
	}
	if res.StatusCode != 200 || !strings.Contains(strings.Join(text, ""), "hello there") {
		t.Errorf("%d %+v", res.StatusCode, answer)
	}
	stop()
	r, _ = start(t, options(t, data))
	var messages []json.RawMessage
	call(t, r, "GET", "/session/"+s.ID+"/message", nil, &messages)
	if len(messages) != 2 {
		t.Errorf("after a restart there are %d messages", len(messages))
	}
}

func TestDataFolder(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	r, _ := start(t, options(t, data))
	for name, want := range map[string]os.FileMode{"": 0o700, "rouse.db": 0o600, "rouse.db-wal": 0o600, "token": 0o600, "server.json": 0o600, "lock": 0o600} {
		info, err := os.Stat(filepath.Join(data, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v %v", name, info.Mode().Perm(), err)
		}
	}
	if !r.NewToken || !regexp.MustCompile(`^[A-Za-z0-9]{40,}$`).MatchString(r.Token) { // as an argument it is no option
		t.Errorf("token %q", r.Token)
	}
}

// What cannot work is refused with a sentence that says what to do.
func TestRefusals(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	start(t, options(t, data))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	empty := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(empty, "token"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*daemon.Options)
		kind   rouse.Kind
		says   string
	}{
		"second server": {func(o *daemon.Options) { o.Data = data }, rouse.Conflict, "pid"},
		"port in use":   {func(o *daemon.Options) { o.Port = taken.Addr().(*net.TCPAddr).Port }, rouse.Invalid, "--port"},
		"open to all":   {func(o *daemon.Options) { o.Host, o.NoAuth = "0.0.0.0", true }, rouse.Invalid, "--no-auth"},
		"empty token":   {func(o *daemon.Options) { o.Data = empty }, rouse.Invalid, "token"},
		"not a folder":  {func(o *daemon.Options) { o.Data = filepath.Join(empty, "token") }, rouse.Unavailable, "data folder"},
	} {
		t.Run(name, func(t *testing.T) {
			opt := options(t, filepath.Join(t.TempDir(), "data"))
			c.change(&opt)
			err := daemon.Run(t.Context(), opt)
			if rouse.KindOf(err) != c.kind || !strings.Contains(rouse.SafeMessage(err), c.says) {
				t.Errorf("%v (kind %s)", err, rouse.KindOf(err))
			}
		})
	}
}
