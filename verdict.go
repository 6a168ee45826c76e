package rouse

import (
	"fmt"
	"strings"
	"time"
)

// VerdictCode names what a session does or suffers. Codes are append-only:
// they cross the wire, and texts in other languages hang on them.
type VerdictCode string

// The codes, in the order in which they are looked for: the first that fits
// masks those below it.
const (
	WaitingQuota       VerdictCode = "waiting_quota" // says more than settled:failed
	SettledCompleted   VerdictCode = "settled:completed"
	SettledFailed      VerdictCode = "settled:failed"
	SettledCancelled   VerdictCode = "settled:cancelled"
	SettledInterrupted VerdictCode = "settled:interrupted"
	Orphaned           VerdictCode = "orphaned"
	WaitingPermission  VerdictCode = "waiting_permission"
	WaitingQuestion    VerdictCode = "waiting_question"
	Retrying           VerdictCode = "retrying"
	Unresponsive       VerdictCode = "unresponsive"
	NeverStarted       VerdictCode = "never_started"
	Hung               VerdictCode = "hung"
	QuietTool          VerdictCode = "quiet_tool"
	Quiet              VerdictCode = "quiet"
	Working            VerdictCode = "working"
)

// SettledVerdict is the code of an outcome; "" for a state that is no end.
func SettledVerdict(outcome TurnState) VerdictCode {
	if !outcome.Settled() {
		return ""
	}
	return VerdictCode("settled:" + string(outcome))
}

// Over says that the code is about a session in which nothing runs.
func (c VerdictCode) Over() bool {
	return c == WaitingQuota || strings.HasPrefix(string(c), "settled:")
}

// Severity says how much a verdict wants of a person.
type Severity string

// The severities. A stall is never an error: silence proves nothing.
const (
	SeverityNone   Severity = "none"   // all is well, or over
	SeverityNotice Severity = "notice" // worth knowing
	SeverityAction Severity = "action" // somebody has to do something
	SeverityFailed Severity = "failed" // it ended badly
)

// What may follow a verdict. Names of things to do, not of routes.
const (
	NextWait      = "wait"
	NextAnswer    = "answer"
	NextCancel    = "cancel"
	NextRescue    = "rescue"
	NextInterrupt = "interrupt"
	NextFail      = "fail" // the watch ends the turn
	NextContinue  = "continue_with"
)

// VerdictKind is one row of the table of verdicts.
type VerdictKind struct {
	Code     VerdictCode
	Severity Severity
	// Sentence is the key of the text that explains it; its parameters are the
	// fields of VerdictFacts.
	Sentence string
	// ClockStands: while it holds, no notice is due and never_started does not
	// come nearer.
	ClockStands bool
	// Next is what may follow.
	Next []string
}

// VerdictKinds is the table, in order of precedence.
var VerdictKinds = []VerdictKind{
	{WaitingQuota, SeverityAction, "verdict.waiting_quota", true, []string{NextWait, NextContinue}},
	{SettledCompleted, SeverityNone, "verdict.settled_completed", true, nil},
	{SettledFailed, SeverityFailed, "verdict.settled_failed", true, nil},
	{SettledCancelled, SeverityNone, "verdict.settled_cancelled", true, nil},
	{SettledInterrupted, SeverityFailed, "verdict.settled_interrupted", true, nil},
	{Orphaned, SeverityFailed, "verdict.orphaned", true, []string{NextInterrupt}},
	{WaitingPermission, SeverityAction, "verdict.waiting_permission", true, []string{NextAnswer, NextCancel}},
	{WaitingQuestion, SeverityAction, "verdict.waiting_question", true, []string{NextAnswer, NextCancel}},
	{Retrying, SeverityNotice, "verdict.retrying", true, []string{NextWait, NextCancel}},
	{Unresponsive, SeverityAction, "verdict.unresponsive", false, []string{NextRescue, NextCancel}},
	{NeverStarted, SeverityFailed, "verdict.never_started", false, []string{NextFail}},
	{Hung, SeverityAction, "verdict.hung", false, []string{NextRescue, NextCancel}},
	{QuietTool, SeverityNotice, "verdict.quiet_tool", false, []string{NextWait, NextCancel}},
	{Quiet, SeverityNotice, "verdict.quiet", false, []string{NextWait, NextCancel}},
	{Working, SeverityNone, "verdict.working", false, []string{NextWait}},
}

// VerdictCodes are the codes of VerdictKinds in one line, for people.
func VerdictCodes() string {
	codes := make([]string, len(VerdictKinds))
	for i, k := range VerdictKinds {
		codes[i] = string(k.Code)
	}
	return strings.Join(codes, ", ")
}

var verdictKinds = func() map[VerdictCode]*VerdictKind {
	m := map[VerdictCode]*VerdictKind{}
	for i := range VerdictKinds {
		m[VerdictKinds[i].Code] = &VerdictKinds[i]
	}
	return m
}()

// Kind is the code's row in the table; ok is false for an unknown code.
func (c VerdictCode) Kind() (k VerdictKind, ok bool) {
	row, ok := verdictKinds[c]
	if ok {
		k = *row
	}
	return k, ok
}

// Confidence of a verdict.
const (
	Certain = "certain" // it follows from stored facts or from the engine's word
	Likely  = "likely"  // it is read from silence
)

