package opencode

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"rouse"
	"rouse/internal/api"
	"rouse/internal/config"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/session"
	"rouse/internal/store"
)

// subscribers is the rig's bound of open streams.
const subscribers = 20

// rig is a whole server in a temporary folder, with an engine whose turns the
// test plays itself.
type rig struct {
	t      *testing.T
	store  *store.Store
	feed   *feed.Feed
	lanes  *session.Lanes
	server *httptest.Server
	dir    string
	turns  chan *turn
}

// turn is one prompt in the test's hand.
type turn struct {
	prompt rouse.Prompt
	sink   engine.Sink
	ctx    context.Context
	end    chan engine.Outcome
}

func (tn *turn) send(b engine.Body) {
	tn.sink.Update(tn.ctx, engine.Update{Generation: tn.prompt.Generation, At: time.Now(), Genuine: true, Bytes: 1, Body: b})
}

// say streams pieces of text.
func (tn *turn) say(pieces ...string) {
	for _, p := range pieces {
		tn.send(engine.Text{Text: p})
	}
}

func (tn *turn) finish() {
	tn.send(engine.StepEnded{Finish: "stop", Usage: rouse.Usage{Tokens: rouse.Tokens{Input: 9, Output: 2, CacheRead: 1}}})
	tn.end <- engine.Outcome{State: rouse.TurnCompleted, Finish: "stop", Evidence: "played"}
}

type playedEngine struct{ r *rig }

type conversation struct {
	r      *rig
	sink   engine.Sink
	mu     sync.Mutex
	cancel context.CancelFunc
}

func (e playedEngine) Open(_ context.Context, _ engine.Spec, sink engine.Sink) (engine.Conversation, error) {
	return &conversation{r: e.r, sink: sink}, nil
}

func (c *conversation) Prompt(ctx context.Context, p rouse.Prompt) engine.Outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	tn := &turn{prompt: p, sink: c.sink, ctx: ctx, end: make(chan engine.Outcome, 1)}
	select {
	case c.r.turns <- tn:
	case <-ctx.Done():
		return engine.Outcome{State: rouse.TurnCancelled}
	}
	select {
	case out := <-tn.end:
		return out
	case <-ctx.Done():
		return engine.Outcome{State: rouse.TurnCancelled, Evidence: "cancelled"}
	}
}

func (c *conversation) Cancel(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
	return nil
}
func (c *conversation) Answer(context.Context, string, rouse.Reply) error { return nil }
func (c *conversation) Stop(ctx context.Context) error                    { return c.Cancel(ctx) }
func (c *conversation) Probe(context.Context) error                       { return engine.ErrUnsupported }
func (c *conversation) Info() engine.Info                                 { return engine.Info{} }
func (c *conversation) Close() error                                      { return nil }

// played is the configuration of the rig: one provider with two models, and an
// agent program.
func played() *config.Config {
	p := &config.Provider{ID: "drill", Name: "Drill", Source: "config", Wire: config.WireOpenAI, NPM: "@ai-sdk/openai-compatible", BaseURL: "http://127.0.0.1:1/v1", Drill: true}
	for _, id := range []string{"echo", "stream"} {
		p.Models = append(p.Models, &config.Model{Provider: p, ID: id, APIID: id, Name: id, ToolCall: true})
	}
	mine := &config.Provider{ID: "acp:mine", Name: "Mine", Source: "acp", Program: "mine"}
	mine.Models = []*config.Model{{Provider: mine, ID: "default", APIID: "default", Name: "default"}}
	c := &config.Config{Providers: []*config.Provider{p, mine}, Programs: []*config.Program{{Name: "mine"}}}
	c.Agents = []*config.Agent{{Name: "builder", Mode: config.Primary, Native: true}, {Name: "plan", Mode: config.Primary, Native: true}, {Name: "worker", Mode: config.Subagent, Native: true}}
	return c
}

type models struct{ c *config.Config }

