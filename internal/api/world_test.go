package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"rouse/internal/config"
	"rouse/internal/daemon"
)

// server is the whole of Rouse on the drill's provider.
type server struct {
	t     *testing.T
	url   string
	token string
	dir   string
}

func start(t *testing.T) *server {
	t.Helper()
	return startWith(t, func(*daemon.Options) {})
}

func startWith(t *testing.T, change func(*daemon.Options)) *server {
	t.Helper()
	home := t.TempDir()
	s := &server{t: t, dir: filepath.Join(t.TempDir(), "project")}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	paths := config.DefaultPaths(func(name string) string { return map[string]string{"HOME": home, "ROUSE_KEYRING": "off"}[name] })
	ready, done := make(chan daemon.Ready, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		opt := daemon.Options{Paths: paths, Data: filepath.Join(home, "data"), Drill: true,
			Logger: slog.New(slog.DiscardHandler), Ready: func(r daemon.Ready) { ready <- r }}
		change(&opt)
		done <- daemon.Run(ctx, opt)
	}()
	select {
	case r := <-ready:
		s.url, s.token = r.URL, r.Token
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
	return s
}

type object = map[string]any

// answer is the body of a call that is answered with a status.
func (s *server) answer(status int, token, method, path string, body any) []byte {
	s.t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, s.url+path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		s.t.Fatalf("%s %s: %d, want %d: %s (%v)", method, path, res.StatusCode, status, raw, err)
	}
	return raw
}

// call is answer where that is an object; an error says what is wrong.
func (s *server) call(status int, token, method, path string, body any) object {
	s.t.Helper()
	raw := s.answer(status, token, method, path, body)
	out := object{}
	if err := json.Unmarshal(raw, &out); err != nil {
		s.t.Fatalf("%s %s: %s (%v)", method, path, raw, err)
	}
	if status >= 400 {
		data, _ := out["data"].(object)
		if out["name"] == nil || data["message"] == nil || data["message"] == "" {
			s.t.Errorf("%s %s: error body %s", method, path, raw)
		}
	}
	return out
}
