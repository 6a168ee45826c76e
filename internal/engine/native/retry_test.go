package native

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/engine/enginetest"
	"rouse/internal/provider"
)

// inProcess carries requests to a handler without a network, so that they can
// run in a bubble of its own time.
type inProcess struct {
	h  http.Handler
	wg sync.WaitGroup
}

func (p *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	pr, pw := io.Pipe()
	w := &pipeWriter{pw: pw, header: http.Header{}, ready: make(chan struct{})}
	p.wg.Go(func() {
		p.h.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		_ = pw.Close()
	})
	select {
	case <-w.ready:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	stop := make(chan struct{})
	p.wg.Go(func() {
		select {
		case <-r.Context().Done():
			_ = pr.CloseWithError(r.Context().Err())
		case <-stop:
		}
	})
	return &http.Response{StatusCode: w.status, Header: w.header, Body: &pipeBody{PipeReader: pr, stop: stop}, Request: r}, nil
}

type pipeBody struct {
	*io.PipeReader
	stop chan struct{}
	once sync.Once
}

func (b *pipeBody) Close() error {
	b.once.Do(func() { close(b.stop) })
	return b.PipeReader.CloseWithError(errors.New("closed"))
}

type pipeWriter struct {
	pw     *io.PipeWriter
	header http.Header
	status int
	ready  chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (w *pipeWriter) Flush()              {}
func (w *pipeWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		close(w.ready)
	}
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pw.Write(b)
}

// bubbled gives an engine whose provider lives in the bubble.
func bubbled(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), sink: enginetest.NewRecorder()}
	tr := &inProcess{h: drill.NewProvider(drill.Options{Seen: func(model, _ string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls = append(b.calls, model)
	}})}
	t.Cleanup(tr.wg.Wait)
	client, err := provider.New(provider.Config{ID: "drill", Wire: provider.OpenAI, BaseURL: "http://drill.invalid/v1", Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	b.client = client
	b.deps = depsOf(b)
	b.Engine = New(*b.deps)
	b.spec = engine.Spec{Session: rouse.Session{ID: "ses_bubble", Title: "named"}, Directory: b.dir, Agent: "builder"}
	return b
}

// TestBoundedAttempts: what never answers is tried five times, with growing
// waits that are announced before they are waited.
func TestBoundedAttempts(t *testing.T) {
	for _, model := range []string{drill.EOF, drill.Capacity, drill.Stalled} {
		t.Run(model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bubbled(t)
				start := time.Now()
				out := b.run(t, b.prompt(model, "hi", 1))
				if f := out.Failure; out.State != rouse.TurnFailed || f.Code != rouse.CodeUnavailable || f.Attempts != 5 || !f.Retryable {
					t.Errorf("%+v %+v", out, f)
				}
				if n := len(b.said()); n != 5 {
					t.Errorf("%d calls", n)
				}
				if took := time.Since(start); took < 30*time.Second || took > 40*time.Second {
					t.Errorf("took %v", took)
				}
				if got := strings.Count(b.story(), "retry"); got != 4 {
					t.Errorf("%d retries announced: %s", got, b.story())
				}
				for _, u := range b.sink.Updates() {
					if r, ok := u.Body.(engine.Retry); ok && (!r.Next.After(u.At) || r.Message == "" || u.Genuine) {
						t.Errorf("%+v at %v", r, u.At)
					}
				}
			})
		})
	}
}

// TestCancelDuringBackoff: a turn that waits for its next attempt ends at once.
func TestCancelDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bubbled(t)
		c := b.open(t)
		done := make(chan engine.Outcome)
		go func() { done <- c.Prompt(t.Context(), b.prompt(drill.Capacity, "hi", 1)) }()
		synctest.Wait()
		start := time.Now()
		if err := c.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if out := <-done; out.State != rouse.TurnCancelled || time.Since(start) != 0 {
			t.Errorf("%+v after %v", out, time.Since(start))
		}
		if n := len(b.said()); n != 1 {
			t.Errorf("%d calls", n)
		}
		_ = c.Close()
	})
}

// TestHangStaysOpen: without an idle timeout silence is not the engine's to
// judge, however long it lasts.
func TestHangStaysOpen(t *testing.T) {
	for _, model := range []string{drill.Hang, drill.Mute} {
		synctest.Test(t, func(t *testing.T) {
			b := bubbled(t)
			c := b.open(t)
			done := make(chan engine.Outcome, 1)
			go func() { done <- c.Prompt(t.Context(), b.prompt(model, "hi", 1)) }()
			<-time.After(24 * time.Hour) // the bubble's time
			select {
			case out := <-done:
				t.Errorf("%s ended: %+v", model, out)
			default:
			}
			_ = c.Close()
			<-done
		})
	}
}