func (m models) CheckModel(ref rouse.ModelRef) error { _, err := m.c.Resolve(ref); return err }
func (m models) DefaultModel() rouse.ModelRef        { ref, _ := m.c.Default(); return ref }
func (m models) FindAgent(name string) (session.Agent, error) {
	a, ok := m.c.Agent(name)
	if !ok {
		return session.Agent{}, rouse.FieldError("agent", "agent", "agent: unknown")
	}
	return session.Agent{Name: a.Name, Primary: a.Mode != config.Subagent, Model: a.Model}, nil
}

// newRig starts a server; door is its configuration, NoAuth by default.
func newRig(t *testing.T, ring int, doors ...api.DoorConfig) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), turns: make(chan *turn)}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	var err error
	r.store, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "rouse.db"), store.Options{
		Committed: func(events []rouse.Event) { r.feed.Publish(events) }, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	r.feed = feed.New(ring, r.store.Head(), subscribers)
	cfg := played()
	r.lanes = session.New(session.Deps{Store: r.store, Feed: r.feed, Models: models{cfg}, Agents: models{cfg}, Boot: "boo_1", Log: log,
		Engine: func(string) (engine.Engine, error) { return playedEngine{r}, nil }})
	closing := make(chan struct{})
	h := New(Deps{Store: r.store, Feed: r.feed, Sessions: r.lanes, Config: func() *config.Config { return cfg },
		Directory: r.dir, StateDir: "/state", ConfigDir: "/config", Closing: closing, Log: log})
	door := api.DoorConfig{NoAuth: true}
	if len(doors) > 0 {
		door = doors[0]
	}
	door.Log, door.Sessions = log, r.store
	d, err := api.NewDoor(door, h)
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	storeCtx, stopStore := context.WithCancel(context.Background())
	all.Go(func() { _ = r.store.Serve(storeCtx) })
	var lanes sync.WaitGroup
	lanes.Go(func() {
		if err := r.lanes.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	r.server = httptest.NewUnstartedServer(nil)
	r.server.Config = api.NewServer(context.Background(), d, log)
	r.server.Start()
	t.Cleanup(func() {
		close(closing)
		r.server.Close()
		stop()
		lanes.Wait()
		stopStore()
		all.Wait()
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
	})
	return r
}

// next waits for the next dispatched prompt.
func (r *rig) next() *turn {
	r.t.Helper()
	select {
	case tn := <-r.turns:
		return tn
	case <-time.After(20 * time.Second):
		r.t.Fatal("no prompt was dispatched")
		return nil
	}
}

// answer is what a request got.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("body %s: %v", a.body, err)
	}
}

// call makes a request; body is sent as it is when it is a string, else as JSON.
func (r *rig) call(method, path string, body any, headers ...string) answer {
	r.t.Helper()
	a, err := r.try(method, path, body, headers...)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *rig) try(method, path string, body any, headers ...string) (answer, error) {
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = bytes.NewBufferString(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return answer{}, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, r.server.URL+path, in)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, raw}, err
}

// want makes a request that must be answered with a status.
func (r *rig) want(status int, method, path string, body any, headers ...string) answer {
	r.t.Helper()
	a := r.call(method, path, body, headers...)
	if a.status != status {
		r.t.Fatalf("%s %s: status %d, want %d: %s", method, path, a.status, status, a.body)
	}
	return a
}

// create makes a session in the rig's directory.
func (r *rig) create() string {
	r.t.Helper()
	var s struct{ ID string }
	r.want(200, "POST", "/session", map[string]any{}).into(r.t, &s)
	return s.ID
}

// prompt sends a prompt in the background way.
func (r *rig) prompt(id, text string) answer {
	r.t.Helper()
	return r.want(204, "POST", "/session/"+id+"/prompt_async", map[string]any{"parts": []any{map[string]any{"type": "text", "text": text}}})
}

// prune forgets all events but the newest.
func prune(t *testing.T, r *rig) error {
	t.Helper()
	return r.store.Prune(t.Context(), store.Retention{Events: time.Hour, EventRows: 1, Keys: time.Hour}, time.Now())
}
