package acp

import (
	"strings"
	"testing"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

func TestRPCFailure(t *testing.T) {
	b := newBed(t, "plain")
	out := asking(t, b.open(t), deeds(1, "quota"))
	f := out.Failure
	if out.State != rouse.TurnFailed || f == nil || f.Class != rouse.ClassQuota || f.Code != rouse.CodeQuota || f.Source != "acp_error" ||
		f.ResetAt.IsZero() || f.RemediationURL != "https://opencode.ai/workspace/wrk_1/go" || !strings.Contains(f.Message, "usage limit") {
		t.Fatalf("%+v %+v", out, f)
	}
}

// TestStderrEndsATurn: the agent keeps its prompt open, its stderr proves the
// end, and the end is told at once; Prompt returns when the agent is free.
func TestStderrEndsATurn(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	done := make(chan engine.Outcome, 1)
	go func() {
		done <- c.Prompt(t.Context(), deeds(1, "say=a stderr=5-hour_usage_limit_reached._Resets_in_4hr_59min hang"))
	}()
	d := b.sink.Await(t, "the diagnostic", func(u engine.Update) bool { x, ok := u.Body.(engine.Diagnostic); return ok && x.Terminal }).Body.(engine.Diagnostic)
	f := d.Failure
	if f.Class != rouse.ClassQuota || f.Provider != "mock" || f.Model != "mock-default" || f.ResetAt.IsZero() || f.Source != "opencode_stderr" {
		t.Errorf("%+v", f)
	}
	select {
	case out := <-done:
		t.Fatalf("Prompt returned while the agent's was open: %+v", out)
	default:
	}
	if v, ok := c.Evidence(1); !ok || v.Evidence != "stderr" {
		t.Errorf("%+v", v)
	}
	if err := c.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := <-done; out.State != rouse.TurnFailed || out.Failure.Class != rouse.ClassQuota || out.Evidence != "stderr" {
		t.Errorf("%+v", out)
	}
}

// TestGrace: an attempt that fails with no progress after it ends the turn, and
// one that the agent recovers from does not.
func TestGrace(t *testing.T) {
	grace := func(_ *Agent, o *Options) { o.Grace = 300 * time.Millisecond }
	b := newBed(t, "plain", grace)
	c := b.open(t)
	done := make(chan engine.Outcome, 1)
	go func() { done <- c.Prompt(t.Context(), deeds(1, "stderr=Overloaded hang")) }()
	b.sink.Await(t, "the retry", func(u engine.Update) bool { _, ok := u.Body.(engine.Retry); return ok })
	d := b.sink.Await(t, "the diagnostic", func(u engine.Update) bool { x, ok := u.Body.(engine.Diagnostic); return ok && x.Terminal }).Body.(engine.Diagnostic)
	if d.Failure.Class != rouse.ClassCapacity || !d.Failure.Retryable {
		t.Errorf("%+v", d.Failure)
	}
	if err := c.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	if out := asking(t, c, deeds(2, "stderr=Overloaded fence say=recovered fence fence fence fence fence fence fence fence")); out.State != rouse.TurnCompleted {
		t.Errorf("%+v %+v", out, out.Failure)
	}
	resumed := 0
	for _, u := range b.sink.Updates() {
		if _, ok := u.Body.(engine.Resumed); ok && u.Generation == 2 {
			resumed++
		}
	}
	if resumed != 1 {
		t.Errorf("resumed %d times", resumed)
	}
}

// TestEnrichment: a record that comes after a short error answer says what it
// was about.
func TestEnrichment(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	out := asking(t, c, deeds(1, "say=x short=usage_limit_reached"))
	if out.State != rouse.TurnFailed || out.Failure.Class != "" {
		t.Fatalf("%+v %+v", out, out.Failure)
	}
	d := b.sink.Await(t, "the record", func(u engine.Update) bool { x, ok := u.Body.(engine.Diagnostic); return ok && x.Terminal })
	if f := d.Body.(engine.Diagnostic).Failure; f.Class != rouse.ClassQuota || d.Generation != 1 {
		t.Errorf("%+v", d)
	}
}

// TestWhoIsEnriched: for half a second, and where it is sure that the record is
// about that prompt: OpenCode before 1.17 names the wrong session when another
// prompt is open in the process.
func TestWhoIsEnriched(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 56, 23, 0, time.UTC)
	fresh := `timestamp=2026-11-30T12:56:23.100Z level=ERROR message=process session.id=ses_1 error="usage limit reached"`
	old := `ERROR 2026-11-30T12:56:23 +5ms service=llm sessionID=ses_1 error={"error":{"message":"usage limit reached"}} stream error`
	for _, x := range []struct {
		line   string
		after  time.Duration
		others int // prompts that are open in the process
		want   bool
	}{
		{fresh, 499 * time.Millisecond, 0, true}, {fresh, 500 * time.Millisecond, 0, true}, {fresh, 501 * time.Millisecond, 0, false}, {fresh, 0, 3, true},
		{old, 0, 0, true}, {old, 0, 1, false}, {old, 0, 2, false},
		{strings.ReplaceAll(fresh, "ses_1", "ses_2"), 0, 0, false}, {strings.Replace(fresh, "23.100", "22.999", 1), 0, 0, false},
	} {
		c := &Conversation{e: New(Agent{Type: "opencode"}, Options{}), id: "ses_1"}
		answer, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}`))
		if err != nil {
			t.Fatal(err)
		}
		c.last = &turn{p: rouse.Prompt{Generation: 7}, ended: true, answer: answer, judge: judge.New(judge.Params{}, "opencode", "ses_1", answer.ID, at)}
		c.last.judge.Agent(at.Add(200*time.Millisecond), answer)
		got := c.diagnose(at.Add(200*time.Millisecond+x.after), diagnostics.Parse(diagnostics.Line{Text: []byte(x.line)}), x.others)
		if len(got) > 0 != x.want || x.want && (got[0].Generation != 7 || got[0].Body.(engine.Diagnostic).Failure.Class != rouse.ClassQuota) {
			t.Errorf("%v later, %d others, %s\n got %+v", x.after, x.others, x.line, got)
		}
	}
}

// TestStderrNeverBlocks: garbage on stderr is read, counted by reason, and ends
// nothing.
func TestStderrNeverBlocks(t *testing.T) {
	b := newBed(t, "plain")
	out := asking(t, b.open(t), deeds(1, "junk=5000 say=done fence"))
	if out.State != rouse.TurnCompleted || b.sink.Text(1) != "done " {
		t.Fatalf("%+v", out)
	}
	n := 0
	for _, u := range b.sink.Updates() {
		if d, ok := u.Body.(engine.Diagnostic); ok {
			if d.Terminal || d.Reason == "" {
				t.Errorf("%+v", d)
			}
			n += d.Count
		}
	}
	if n != 5000 {
		t.Errorf("%d lines were counted", n)
	}
}

// TestEmptyEnd: an end without any work is no success, and no more is said than
// was seen: the agent may have asked its model, and hidden what came back.
func TestEmptyEnd(t *testing.T) {
	b := newBed(t, "plain")
	out := asking(t, b.open(t), deeds(1, "nothing"))
	if out.State != rouse.TurnFailed || out.Evidence != "empty_end_turn" ||
		!strings.HasSuffix(out.Failure.Message, " ended the turn without an answer; it reported no use of a model") {
		t.Errorf("%+v %+v", out, out.Failure)
	}
}

func TestBrokenLinesAreSkipped(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	out := asking(t, c, deeds(1, `raw={"jsonrpc":"2.0", raw=nonsense raw=[1] raw={"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"brand_new"}}} say=done`))
	if out.State != rouse.TurnCompleted || b.sink.Text(1) != "done " {
		t.Fatalf("%+v", out)
	}
	if got := c.h.conn.skipped; got.broken != 3 {
		t.Errorf("%+v", got)
	}
}

// TestRulesAnswer: what a rule decides is not asked, the prompt's rules win over
// the configuration's, and what no rule names is asked.
func TestRulesAnswer(t *testing.T) {
	rule := func(pattern string, action rouse.Action) rouse.PermissionRule {
		return rouse.PermissionRule{Permission: "bash", Pattern: pattern, Action: action}
	}
	config := []rouse.PermissionRule{rule("rm *", rouse.Deny), rule("rm -r mine", rouse.Allow)}
	b := newBed(t, "plain", func(_ *Agent, o *Options) { o.Rules = func() []rouse.PermissionRule { return config } })
	c := b.open(t)
	for i, x := range []struct {
		ask, want string
		rules     []rouse.PermissionRule
	}{
		{"theirs", "selectedno", nil}, {"mine", "selectedyes", nil}, {"theirs", "selectedyes", []rouse.PermissionRule{rule("*", rouse.Allow)}},
	} {
		p := deeds(uint64(i+1), "ask="+x.ask)
		p.Rules = x.rules
		if out := asking(t, c, p); out.State != rouse.TurnCompleted || !strings.HasSuffix(b.sink.Text(p.Generation), "answer: "+x.want) {
			t.Errorf("%s: %+v, %q", x.ask, out, b.sink.Text(p.Generation))
		}
	}
	for _, u := range b.sink.Updates() {
		if _, ok := u.Body.(engine.PermissionAsked); ok {
			t.Error("a rule decided, and a person was asked")
		}
	}
}

// TestAsksAreBounded: an agent that asks without end is refused beyond what a
// person could answer.
func TestAsksAreBounded(t *testing.T) {
	c := &Conversation{e: New(Agent{}, Options{}), asks: map[string]*ask{}}
	turn := &turn{}
	for i := range 2 * asksOpen {
		r, decided := c.decide(turn, rouse.Request{Permission: "bash", Patterns: []string{"x"}})
		if want := i >= asksOpen; decided != want || want && r.Verb != rouse.ReplyReject {
			t.Fatalf("request %d: %+v %v", i, r, decided)
		}
		c.asks[strings.Repeat("x", i)] = &ask{}
	}
}
