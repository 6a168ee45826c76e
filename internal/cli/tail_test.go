package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTailBehindAGap: when the server does not know any more what came, the
// end that is waited for may have been in it. It is not waited for again.
func TestTailBehindAGap(t *testing.T) {
	var mu sync.Mutex
	streams := 0
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.Method + " " + r.URL.Path {
		case "GET /session/ses_1":
			fmt.Fprintf(w, `{"id":"ses_1","directory":"/d","state":%q}`, map[bool]string{true: "generating", false: "idle"}[streams < 2])
		case "GET /session/ses_1/message":
			fmt.Fprint(w, `[]`)
		case "GET /event":
			if streams++; streams == 1 {
				fmt.Fprint(w, "id: 900\ndata: {\"type\":\"server.connected\",\"properties\":{}}\n\n")
				return
			}
			fmt.Fprint(w, "id: 7\ndata: {\"type\":\"rouse.resync\",\"properties\":{\"after\":900,\"head\":7}}\n\n")
			w.(http.Flusher).Flush()
			mu.Unlock()
			<-gone
			mu.Lock()
		default:
			t.Errorf("unexpected %s %s", r.Method, r.URL.Path)
		}
	}))
	defer srv.Close()
	defer close(gone)
	t.Setenv("ROUSE_DATA", t.TempDir())
	t.Setenv("ROUSE_SERVER", srv.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out, side bytes.Buffer
	code := Main(ctx, []string{"tail", "ses_1", "--until-idle"}, nil, &out, &side)
	if code != exitDone || ctx.Err() != nil || !strings.Contains(side.String(), "does not know any more") {
		t.Errorf("code %d, %v, stdout %q, stderr %q", code, ctx.Err(), out.String(), side.String())
	}
}
