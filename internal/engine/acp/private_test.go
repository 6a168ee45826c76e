package acp

import (
	"strings"
	"testing"

	"rouse"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// What an agent puts where the protocol has a name is its own text, and told
// only where it is a name.
func TestNamesAreNoTexts(t *testing.T) {
	e := &Engine{agent: Agent{Name: "fake", Title: "Fake"}}
	c := &Conversation{e: e}
	for _, private := range []string{"sk-ant-janeroejaneroe12", "/home/janeroe/x", "jane.roe@mail.example.com", "plan of janeroe", "https://x.example/?k=janeroe"} {
		f := c.failureOf(&turn{}, judge.Verdict{Outcome: judge.Failed, Evidence: judge.EvidenceStatus, StopReason: private})
		if strings.Contains(f.Message, private) || !strings.HasPrefix(f.Message, "Fake ended the turn") {
			t.Errorf("stop reason: %q", f.Message)
		}
		if strings.Contains(private, " ") {
			continue // a model may be called so
		}
		c.model = private
		if f = c.failureOf(&turn{}, judge.Verdict{Outcome: judge.Failed, Evidence: judge.EvidenceStop, StopReason: "refusal"}); f.Model != "" || !strings.Contains(f.Message, "refusal") {
			t.Errorf("model: %+v", f)
		}
		if err := e.modelRefused("large", []string{"small", private}, &wire.Error{}); strings.Contains(rouse.SafeMessage(err)+err.Error(), private) {
			t.Errorf("offered: %v", err)
		}
		c.model = ""
	}
	c.model = "opus[1m]"
	if f := c.failureOf(&turn{}, judge.Verdict{Outcome: judge.Failed, Evidence: judge.EvidenceStop}); f.Model != "opus[1m]" {
		t.Errorf("%+v", f)
	}
}

// A key that is longer than what is kept of stderr is not known by its lines.
func TestLastWordsHoldNoKey(t *testing.T) {
	h := &host{}
	for _, line := range strings.Split("cannot read it\n-----BEGIN OPENSSH PRIVATE KEY-----\n"+strings.Repeat("jane/roe+janeroe/\n", 20)+"-----END OPENSSH PRIVATE KEY-----\nit was wrong", "\n") {
		h.remember([]byte(line))
	}
	if got := h.lastWords(); got != "cannot read it [redacted] it was wrong" {
		t.Errorf("%q", got)
	}
}
