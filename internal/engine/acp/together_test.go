package acp

import (
	"testing"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/judge"
)

// TestEndedTogether: prompts that one exit ends keep what was seen of each,
// whichever is forgotten first, until another is asked.
func TestEndedTogether(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	ends := make(chan engine.Outcome)
	for g := range uint64(3) {
		go func() { ends <- c.Prompt(t.Context(), deeds(g+1, "say=a hang")) }()
		b.sink.Await(t, "text", func(u engine.Update) bool {
			_, ok := u.Body.(engine.Text)
			return ok && u.Generation == g+1
		})
	}
	asking(t, c, deeds(4, "kill"))
	for range 3 {
		if out := <-ends; out.State != rouse.TurnFailed || out.Failure.Code != rouse.CodeExited {
			t.Errorf("%+v %+v", out, out.Failure)
		}
	}
	for g := range uint64(4) {
		if v, ok := c.Evidence(g + 1); !ok || v.Evidence != judge.EvidenceExit {
			t.Errorf("prompt %d: %t %+v", g+1, ok, v)
		}
	}
	asking(t, c, deeds(5, "say=b"))
	if _, ok := c.Evidence(1); ok {
		t.Error("what ended long ago is kept")
	}
}

// TestAsksOfTheOther: the end of a prompt does not take back what another one
// may wait for.
func TestAsksOfTheOther(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	end := make(chan engine.Outcome)
	go func() { end <- c.Prompt(t.Context(), deeds(1, "ask=x")) }()
	asked := b.sink.Await(t, "a question", func(u engine.Update) bool { _, ok := u.Body.(engine.PermissionAsked); return ok }).Body.(engine.PermissionAsked)
	if out := asking(t, c, deeds(2, "say=b")); len(out.OpenRequests) > 0 {
		t.Errorf("it names what the other asks: %v", out.OpenRequests)
	}
	if id, ok := c.Asked([]byte("1")); !ok || id != asked.Request.ID {
		t.Errorf("%q %t, want %q", id, ok, asked.Request.ID)
	}
	if err := c.Answer(t.Context(), asked.Request.ID, rouse.Reply{Verb: rouse.ReplyOnce}); err != nil {
		t.Fatal(err)
	}
	if out := <-end; out.State != rouse.TurnCompleted || b.sink.Text(1) != "answer: selectedyes" {
		t.Errorf("%+v, %q", out, b.sink.Text(1))
	}
	if id, ok := c.Asked([]byte("1")); ok {
		t.Errorf("%s is still open", id)
	}
}

// TestCountBeginsAnew: of an agent that counts its session, the same count
// again is no work, unless another process counted it.
func TestCountBeginsAnew(t *testing.T) {
	b := newBed(t, "plain", func(a *Agent, _ *Options) { a.SessionUsage = true })
	c := b.open(t)
	for i, x := range []struct {
		text string
		used int64
		seen bool
	}{
		{"say=a", 10, true}, {"say=b", 0, false}, {"kill", 0, false}, {"say=c", 10, true}, {"say=d", 0, false},
	} {
		g := uint64(i) + 1
		out := asking(t, c, deeds(g, x.text))
		if v, _ := c.Evidence(g); v.ModelUsageSeen != x.seen || out.Usage.Tokens.Input != x.used {
			t.Errorf("%d %s: %d tokens, %t", g, x.text, out.Usage.Tokens.Input, v.ModelUsageSeen)
		}
	}
}
