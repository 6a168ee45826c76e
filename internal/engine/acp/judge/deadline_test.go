package judge

import (
	"fmt"
	"testing"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/wire"
)

const ses = "ses_1"

// record is what OpenCode writes when an attempt failed.
func record(text string) diagnostics.Record {
	return diagnostics.Parse(diagnostics.Line{Text: fmt.Appendf(nil,
		"timestamp=2026-11-30T12:00:00.000Z level=ERROR run=1 message=\"stream error\" providerID=p modelID=m session.id=%s small=false agent=build error.error=%q", ses, text)})
}

func openCode(grace time.Duration) *Turn {
	return New(Params{Grace: grace}, "opencode", ses, []byte("7"), start)
}

func (t *Turn) hears(after time.Duration, text string) diagnostics.Finding {
	return t.Stderr(start.Add(after), record(text), diagnostics.Context{ActivePrompts: 1})
}

func (t *Turn) moves(after time.Duration, tb testing.TB) {
	t.Agent(start.Add(after), message(tb, fmt.Sprintf(`{"method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"plan"}}}`, ses)))
}

func TestTerminalRecord(t *testing.T) {
	turn := openCode(0)
	f := turn.hears(time.Second, "AI_APICallError: Weekly usage limit reached. Resets in 2 days.")
	v := turn.Verdict()
	if v.Outcome != Failed || v.Evidence != EvidenceStderr || v.Class != rouse.ClassQuota || !v.DecidedAt.Equal(start.Add(time.Second)) {
		t.Errorf("%+v", v)
	}
	if v.Finding == nil || *v.Finding != f || v.Text != f.Message || f.ResetAt.IsZero() {
		t.Errorf("%+v", v.Finding)
	}
	turn.Agent(start.Add(2*time.Second), message(t, endedUsed))
	if again := turn.hears(3*time.Second, "Overloaded"); again.Reason != diagnostics.ReasonSettled || turn.Verdict().Outcome != Failed {
		t.Errorf("after the end: %+v", again)
	}
}

func TestOtherStderrIsIgnored(t *testing.T) {
	turn := New(Params{}, "kilo", ses, []byte("7"), start)
	if f := turn.hears(0, "usage limit"); f.Reason != diagnostics.ReasonOtherAgent || !turn.Open() {
		t.Errorf("%+v", f)
	}
	turn = New(Params{}, "opencode", "ses_other", []byte("7"), start)
	if f := turn.hears(0, "usage limit"); f.Reason != diagnostics.ReasonOtherSession || !turn.Open() {
		t.Errorf("%+v", f)
	}
}

func TestDeadline(t *testing.T) {
	answer := func(tb testing.TB) *wire.Message { return message(tb, endedUsed) }
	for name, c := range map[string]struct {
		play     func(*Turn)
		outcome  Outcome
		evidence Evidence
		class    rouse.Class
		at       time.Duration
	}{
		"fires at its own time": {func(u *Turn) { u.Tick(start.Add(time.Hour)) }, Failed, EvidenceStderr, rouse.ClassCapacity, 31 * time.Second},
		"not a moment before":   {func(u *Turn) { u.Tick(start.Add(31*time.Second - 1)) }, Open, EvidenceNone, "", 0},
		"before a later answer": {func(u *Turn) { u.Agent(start.Add(32*time.Second), answer(t)) }, Failed, EvidenceStderr, rouse.ClassCapacity, 31 * time.Second},
		"before a later exit":   {func(u *Turn) { u.Exit(start.Add(32 * time.Second)) }, Failed, EvidenceStderr, rouse.ClassCapacity, 31 * time.Second},
		"before a later record": {func(u *Turn) { u.hears(32*time.Second, "usage limit") }, Failed, EvidenceStderr, rouse.ClassCapacity, 31 * time.Second},
		"before a later cancel": {func(u *Turn) {
			u.Client(start.Add(32*time.Second), message(t, `{"method":"session/cancel","params":{}}`))
		}, Failed, EvidenceStderr, rouse.ClassCapacity, 31 * time.Second},
		"an answer in time":      {func(u *Turn) { u.Agent(start.Add(30*time.Second), answer(t)) }, Completed, EvidenceStop, "", 30 * time.Second},
		"an exit in time":        {func(u *Turn) { u.Exit(start.Add(30 * time.Second)) }, Failed, EvidenceExit, rouse.ClassCapacity, 30 * time.Second},
		"an empty answer":        {func(u *Turn) { u.Agent(start.Add(30*time.Second), message(t, ended0)) }, Failed, EvidenceEmpty, rouse.ClassCapacity, 30 * time.Second},
		"progress ends it":       {func(u *Turn) { u.moves(2*time.Second, t); u.Tick(start.Add(time.Hour)) }, Open, EvidenceNone, "", 0},
		"an exit after progress": {func(u *Turn) { u.moves(2*time.Second, t); u.Exit(start.Add(time.Hour)) }, Failed, EvidenceExit, rouse.ClassNone, time.Hour},
		"noise does not": {func(u *Turn) {
			u.Agent(start.Add(2*time.Second), message(t, `{"method":"x","params":{}}`))
			u.Tick(start.Add(time.Hour))
		}, Failed, EvidenceStderr, rouse.ClassCapacity, 31 * time.Second},
		"each attempt sets it anew": {func(u *Turn) { u.hears(20*time.Second, "socket"); u.Tick(start.Add(time.Hour)) }, Failed, EvidenceStderr, rouse.ClassNetwork, 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			turn := openCode(0)
			if f := turn.hears(time.Second, "Overloaded"); f.Action != diagnostics.AttemptFailed || !turn.Deadline().Equal(start.Add(31*time.Second)) {
				t.Fatalf("%+v, deadline %v", f, turn.Deadline())
			}
			c.play(turn)
			v := turn.Verdict()
			if v.Outcome != c.outcome || v.Evidence != c.evidence || v.Class != c.class || v.Outcome != Open && !v.DecidedAt.Equal(start.Add(c.at)) {
				t.Errorf("%s %s %q at %v", v.Outcome, v.Evidence, v.Class, v.DecidedAt.Sub(start))
			}
		})
	}
	if turn := openCode(time.Second); turn.hears(0, "socket").Action != diagnostics.AttemptFailed || !turn.Deadline().Equal(start.Add(time.Second)) {
		t.Error("the grace is no parameter")
	}
}

func TestStreakOfAttempts(t *testing.T) {
	turn := openCode(0)
	turn.hears(1*time.Second, "Overloaded")
	if f := turn.hears(2*time.Second, "Overloaded"); f.Action != diagnostics.Retrying {
		t.Errorf("%+v", f)
	}
	turn.moves(3*time.Second, t)
	if f := turn.hears(4*time.Second, "Overloaded"); f.Action != diagnostics.AttemptFailed {
		t.Errorf("after progress: %+v", f)
	}
}
