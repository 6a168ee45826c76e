package watch_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/session"
	"rouse/internal/store"
	"rouse/internal/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store, lanes on the drill engine, and a watch over them.
type world struct {
	t     *testing.T
	dir   string
	store *store.Store
	lanes *session.Lanes
	watch *watch.Watch
	said  *said
	began time.Time
	slept atomic.Int64 // how long the machine was suspended, ns
	opens atomic.Int64 // conversations that were opened
	stop  func()
}

// said is the watch's log.
type said struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(b)
}

func (s *said) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.String(), "msg="+what)
}

type anyModel struct{}

func (anyModel) CheckModel(rouse.ModelRef) error { return nil }
func (anyModel) DefaultModel() rouse.ModelRef {
	return rouse.ModelRef{Provider: "drill", Model: "echo"}
}

type anyAgent struct{}

func (anyAgent) FindAgent(string) (session.Agent, error) {
	return session.Agent{Name: "builder", Primary: true}, nil
}

// counting is the drill engine; it counts what it opens.
type counting struct{ opens *atomic.Int64 }

func (c counting) Open(ctx context.Context, spec engine.Spec, sink engine.Sink) (engine.Conversation, error) {
	c.opens.Add(1)
	return drill.Engine{}.Open(ctx, spec, sink)
}

// seam may stand between the watch and its lanes.
type seam func(watch.Lanes) watch.Lanes

func open(t *testing.T, dir, boot string, between seam) *world {
	t.Helper()
	w := &world{t: t, dir: dir, said: &said{}, began: time.Now()}
	var news *feed.Feed
	var err error
	w.store, err = store.Open(t.Context(), filepath.Join(dir, "rouse.db"), store.Options{Logger: slog.New(slog.DiscardHandler),
		Committed: func(e []rouse.Event) { news.Publish(e) }})
	if err != nil {
		t.Fatal(err)
	}
	news = feed.New(0, w.store.Head(), 0)
	w.lanes = session.New(session.Deps{Store: w.store, Feed: news, Models: anyModel{}, Agents: anyAgent{}, Boot: boot, Judge: watch.Settled,
		Engine: func(string) (engine.Engine, error) { return counting{&w.opens}, nil }, Log: slog.New(slog.DiscardHandler)})
	var lanes watch.Lanes = w.lanes
	if between != nil {
		lanes = between(lanes)
	}
	w.watch = watch.New(watch.Config{Store: w.store, Lanes: lanes, Boot: boot, Log: slog.New(slog.NewTextHandler(w.said, nil)),
		Clock: func() watch.Reading {
			return watch.Reading{Mono: time.Since(w.began), Wall: time.Now().Round(0).Add(time.Duration(w.slept.Load()))}
		}})
	var stops []func()
	serve := func(name string, run func(context.Context) error) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- run(ctx) }()
		stops = append(stops, func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(name, err)
			}
		})
	}
	serve("store", w.store.Serve)
	if _, err := w.lanes.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	serve("lanes", w.lanes.Serve)
	serve("watch", w.watch.Serve)
	w.stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
		if err := w.store.Close(); err != nil {
			t.Error("close:", err)
		}
	}
	return w
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, fn func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1", nil)
		defer w.stop()
		fn(t, w)
	})
}

func (w *world) session() *rouse.Session {
	w.t.Helper()
	s, _, err := w.lanes.Create(w.t.Context(), session.NewSession{Directory: w.dir})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) prompt(id, model, text string) session.Accepted {
	w.t.Helper()
	acc, err := w.lanes.Prompt(w.t.Context(), session.Prompt{SessionID: id, Model: rouse.ModelRef{Provider: "drill", Model: model},
		Parts: []rouse.Part{{Kind: rouse.TextPart, Text: text}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return acc
}

// start is a session with a prompt of this mode at work.
func (w *world) start(model, text string) (string, session.Accepted) {
	w.t.Helper()
	s := w.session()
	pass(50 * time.Millisecond) // not at the very moment of a tick
	acc := w.prompt(s.ID, model, text)
	pass(100 * time.Millisecond) // also for a reader that SQLite lets wait a moment
	return s.ID, acc
}

func (w *world) wait(acc session.Accepted) *rouse.Turn {
	w.t.Helper()
	t, err := w.lanes.Wait(w.t.Context(), acc.TurnID)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// pass lets time go by in the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	rest()
}

// told is what the log says of the watch's matters, one line an event: verdicts
// by their code, notices with their tool, ends with their state.
func (w *world) told(id string) string {
	w.t.Helper()
	events, _, err := w.store.Events(w.t.Context(), 0, store.EventFilter{Session: id}, 100000)
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range events {
		switch e.Type {
		case rouse.VerdictChanged:
			var v rouse.Verdict
			w.decode(e, &v)
			fmt.Fprintf(&b, "g%d %s\n", e.Generation, v.Code)
		case rouse.NoticeCreated, rouse.NoticeUpdated, rouse.NoticeHidden:
			var n rouse.Notice
			w.decode(e, &n)
			fmt.Fprintf(&b, "g%d %s %s\n", e.Generation, e.Type, n.Tool)
		case rouse.TurnSettledEvent:
			var f rouse.SettledFact
			w.decode(e, &f)
			fmt.Fprintf(&b, "g%d settled %s\n", e.Generation, f.State)
		case rouse.CancelStage:
			var c rouse.CancelFact
			w.decode(e, &c)
			fmt.Fprintf(&b, "g%d cancel %s\n", e.Generation, c.Stage)
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

func (w *world) decode(e rouse.Event, into any) {
	w.t.Helper()
	if err := json.Unmarshal(e.Data, into); err != nil {
		w.t.Fatal(e.Type, err)
	}
}

func (w *world) expect(id, want string) {
	w.t.Helper()
	if got := w.told(id); got != strings.TrimLeft(want, "\n") {
		w.t.Errorf("the log says:\n%s\nwant:\n%s", got, want)
	}
}

func (w *world) state(id string) rouse.SessionState {
	w.t.Helper()
	s, err := w.store.Session(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.State()
}

// shown is the notice that a client would show now, after a reload.
func (w *world) shown(id string, generation uint64) *rouse.Notice {
	w.t.Helper()
	n, err := w.store.Notice(w.t.Context(), id, generation)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := w.store.Session(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	v, _ := w.lanes.Vitals(id)
	if n == nil || !n.Shown(s.Running, v.LastGenuine) {
		return nil
	}
	return n
}

func (w *world) look(id string) watch.Look {
	w.t.Helper()
	s, err := w.store.Session(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	turns, err := w.store.Turns(w.t.Context(), id, 1)
	if err != nil {
		w.t.Fatal(err)
	}
	var last *rouse.Turn
	if len(turns) > 0 {
		last = &turns[0]
	}
	return w.watch.Look(time.Now(), s, last, nil)
}

// behind runs SQL behind the store's back.
func (w *world) behind(text string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "rouse.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		w.t.Fatal(err)
	}
}

// rest waits until the bubble has nothing to do. Wait alone may come back too
// early: SQLite sleeps for microseconds of the bubble's time when it meets a
// lock, and a sleeper counts as blocked.
func rest() {
	synctest.Wait()
	<-time.After(time.Millisecond)
	synctest.Wait()
}
