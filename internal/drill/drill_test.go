package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse"
	"rouse/internal/limits"
	"rouse/internal/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started gives a running provider and a client for each wire.
func started(t testing.TB, o Options) map[string]*provider.Client {
	t.Helper()
	url, stop, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	tr := provider.NewTransport()
	t.Cleanup(func() { tr.CloseIdleConnections(); stop() })
	out := map[string]*provider.Client{}
	for _, wire := range []string{provider.OpenAI, provider.Anthropic} {
		c, err := provider.New(provider.Config{ID: "drill", Wire: wire, BaseURL: url, Transport: tr})
		if err != nil {
			t.Fatal(err)
		}
		out[wire] = c
	}
	return out
}

func ask(model, prompt, turn string) provider.Request {
	return provider.Request{
		Model: model, Header: http.Header{provider.TurnHeader: {turn}},
		Messages: []provider.Message{{Role: rouse.User, Blocks: []provider.Block{{Kind: provider.TextBlock, Text: prompt}}}},
		Tools:    []provider.Tool{{Name: "bash", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "question", Schema: json.RawMessage(`{"type":"object"}`)}},
	}
}

type answer struct {
	text, reasoning string
	calls           []provider.Call
	res             provider.Result
	err             *provider.CallError
}

func call(t testing.TB, c *provider.Client, r provider.Request) (a answer) {
	t.Helper()
	var err error
	a.res, err = c.Stream(t.Context(), r, func(d provider.Delta) {
		switch d.Kind {
		case provider.Text:
			a.text += d.Text
		case provider.Reasoning:
			a.reasoning += d.Text
		}
	})
	a.calls = a.res.Calls
	if err != nil && !errors.As(err, &a.err) {
		t.Fatal(err)
	}
	return a
}

func class(e *provider.CallError) limits.Finding {
	return limits.Classify(limits.Evidence{Provider: "drill", Channel: limits.HTTP, At: time.Now(),
		HTTP: &limits.Answer{Status: e.Status, Headers: e.Header, Body: e.Body}})
}

func TestModelsThatAnswer(t *testing.T) {
	for wire, c := range started(t, Options{}) {
		for _, x := range []struct{ model, prompt, text string }{
			{Echo, "say this", "say this"},
			{Echo, "[[drill tokens=3 rate=0]] ignored", " the drill goes"},
			{Stream, "[[drill tokens=3 rate=0]]", " the drill goes"},
			{Reason, "why", "The answer is 42."},
			{Quota, "[[drill model=reason]] why", "The answer is 42."},
			{Echo, "[[drill model=nosuch]] say this", "say this"},
			{Recall, "what I said", "what I said"},
		} {
			a := call(t, c, ask(x.model, x.prompt, "t"))
			if a.err != nil || a.text != x.text || a.res.Finish != provider.FinishStop || a.res.Tokens.Output == 0 || a.res.Tokens.Input == 0 {
				t.Errorf("%s %s %q: %+v", wire, x.model, x.prompt, a)
			}
		}
		if a := call(t, c, ask(Reason, "why", "t")); a.reasoning != "First the question, then the answer." {
			t.Errorf("%s: %+v", wire, a)
		}
	}
}

func TestModelsThatFail(t *testing.T) {
	for wire, c := range started(t, Options{}) {
		for _, x := range []struct {
			model  string
			status int
			class  rouse.Class
		}{{Quota, 429, rouse.ClassQuota}, {Rate, 429, rouse.ClassRate}, {Auth, 401, rouse.ClassAuth}, {Overflow, 400, rouse.ClassContext}, {Capacity, 529, rouse.ClassCapacity}} {
			a := call(t, c, ask(x.model, "go", "fail-"+wire))
			if a.err == nil || a.err.Status != x.status || class(a.err).Class != x.class {
				t.Errorf("%s %s: %+v, class %v", wire, x.model, a.err, a.err)
				continue
			}
			if f := class(a.err); x.model == Quota && (f.LimitName != "5 hour" || time.Until(f.ResetAt) < 4*time.Hour) {
				t.Errorf("quota: %+v", f)
			}
		}
		if a := call(t, c, ask(Quota, "[[drill reset=10s]]", "t")); time.Until(class(a.err).ResetAt) > 10*time.Second {
			t.Errorf("reset: %+v", class(a.err))
		}
		if a := call(t, c, ask(EOF, "go", "t")); a.err == nil || a.err.Kind != provider.NoFinish || !a.err.Emitted {
			t.Errorf("%s eof: %+v", wire, a)
		}
		if a := call(t, c, ask("nope", "go", "t")); class(a.err).Class != rouse.ClassModel {
			t.Errorf("%s unknown model: %+v", wire, a)
		}
	}
}

