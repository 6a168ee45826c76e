package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fickle is a server that loses connections: the first synchronous prompt is
// cut off, and so is the first stream; the events in between are never sent.
type fickle struct {
	t       *testing.T
	mu      sync.Mutex
	keys    []string
	bodies  []string
	streams int
	gone    chan struct{} // closed when the test ends
}

func (f *fickle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "POST /session":
		fmt.Fprint(w, `{"id":"ses_1","directory":"/d","state":"idle"}`)
	case "GET /event":
		fmt.Fprint(w, "data: {\"type\":\"server.connected\",\"properties\":{}}\n\n")
		w.(http.Flusher).Flush()
		if f.streams++; f.streams > 1 {
			f.mu.Unlock()
			select {
			case <-r.Context().Done():
			case <-f.gone:
			}
			f.mu.Lock()
		}
	case "POST /session/ses_1/message":
		body, _ := io.ReadAll(r.Body)
		f.keys, f.bodies = append(f.keys, r.Header.Get("Idempotency-Key")), append(f.bodies, string(body))
		if len(f.keys) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("X-Rouse-Turn", "trn_1")
		_, _ = io.WriteString(w, f.answer(string(body)))
	case "GET /session/ses_1/message":
		fmt.Fprintf(w, `[%s]`, f.answer(f.bodies[0]))
	default:
		f.t.Errorf("unexpected %s %s", r.Method, r.URL.Path)
	}
}

// answer is the last message of the prompt in body.
func (f *fickle) answer(body string) string {
	var in struct{ MessageID string }
	if err := json.Unmarshal([]byte(body), &in); err != nil || in.MessageID == "" {
		f.t.Errorf("prompt %s: %v", body, err)
	}
	return fmt.Sprintf(`{"info":{"id":"msg_2","sessionID":"ses_1","role":"assistant","parentID":%q,"finish":"stop"},
		"parts":[{"id":"prt_1","messageID":"msg_2","sessionID":"ses_1","type":"text","text":"found after all","time":{"start":1,"end":2}}]}`, in.MessageID)
}

// TestRunAsksAgain: a prompt whose connection broke is asked again as the same
// prompt, and what the stream never brought is shown from the transcript.
func TestRunAsksAgain(t *testing.T) {
	f := &fickle{t: t, gone: make(chan struct{})}
	srv := httptest.NewServer(f)
	defer srv.Close()
	defer close(f.gone)
	t.Setenv("ROUSE_DATA", t.TempDir())
	var out, side bytes.Buffer
	code := Main(context.Background(), []string{"run", "--attach", srv.URL, "hello"}, nil, &out, &side)
	if code != 0 || out.String() != "found after all\n" {
		t.Fatalf("code %d, stdout %q, stderr %q", code, out.String(), side.String())
	}
	if len(f.keys) != 2 || f.keys[0] == "" || f.keys[0] != f.keys[1] || f.bodies[0] != f.bodies[1] {
		t.Errorf("keys %q, bodies %q", f.keys, f.bodies)
	}
	if !strings.Contains(side.String(), "the connection to the server is lost") {
		t.Errorf("stderr %q", side.String())
	}
}

// TestRunWithoutServer: a server that is named and does not answer is 9; no
// other is started in its place.
func TestRunWithoutServer(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	t.Setenv("ROUSE_DATA", t.TempDir())
	var out, side bytes.Buffer
	if code := Main(context.Background(), []string{"run", "--attach", srv.URL, "hello"}, nil, &out, &side); code != exitUnreachable || out.Len() > 0 {
		t.Errorf("code %d, stdout %q, stderr %q", code, out.String(), side.String())
	}
}
