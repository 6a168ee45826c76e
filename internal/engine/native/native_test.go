package native

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/engine/enginetest"
	"rouse/internal/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is an engine on a real drill provider, with a transcript that the test
// keeps.
type bench struct {
	*Engine
	deps   *Deps
	dir    string
	spec   engine.Spec
	rules  []rouse.PermissionRule // of every prompt
	client *provider.Client
	sink   *enginetest.Recorder

	mu      sync.Mutex
	entries []rouse.Entry
	calls   []string // models called, with their purpose
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchOn(t, provider.OpenAI)
}

func newBenchOn(t testing.TB, wire string) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), sink: enginetest.NewRecorder()}
	url, stop, err := drill.Start(drill.Options{Seen: func(model, purpose string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls = append(b.calls, strings.TrimSuffix(model+":"+purpose, ":"))
	}})
	if err != nil {
		t.Fatal(err)
	}
	tr := provider.NewTransport()
	t.Cleanup(func() { tr.CloseIdleConnections(); stop() })
	if b.client, err = provider.New(provider.Config{ID: "drill", Wire: wire, BaseURL: url, Transport: tr}); err != nil {
		t.Fatal(err)
	}
	b.deps = depsOf(b)
	b.Engine = New(*b.deps)
	b.spec = engine.Spec{Session: rouse.Session{ID: "ses_native" + t.Name(), Title: "named"}, Directory: b.dir, Agent: "builder"}
	return b
}

// depsOf is what the engine stands on here.
func depsOf(b *bench) *Deps {
	return &Deps{
		Transcript: func(context.Context, string, uint64) ([]rouse.Entry, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return append([]rouse.Entry(nil), b.entries...), nil
		},
		Model: func(ref rouse.ModelRef) (Model, error) {
			if ref.Provider != "drill" {
				return Model{}, rouse.FieldError("test", "model", "there is no provider %s", ref.Provider)
			}
			m := Model{Ref: ref, Client: b.client, Context: 128_000, Output: 8192, Price: provider.Price{Input: 1, Output: 2}, Drill: true}
			if ref.Model == drill.Stalled {
				m.IdleTimeout = 50 * time.Millisecond
			}
			return m, nil
		},
		Agent: func(name string) (Agent, bool) {
			switch name {
			case "", "builder":
				return Agent{Name: "builder", Rules: []rouse.PermissionRule{{Permission: "*", Pattern: "*", Action: rouse.Allow}, {Permission: "external_directory", Pattern: "*", Action: rouse.Ask}}}, true
			}
			return Agent{}, false
		},
	}
}

// said lists the calls that the provider saw.
func (b *bench) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.calls...)
}

// prompt makes a prompt of a drill model and puts it into the transcript.
func (b *bench) prompt(model, text string, generation uint64) rouse.Prompt {
	p := rouse.Prompt{SessionID: b.spec.Session.ID, TurnID: fmt.Sprintf("trn_%s_%d", b.spec.Session.ID, generation), Generation: generation, Rules: b.rules,
		MessageID: fmt.Sprintf("msg_%d", generation), Agent: "builder", Model: rouse.ModelRef{Provider: "drill", Model: model},
		Parts: []rouse.Part{{Kind: rouse.TextPart, Text: text}}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, rouse.Entry{Message: rouse.Message{ID: p.MessageID, Role: rouse.User, Generation: generation}, Parts: p.Parts})
	return p
}

// run opens a conversation, answers one prompt and closes it.
func (b *bench) run(t testing.TB, p rouse.Prompt) engine.Outcome {
	t.Helper()
	c := b.open(t)
	out := c.Prompt(t.Context(), p)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return out
}

