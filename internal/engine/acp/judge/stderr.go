package judge

import (
	"time"

	"rouse/internal/diagnostics"
)

// Stderr takes a line of the agent's process and says what it is to this turn;
// after the end it is nothing, whatever it says. at is when it came, and what
// deadlines are counted from. Of c the caller sets what only it knows:
// ActivePrompts, and PromptStarted and Now where the record's own time is to be
// checked, too.
func (t *Turn) Stderr(at time.Time, r diagnostics.Record, c diagnostics.Context) diagnostics.Finding {
	t.Tick(at)
	if !t.Open() {
		return diagnostics.Finding{Action: diagnostics.Ignore, Reason: diagnostics.ReasonSettled}
	}
	c.AgentType, c.SessionID, c.Settled = t.agent, t.session, false
	if t.grace.Line(at, r, c).Via == diagnostics.ViaStderr {
		t.decide(at, t.byDiagnostic(EvidenceStderr))
	}
	return t.grace.Said()
}

// Tick lets time pass. A deadline that has come decides at its own time, even
// if noticed late; so it is before any event that is fed with a later time.
func (t *Turn) Tick(at time.Time) {
	if !t.Open() {
		return
	}
	end := t.grace.Deadline()
	if t.grace.Tick(at).Via == diagnostics.ViaGrace {
		t.decide(end, t.byDiagnostic(EvidenceStderr))
	}
}

// Deadline is when Tick will decide if nothing comes before; zero: never.
func (t *Turn) Deadline() time.Time {
	if !t.Open() {
		return time.Time{}
	}
	return t.grace.Deadline()
}

// byDiagnostic is how a turn fails of which the last diagnostic tells why, if
// there is one.
func (t *Turn) byDiagnostic(e Evidence) decision {
	d := decision{outcome: Failed, evidence: e}
	if f := t.grace.Pending(); f.Action != "" {
		d.class, d.text, d.finding = f.Class, f.Message, &f
	}
	return d
}