// TestOnceAndTwice: failures that end are counted per turn, whatever other
// turns do.
func TestOnceAndTwice(t *testing.T) {
	for wire, c := range started(t, Options{}) {
		for _, turn := range []string{"a" + wire, "b" + wire} {
			if a := call(t, c, ask(Break, "go", turn)); a.err == nil || a.err.Kind != provider.Broken || a.text != "This answer will be cut" {
				t.Errorf("%s: %+v", turn, a)
			}
			if a := call(t, c, ask(Rate, "go", turn)); a.err == nil || a.err.Header.Get("Retry-After") != "1" {
				t.Errorf("%s: %+v", turn, a)
			}
		}
		for _, turn := range []string{"a" + wire, "b" + wire} {
			if a := call(t, c, ask(Break, "go", turn)); a.err != nil || a.text != "This answer is whole." {
				t.Errorf("%s: %+v", turn, a)
			}
			if a := call(t, c, ask(Rate, "go", turn)); a.err == nil {
				t.Errorf("%s: answered too early", turn)
			}
			if a := call(t, c, ask(Rate, "go", turn)); a.err != nil || a.text != "go" {
				t.Errorf("%s: %+v", turn, a)
			}
		}
	}
}

func TestToolModels(t *testing.T) {
	for wire, c := range started(t, Options{}) {
		for model, want := range map[string]string{Tool: `"echo drill"`, SlowTool: `"sleep 600"`, Permission: `"/"`, Question: `"Left"`} {
			r := ask(model, "go", "t")
			a := call(t, c, r)
			if a.err != nil || len(a.calls) != 1 || !strings.Contains(a.calls[0].Input, want) || a.res.Finish != provider.FinishTools || !json.Valid([]byte(a.calls[0].Input)) {
				t.Errorf("%s %s: %+v", wire, model, a)
				continue
			}
			r.Messages = append(r.Messages,
				provider.Message{Role: rouse.Assistant, Blocks: []provider.Block{{Kind: provider.CallBlock, CallID: a.calls[0].ID, Name: a.calls[0].Name, Input: json.RawMessage(a.calls[0].Input)}}},
				provider.Message{Role: rouse.User, Blocks: []provider.Block{{Kind: provider.ResultBlock, CallID: a.calls[0].ID, Text: "out"}}})
			if a := call(t, c, r); a.err != nil || a.text != "The "+model+" drill is done." {
				t.Errorf("%s %s after the result: %+v", wire, model, a)
			}
		}
		a := call(t, c, ask(Tool, `[[drill tool=read input='{"filePath":"a ]] b"}']]`, "t"))
		if len(a.calls) != 1 || a.calls[0].Name != "read" || a.calls[0].Input != `{"filePath":"a ]] b"}` {
			t.Errorf("%s directive: %+v", wire, a)
		}
		if a := call(t, c, ask(Tool, `[[drill cmd="echo \"x y\""]]`, "t")); len(a.calls) != 1 || !strings.Contains(a.calls[0].Input, `echo \"x y\"`) {
			t.Errorf("%s cmd: %+v", wire, a)
		}
	}
}