func (b *bench) open(t testing.TB) engine.Conversation {
	t.Helper()
	c, err := New(*b.deps).Open(t.Context(), b.spec, b.sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// story tells the updates as one line, for comparison.
func (b *bench) story() string {
	var s []string
	for _, u := range b.sink.Updates() {
		switch x := u.Body.(type) {
		case engine.StepStarted:
			s = append(s, "step"+map[bool]string{true: "(compaction)"}[x.Compaction])
		case engine.StepEnded:
			s = append(s, "end("+x.Finish+")")
		case engine.Text:
			if n := len(s); n == 0 || s[n-1] != "text" {
				s = append(s, "text")
			}
		case engine.Reasoning:
			if n := len(s); n == 0 || s[n-1] != "reasoning" {
				s = append(s, "reasoning")
			}
		case engine.ToolStarted:
			s = append(s, x.Name+"("+string(x.State)+")")
		case engine.ToolEnded:
			s = append(s, map[bool]string{true: "failed", false: "done"}[x.Error != ""])
		case engine.Retry:
			s = append(s, fmt.Sprintf("retry%d(%s,%v)", x.Attempt, x.Class, x.Broken))
		case engine.Resumed:
			s = append(s, "resumed")
		case engine.PermissionAsked:
			s = append(s, "asked("+x.Request.Permission+")")
		case engine.QuestionAsked:
			s = append(s, "asked(question)")
		case engine.RequestWithdrawn:
			s = append(s, "withdrawn")
		case engine.Plan:
			s = append(s, "plan")
		case engine.TitleSuggested:
			s = append(s, "title("+x.Title+")")
		}
	}
	return strings.Join(s, " ")
}

// ended is the end of the only tool call.
func (b *bench) ended(t testing.TB) engine.ToolEnded {
	t.Helper()
	return b.sink.Await(t, "a tool's end", func(u engine.Update) bool { _, ok := u.Body.(engine.ToolEnded); return ok }).Body.(engine.ToolEnded)
}

// calling makes a prompt that calls a tool with some arguments.
func calling(tool string, args any) string {
	in, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("[[drill tool=%s input='%s']]", tool, in)
}

func (b *bench) write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSuite(t *testing.T) {
	for _, wire := range []string{provider.OpenAI, provider.Anthropic} {
		t.Run(wire, func(t *testing.T) { suite(t, wire) })
	}
}

func suite(t *testing.T, wire string) {
	enginetest.Run(t, func(t *testing.T) enginetest.Fixture {
		b := newBenchOn(t, wire)
		return enginetest.Fixture{Engine: b.Engine, Spec: b.spec, Prompt: func(x enginetest.Behaviour, g uint64) (rouse.Prompt, bool) {
			switch x {
			case enginetest.Echo:
				return b.prompt(drill.Echo, "hello", g), true
			case enginetest.Long:
				return b.prompt(drill.Hang, "hello", g), true
			case enginetest.Burst:
				return b.prompt(drill.Stream, fmt.Sprintf("[[drill tokens=%d rate=0]]", enginetest.BurstPieces), g), true
			case enginetest.Tool:
				return b.prompt(drill.Tool, "hello", g), true
			case enginetest.SlowTool:
				return b.prompt(drill.SlowTool, "hello", g), true
			case enginetest.Permission:
				return b.prompt(drill.Permission, "hello", g), true
			case enginetest.Question:
				return b.prompt(drill.Question, "hello", g), true
			case enginetest.Fail:
				return b.prompt(drill.Auth, "hello", g), true
			}
			return rouse.Prompt{}, false
		}}
	})
}

// modelEnd is how a turn with a drill model must end.
type modelEnd struct {
	model, prompt string
	state         rouse.TurnState
	class         rouse.Class
	code          string
	attempts      int
	story         string
}

// TestModels: every drill model ends as it must.
func TestModels(t *testing.T) {
	for _, c := range []modelEnd{
		{drill.Echo, "hi", rouse.TurnCompleted, "", "", 0, "step text end(stop)"},
		{drill.Stream, "[[drill tokens=5 rate=0]]", rouse.TurnCompleted, "", "", 0, "step text end(stop)"},
		{drill.Reason, "hi", rouse.TurnCompleted, "", "", 0, "step reasoning text end(stop)"},
		{drill.Tool, "hi", rouse.TurnCompleted, "", "", 0, "step bash(pending) bash(running) done end(tool-calls) step text end(stop)"},
		{drill.Quota, "hi", rouse.TurnFailed, rouse.ClassQuota, rouse.CodeQuota, 1, ""},
		{drill.Quota, "[[drill reset=10s]]", rouse.TurnFailed, rouse.ClassQuota, rouse.CodeQuota, 1, ""},
		{drill.Auth, "hi", rouse.TurnFailed, rouse.ClassAuth, rouse.CodeAuth, 1, ""},
		{drill.Rate, "[[drill reset=90s]]", rouse.TurnFailed, rouse.ClassRate, rouse.CodeRate, 1, ""},
		{drill.Rate, "[[drill reset=1s]] hi", rouse.TurnCompleted, "", "", 0, "retry1(rate,false) resumed retry2(rate,false) resumed step text end(stop)"},
		{drill.Break, "hi", rouse.TurnCompleted, "", "", 0, "step text retry1(network,true) resumed step text end(stop)"},
		{drill.Overflow, "hi", rouse.TurnFailed, rouse.ClassContext, rouse.CodeContext, 1, "step(compaction) text end(stop)"},
	} {
		for _, wire := range []string{provider.OpenAI, provider.Anthropic} {
			t.Run(wire+"/"+c.model, func(t *testing.T) {
				t.Parallel()
				endsAs(t, newBenchOn(t, wire), c)
			})
		}
	}
}

func endsAs(t *testing.T, b *bench, c modelEnd) {
	t.Helper()
	out := b.run(t, b.prompt(c.model, c.prompt, 1))
	if out.State != c.state {
		t.Fatalf("%+v %+v", out, out.Failure)
	}
	if b.story() != c.story {
		t.Errorf("got  %s\nwant %s", b.story(), c.story)
	}
	if c.state != rouse.TurnFailed {
		if out.Usage.Tokens.Output == 0 || out.Usage.Cost == 0 {
			t.Errorf("usage %+v", out.Usage)
		}
		return
	}
	f := out.Failure
	if f == nil || f.Class != c.class || f.Code != c.code || f.Attempts != c.attempts || f.Provider != "drill" || f.Model != c.model || f.Message == "" || f.Source != "provider_http" || f.Status == 0 {
		t.Errorf("failure %+v", f)
	}
	if c.model == drill.Quota && f.ResetAt.IsZero() {
		t.Errorf("no reset: %+v", f)
	}
}