// Verdict is what the watch makes of a session, with what it rests on.
type Verdict struct {
	Code       VerdictCode `json:"code"`
	Since      time.Time   `json:"since,omitzero"`
	Confidence string      `json:"confidence"`
	// Until is when it ends by itself (the next attempt, a reset); zero when
	// nobody knows.
	Until time.Time `json:"until,omitzero"`
	// Next is what may follow; see the Next constants.
	Next []string `json:"next"`
	// Facts are the parameters of the sentence.
	Facts VerdictFacts `json:"facts"`
}

// VerdictFacts are the parameters of a verdict's sentence. Zero fields play no
// part in it.
type VerdictFacts struct {
	SilenceMS int64  `json:"silence_ms,omitempty"` // since the last progress, waits left out
	Nothing   bool   `json:"nothing,omitempty"`    // no progress at all since the dispatch
	Tool      string `json:"tool,omitempty"`       // title or name, never arguments
	Frozen    bool   `json:"frozen,omitempty"`     // two samples show the same progress
	Attempt   int    `json:"attempt,omitempty"`
	Class     Class  `json:"class,omitempty"`
	Provider  string `json:"provider_id,omitempty"`
	Limit     string `json:"limit,omitempty"`
	Failure   string `json:"failure,omitempty"` // its code
	// StoreDown: what the running turn does cannot be stored right now.
	StoreDown bool `json:"store_down,omitempty"`
}

// Why is one English sentence for people and logs, and a second one where the
// database is down. Surfaces in other languages make their own of code and facts.
func (v *Verdict) Why() string {
	why := v.sentence()
	if v.Facts.StoreDown {
		why += " The database refuses writes: what this turn does, and its end, is not stored until it takes them again."
	}
	return why
}

func (v *Verdict) sentence() string {
	f := &v.Facts
	silence := (time.Duration(f.SilenceMS) * time.Millisecond).Truncate(time.Second)
	until := ""
	if !v.Until.IsZero() {
		until = v.Until.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	switch v.Code {
	case SettledCompleted:
		return "The last turn completed."
	case SettledFailed:
		return "The last turn failed" + suffix(": ", f.Failure) + "."
	case SettledCancelled:
		return "The last turn was cancelled."
	case SettledInterrupted:
		return "The server stopped while the last turn ran."
	case Orphaned:
		return "No server runs this turn any more."
	case WaitingPermission:
		return "A permission is asked for and not answered yet."
	case WaitingQuestion:
		return "A question is asked and not answered yet."
	case WaitingQuota:
		return "The last turn met a limit" + suffix(" of ", f.Provider) + suffix(" (", f.Limit, ")") + suffix(" that resets at ", until) + "."
	case Retrying:
		return fmt.Sprintf("Attempt %d failed (%s); the next starts at %s.", f.Attempt, f.Class, until)
	case Unresponsive:
		return "The engine does not answer its protocol."
	case NeverStarted:
		return fmt.Sprintf("No sign of progress since the turn was dispatched, %s ago.", silence)
	case Hung:
		return fmt.Sprintf("No tool runs, and no progress for %s: text, events and tokens stand still.", silence)
	case QuietTool:
		return fmt.Sprintf("Tool %q runs; nothing was heard for %s.", f.Tool, silence)
	case Quiet:
		return fmt.Sprintf("No progress for %s.", silence)
	case Working:
		if f.Nothing {
			return fmt.Sprintf("The turn was dispatched %s ago and has shown nothing yet.", silence)
		}
		return fmt.Sprintf("The last progress was %s ago.", silence)
	}
	return ""
}

// suffix joins the pieces, or is empty when the second one is.
func suffix(pieces ...string) string {
	if pieces[1] == "" {
		return ""
	}
	out := ""
	for _, p := range pieces {
		out += p
	}
	return out
}

// Sample is what a running turn showed at a moment.
type Sample struct {
	At       time.Time    `json:"at"`
	State    SessionState `json:"state"`
	Counters Counters     `json:"counters"`
}

// Frozen says that no progress lies between two samples. Only what counts as
// progress is compared; other counters are shown and not judged.
func (s *Sample) Frozen(later *Counters) bool {
	a, b := &s.Counters, later
	return a.Genuine == b.Genuine && a.TextBytes == b.TextBytes && a.OutputTokens == b.OutputTokens
}

// Notice says to a person that a turn is silent and still waited for. There is
// one per generation. It claims no failure and changes nothing.
type Notice struct {
	SessionID  string `json:"session"`
	TurnID     string `json:"turn"`
	Generation uint64 `json:"generation"`
	Code       string `json:"code"` // StillWaiting
	// Tool is the title or name of the top-level tool that runs; "" when none
	// is known. Never its arguments.
	Tool string `json:"tool,omitempty"`
	// At is when silence was seen last; Created when it was seen first.
	At      time.Time `json:"at"`
	Created time.Time `json:"created"`
	// Visible is false once the turn moved on or ended.
	Visible bool `json:"visible"`
}

// StillWaiting is the code of a notice.
const StillWaiting = "still_waiting"

// Shown says whether the notice is to be seen now: its turn is the one that
// runs, and nothing genuine came after its time.
func (n *Notice) Shown(running string, lastGenuine time.Time) bool {
	return n.Visible && running != "" && n.TurnID == running && !lastGenuine.After(n.At)
}