func TestPurposes(t *testing.T) {
	for wire, c := range started(t, Options{}) {
		r := ask(Overflow, "one two", "t")
		r.Tools = nil
		r.Header.Set(provider.PurposeHeader, provider.PurposeTitle)
		if a := call(t, c, r); a.text != "Drill: one two" {
			t.Errorf("%s title: %+v", wire, a)
		}
		r.Header.Set(provider.PurposeHeader, provider.PurposeCompact)
		if a := call(t, c, r); !strings.HasPrefix(a.text, "Summary") {
			t.Errorf("%s compact: %+v", wire, a)
		}
		r = ask(Echo, "p", "t")
		r.Tools = []provider.Tool{{Name: "StructuredOutput", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}},"required":["a","b"]}`)}}
		r.ToolChoice = "StructuredOutput"
		if a := call(t, c, r); len(a.calls) != 1 || a.calls[0].Input != `{"a":"p","b":[1]}` {
			t.Errorf("%s structured: %+v", wire, a)
		}
	}
}

// TestSilence: hang and mute say nothing until the caller goes; stop ends them.
func TestSilence(t *testing.T) {
	url, stop, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := provider.NewTransport()
	defer tr.CloseIdleConnections()
	c, err := provider.New(provider.Config{ID: "drill", Wire: provider.OpenAI, BaseURL: url, Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err = c.Stream(ctx, ask(Hang, "go", "t"), func(d provider.Delta) {
		if d.Kind == provider.Text {
			if n++; n == 2 {
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("hang: %v", err)
	}
	ended := make(chan error, 1)
	seen := make(chan struct{})
	go func() {
		r := ask(Hang, "go", "t")
		first := true
		_, err := c.Stream(t.Context(), r, func(provider.Delta) {
			if first {
				first = false
				close(seen)
			}
		})
		ended <- err
	}()
	<-seen
	stop()
	if err := <-ended; err == nil {
		t.Fatal("the stream went on after stop")
	}
}

func TestDirective(t *testing.T) {
	d, rest := parseDirective(`before [[drill tokens=500 rate=0 cmd="go test ./..." delay=2s reset=10s unknown=1 tokens=-4]] after`)
	want := directive{tokens: 500, rate: 0, cmd: "go test ./...", delay: 2 * time.Second, reset: 10 * time.Second}
	if d != want || rest != "before  after" {
		t.Fatalf("%+v %q", d, rest)
	}
	if d, rest := parseDirective("none"); d.tokens != -1 || d.rate != -1 || rest != "none" {
		t.Fatalf("%+v %q", d, rest)
	}
}

func FuzzDirective(f *testing.F) {
	f.Add(`[[drill tokens=5 cmd="a"]]`)
	f.Add(`[[drill input='{"a":[]}' tool=x`)
	f.Fuzz(func(t *testing.T, s string) {
		d, rest := parseDirective(s)
		if d.tokens > maxTokens || d.rate > maxRate || d.delay < 0 || len(rest) > len(s) {
			t.Fatalf("%q: %+v", s, d)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"echo","messages":[{"role":"user","content":"x"}]}`))
	f.Add([]byte(`{"model":"echo","messages":[{"role":"user","content":[{"type":"tool_result"},{"type":"text","text":"x"}]}],"tool_choice":{"type":"tool","name":"y"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseRequest(b, &http.Request{}); err == nil && r.key == "" {
			t.Fatal("a request without a key")
		}
	})
}

// TestManyStreams: many streams at once, each at its pace.
func TestManyStreams(t *testing.T) {
	c := started(t, Options{})[provider.OpenAI]
	var wg sync.WaitGroup
	errs := make(chan error, 200)
	for i := range 200 {
		wg.Go(func() {
			a := call(t, c, ask(Stream, "[[drill tokens=10 rate=100]]", fmt.Sprint(i)))
			if a.err != nil || a.res.Tokens.Output != 10 {
				errs <- fmt.Errorf("stream %d: %+v", i, a)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

// BenchmarkTokens is the cost of a token of the drill and its reader together.
func BenchmarkTokens(b *testing.B) {
	c := started(b, Options{})[provider.OpenAI]
	n := 0
	b.ReportAllocs()
	b.ResetTimer()
	for n < b.N {
		if _, err := c.Stream(b.Context(), ask(Stream, "[[drill tokens=100000 rate=0]]", "t"), func(d provider.Delta) { n++ }); err != nil {
			b.Fatal(err)
		}
	}
}

// TestHeadersAgree: the drill and who calls it name the headers alike.
func TestHeadersAgree(t *testing.T) {
	if TurnHeader != provider.TurnHeader || PurposeHeader != provider.PurposeHeader || PurposeTitle != provider.PurposeTitle || PurposeCompact != provider.PurposeCompact {
		t.Error("the names differ")
	}
}
