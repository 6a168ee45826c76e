package native

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/provider"
)

// plain writes a conversation as text.
func plain(ms []provider.Message) string {
	var b strings.Builder
	for _, m := range ms {
		b.WriteString(string(m.Role) + ":")
		for _, x := range m.Blocks {
			switch x.Kind {
			case provider.TextBlock:
				b.WriteString(" text(" + x.Text + ")")
			case provider.ReasoningBlock:
				b.WriteString(" reasoning(" + x.Text + ")")
			case provider.CallBlock:
				b.WriteString(" call(" + x.CallID + ")")
			case provider.ResultBlock:
				b.WriteString(" result(" + x.CallID + "," + x.Text + ")")
			case provider.FileBlock:
				b.WriteString(" file(" + x.File.Mime + ")")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestConversationOf(t *testing.T) {
	user := func(g uint64, id string, ps ...rouse.Part) rouse.Entry {
		return rouse.Entry{Message: rouse.Message{ID: id, Role: rouse.User, Generation: g}, Parts: ps}
	}
	said := func(g uint64, ps ...rouse.Part) rouse.Entry {
		return rouse.Entry{Message: rouse.Message{Role: rouse.Assistant, Generation: g}, Parts: ps}
	}
	text := func(s string) rouse.Part { return rouse.Part{Kind: rouse.TextPart, Text: s} }
	broken := func(p rouse.Part) rouse.Part { p.Broken = &rouse.Broken{Attempt: 1}; return p }
	tool := func(id string, state rouse.ToolState) rouse.Part {
		return rouse.Part{Kind: rouse.ToolPart, Tool: &rouse.ToolCall{Name: "bash", CallID: id, State: state, Output: "out", Error: "err"}}
	}
	step := rouse.Part{Kind: rouse.StepStart}
	note := rouse.Part{Kind: rouse.TextPart, Text: "⚠️", Synthetic: true}
	summary := said(2, text("short"))
	summary.Message.Summary, summary.Message.Completed = true, time.Now()
	failedSummary := summary
	failedSummary.Message.Error = &rouse.MessageError{State: rouse.TurnFailed}
	for _, c := range []struct {
		name string
		in   []rouse.Entry
		want string
	}{
		{"question and answer", []rouse.Entry{user(1, "m1", text("q")), said(1, step, rouse.Part{Kind: rouse.ReasoningPart, Text: "hm"}, text("a")), user(9, "m9", text("now"))},
			"user: text(q)\nassistant: reasoning(hm) text(a)\nuser: text(now)\n"},
		{"calls get results", []rouse.Entry{user(1, "m1", text("q")), said(1, step, text("a"), tool("c1", rouse.ToolCompleted), tool("c2", rouse.ToolFailed), tool("c3", rouse.ToolRunning)), user(9, "m9", text("now"))},
			"user: text(q)\nassistant: text(a) call(c1) call(c2) call(c3)\nuser: result(c1,out) result(c2,err) result(c3,The call was interrupted before it gave a result.)\nuser: text(now)\n"},
		{"a broken attempt is left out", []rouse.Entry{user(1, "m1", text("q")), said(1, step, rouse.Part{Kind: rouse.ReasoningPart, Text: "old"}, broken(text("half")), step, text("whole")), user(9, "m9", text("now"))},
			"user: text(q)\nassistant: text(whole)\nuser: text(now)\n"},
		{"notes for people are left out", []rouse.Entry{user(1, "m1", text("q")), said(1, note), user(9, "m9", text("now"), rouse.Part{Kind: rouse.TextPart, Text: "ignored", Ignored: true})},
			"user: text(q)\nuser: text(now)\n"},
		{"from the last summary on", []rouse.Entry{user(1, "m1", text("q")), said(1, step, text("a")), user(2, "m2", rouse.Part{Kind: rouse.CompactionPart}), summary, user(9, "m9", text("now"))},
			"user: text(" + summaryIntro + "short)\nuser: text(now)\n"},
		{"a failed summary does not count", []rouse.Entry{user(1, "m1", text("q")), failedSummary, user(9, "m9", text("now"))},
			"user: text(q)\nuser: text(now)\n"},
		{"later prompts wait", []rouse.Entry{user(9, "m9", text("now")), user(10, "m10", text("later"))}, "user: text(now)\n"},
		{"the prompt is never lost", nil, "user: text(given)\n"},
		{"an answer cannot come first", []rouse.Entry{said(1, step, text("a")), user(9, "m9", text("now"))},
			"user: text((The conversation begins here.))\nassistant: text(a)\nuser: text(now)\n"},
	} {
		p := rouse.Prompt{Generation: 9, MessageID: "m9", Parts: []rouse.Part{text("given")}}
		got := plain(conversationOf(c.in, p, func(f rouse.File) []provider.Block { return []provider.Block{{Kind: provider.FileBlock, File: f}} }))
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestOverflow: one summary, then the same again is the end.
func TestOverflow(t *testing.T) {
	b := newBench(t)
	out := b.run(t, b.prompt(drill.Overflow, "hi", 1))
	if out.State != rouse.TurnFailed || out.Failure.Code != rouse.CodeContext {
		t.Errorf("%+v", out)
	}
	if got := strings.Join(b.said(), " "); got != "overflow overflow:compact overflow" {
		t.Error(got)
	}
}

func TestCompactOnly(t *testing.T) {
	b := newBench(t)
	b.prompt(drill.Echo, "long ago", 1)
	p := b.prompt(drill.Echo, "", 2)
	p.Kind = rouse.TurnCompact
	out := b.run(t, p)
	if out.State != rouse.TurnCompleted || b.story() != "step(compaction) text end(stop)" || !strings.HasPrefix(b.sink.Text(2), "Summary") {
		t.Errorf("%+v %s %q", out, b.story(), b.sink.Text(2))
	}
}

func TestDigest(t *testing.T) {
	ms := []provider.Message{userText("first")}
	for range 100 {
		ms = append(ms, userText(strings.Repeat("x", 3000)))
	}
	ms = append(ms, userText("last"))
	got := digest(ms, 20_000)
	if len(got) > 21_000 || !strings.HasPrefix(got, "Person: first") || !strings.HasSuffix(got, "Person: last") || !strings.Contains(got, "pieces are left out") {
		t.Errorf("%d bytes: %.60q … %.60q", len(got), got, got[len(got)-60:])
	}
}

// TestTitle: the first prompt of a session without a title of its own gets one,
// beside the turn; later ones do not ask again.
func TestTitle(t *testing.T) {
	b := newBench(t)
	b.spec.Session.Title = "New session - 2026-11-30T13:13:46.626Z"
	c := b.open(t)
	c.Prompt(t.Context(), b.prompt(drill.Echo, "one two", 1))
	u := b.sink.Await(t, "a title", func(u engine.Update) bool { _, ok := u.Body.(engine.TitleSuggested); return ok })
	if got := u.Body.(engine.TitleSuggested).Title; !strings.HasPrefix(got, "Drill: ") || u.Genuine {
		t.Errorf("%q %+v", got, u)
	}
	c.Prompt(t.Context(), b.prompt(drill.Echo, "three", 2))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := strings.Count(strings.Join(b.said(), " "), "title"); got != 1 {
		t.Errorf("asked %d times", got)
	}
	b = newBench(t) // a title of its own stays
	b.run(t, b.prompt(drill.Echo, "hi", 1))
	if got := strings.Join(b.said(), " "); got != "echo" {
		t.Error(got)
	}
}

// TestTitleNeverHolds: a title model that says nothing holds neither the turn
// nor Close.
func TestTitleNeverHolds(t *testing.T) {
	b := newBench(t)
	b.spec.Session.Title = "New session - 2026-11-30T13:13:46.626Z"
	b.deps.Small = func(rouse.ModelRef) rouse.ModelRef { return rouse.ModelRef{Provider: "drill", Model: drill.Mute} }
	if out := b.run(t, b.prompt(drill.Echo, "hi", 1)); out.State != rouse.TurnCompleted {
		t.Errorf("%+v", out)
	}
}

func TestStructured(t *testing.T) {
	b := newBench(t)
	p := b.prompt(drill.Echo, "say it", 1)
	p.Format = json.RawMessage(`{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}`)
	out := b.run(t, p)
	end := b.sink.Await(t, "the step's end", func(u engine.Update) bool { _, ok := u.Body.(engine.StepEnded); return ok }).Body.(engine.StepEnded)
	if out.State != rouse.TurnCompleted || string(end.Structured) != `{"a":"say it"}` || end.Finish != "stop" {
		t.Errorf("%+v %s", out, end.Structured)
	}
}

func TestRefusedTurns(t *testing.T) {
	b := newBench(t)
	p := b.prompt(drill.Echo, "hi", 1)
	p.Model.Provider = "nobody"
	if out := b.run(t, p); out.State != rouse.TurnFailed || out.Failure.Class != rouse.ClassModel || !strings.Contains(out.Failure.Message, "nobody") {
		t.Errorf("%+v %+v", out, out.Failure)
	}
	p = b.prompt(drill.Echo, "hi", 2)
	p.Agent = "nobody"
	if out := b.run(t, p); out.State != rouse.TurnFailed || !strings.Contains(out.Failure.Message, "no agent nobody") {
		t.Errorf("%+v %+v", out, out.Failure)
	}
}

func TestStepsAreBounded(t *testing.T) {
	b := newBench(t)
	b.deps.MaxSteps = 1
	if out := b.run(t, b.prompt(drill.Tool, "hi", 1)); out.State != rouse.TurnCompleted || out.Finish != "max_turn_requests" {
		t.Errorf("%+v", out)
	}
}

func TestSystemPrompt(t *testing.T) {
	b := newBench(t)
	b.write(t, "AGENTS.md", "Use tabs.")
	b.write(t, ".git/HEAD", "")
	c := b.open(t).(*conversation)
	tn := &turn{c: c, ctx: t.Context(), model: Model{Ref: rouse.ModelRef{Provider: "drill", Model: "a/b"}}, p: rouse.Prompt{System: "Be kind."}}
	got := strings.Join(tn.systemPrompt(), "\n\n")
	for _, want := range []string{"You are powered by the model named a/b (provider: drill).", "Working directory: " + b.dir, "Git repository: yes", "Use tabs.", "Be kind."} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	b.write(t, "AGENTS.md", "Use blanks instead.")
	if got := strings.Join(tn.systemPrompt(), "\n"); !strings.Contains(got, "Use blanks instead.") {
		t.Error("a changed AGENTS.md is not read again")
	}
}

func TestAttachments(t *testing.T) {
	b := newBench(t)
	path := b.write(t, "f.txt", "content")
	c := b.open(t).(*conversation)
	tn := &turn{c: c, ctx: t.Context()}
	for _, x := range []struct {
		f    rouse.File
		want string
	}{
		{rouse.File{Mime: "text/plain", URL: "file://" + path}, "text(<file path=\"" + path + "\">\ncontent\n</file>)"},
		{rouse.File{Mime: "text/plain", Filename: "x", URL: "data:text/plain;base64,aGk="}, "text(<file path=\"x\">\nhi\n</file>)"},
		{rouse.File{Mime: "text/plain", Filename: "x", URL: "data:text/plain,h%20i"}, "text(<file path=\"x\">\nh i\n</file>)"},
		{rouse.File{Mime: "image/png", URL: "data:image/png;base64,AAAA"}, "file(image/png)"},
		{rouse.File{Mime: "text/plain", URL: "file://" + path + ".gone"}, "could not be read"},
		{rouse.File{Mime: "application/x-directory", URL: "file://" + b.dir}, "f.txt\n"},
	} {
		got := plain([]provider.Message{{Role: rouse.User, Blocks: tn.loadFile(x.f)}})
		if !strings.Contains(got, x.want) {
			t.Errorf("%+v: %s", x.f, got)
		}
	}
}

// BenchmarkToken is what a token costs from the provider's socket to the sink.
func BenchmarkToken(b *testing.B) {
	x := newBench(b)
	x.Engine = New(*x.deps)
	c, err := x.Open(b.Context(), x.spec, discard{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	b.ReportAllocs()
	b.ResetTimer()
	for n, g := 0, uint64(1); n < b.N; n, g = n+100_000, g+1 {
		x.entries = nil
		if out := c.Prompt(b.Context(), x.prompt(drill.Stream, "[[drill tokens=100000 rate=0]]", g)); out.State != rouse.TurnCompleted {
			b.Fatalf("%+v", out)
		}
	}
}
