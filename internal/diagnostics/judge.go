package diagnostics

import (
	"strings"
	"time"

	"rouse"
)

// Agent is the one agent type whose standard error is read.
const Agent = "opencode"

// Action says what a line proves about a prompt.
type Action string

// The actions.
const (
	Ignore        Action = "ignore"         // nothing
	Terminal      Action = "terminal"       // the prompt failed
	AttemptFailed Action = "attempt_failed" // one attempt failed; the agent may go on
	Retrying      Action = "retrying"       // another attempt failed, with no progress between
)

// Reason says why a line has its action; ignored lines are counted by it.
type Reason string

// The reasons. All but the last four go with Ignore.
const (
	ReasonOversize     Reason = "oversize"
	ReasonTorn         Reason = "torn"
	ReasonMalformed    Reason = "malformed"
	ReasonOtherAgent   Reason = "other_agent"
	ReasonFormat       Reason = "unknown_format"
	ReasonDuplicate    Reason = "duplicate_key"
	ReasonMissing      Reason = "missing_field"
	ReasonNotError     Reason = "not_error_level"
	ReasonOther        Reason = "other_message"
	ReasonOldProcess   Reason = "old_process"
	ReasonTitle        Reason = "title_agent"
	ReasonSmall        Reason = "small_model"
	ReasonAmbiguous    Reason = "ambiguous_session"
	ReasonOtherSession Reason = "other_session"
	ReasonSettled      Reason = "settled"
	ReasonBefore       Reason = "before_prompt"
	ReasonFuture       Reason = "future"
	ReasonAborted      Reason = "aborted"

	ReasonProcess   Reason = "process_failed"
	ReasonUser      Reason = "user_action"
	ReasonTransient Reason = "transient"
	ReasonRepeat    Reason = "repeat_attempt"
)

const (
	// retryError is the class of OpenCode's error for requests in the
	// background, whatever tags they carry.
	retryError = "AI_RetryError"
	// skew is how far ahead of the clock a record may be.
	skew = time.Minute
)

// Context is what is known of the prompt that a line is judged for.
type Context struct {
	AgentType string // of the process; only Agent's lines are evidence
	SessionID string // the agent's own id of the session
	// ActivePrompts is how many prompts are in flight in the process. Old
	// records name the wrong session when it is not 1.
	ActivePrompts int
	// PromptStarted and Now bound the record's time; the rule of a zero one is
	// not applied.
	PromptStarted time.Time
	Settled       bool // the prompt has its end already
	Now           time.Time
}

// Prompt is what the lines so far mean for one prompt. The zero Prompt is a
// new one; it is for one goroutine.
type Prompt struct {
	failing bool // an attempt failed, and nothing came since
	settled bool
}

// Finding is what a line means for a prompt, and all of the line that may be
// kept. Of an ignored line nothing but action and reason is.
type Finding struct {
	Action Action
	Reason Reason
	// Class is ClassNone for a failure of no known class, and empty for an
	// ignored line.
	Class           rouse.Class
	Provider, Model string // empty for the end of a turn
	Message         string // sanitized, at most MaxMessage bytes; never empty
	OccurredAt      time.Time
	ResetAt         time.Time // zero when no relative time was given
	RemediationURL  string    // one for which LinkAllowed holds, or empty
}

// Progress notes genuine progress: the next failed attempt is a first one.
func (p *Prompt) Progress() { p.failing = false }

// Settle notes that the prompt has an end; lines prove nothing any more.
func (p *Prompt) Settle() { p.settled = true }

// Settled reports whether the prompt has an end.
func (p *Prompt) Settled() bool { return p.settled }

// Judge says what a line means for the prompt, and remembers it.
func (p *Prompt) Judge(r Record, c Context) Finding {
	if why := p.unrelated(&r, c); why != "" {
		return Finding{Action: Ignore, Reason: why}
	}
	said := spoken(r.text)
	f := Finding{Class: r.class(said), Message: shown(said), OccurredAt: r.OccurredAt(), RemediationURL: r.remediation()}
	if d := resetIn(said); d > 0 {
		f.ResetAt = f.OccurredAt.Add(d)
	}
	if !r.process {
		f.Provider, f.Model = Name(r.provider), Name(r.model)
	}
	switch {
	case r.process:
		f.Action, f.Reason = Terminal, ReasonProcess
	case f.Class == rouse.ClassQuota || f.Class == rouse.ClassBilling || f.Class == rouse.ClassAuth:
		f.Action, f.Reason = Terminal, ReasonUser
	case p.failing:
		f.Action, f.Reason = Retrying, ReasonRepeat
	default:
		f.Action, f.Reason = AttemptFailed, ReasonTransient
	}
	p.failing = true
	p.settled = p.settled || f.Action == Terminal
	return f
}

// unrelated says why the line is no evidence for the prompt, or "".
func (p *Prompt) unrelated(r *Record, c Context) Reason {
	latest := r.at
	if r.old {
		latest = latest.Add(999 * time.Millisecond) // it stands for the whole second
	}
	switch {
	case r.broken != "":
		return r.broken
	case c.AgentType != Agent:
		return ReasonOtherAgent
	case r.reason != "":
		return r.reason
	case r.background():
		return ReasonTitle
	case strings.EqualFold(r.small, "true"):
		return ReasonSmall
	case r.old && c.ActivePrompts != 1:
		return ReasonAmbiguous
	case r.session != c.SessionID:
		return ReasonOtherSession
	case c.Settled || p.settled:
		return ReasonSettled
	case !c.PromptStarted.IsZero() && latest.Before(c.PromptStarted):
		return ReasonBefore
	case !c.Now.IsZero() && r.at.After(c.Now.Add(skew)):
		return ReasonFuture
	case aborted(r.text):
		return ReasonAborted
	}
	return ""
}

// background reports a request that is not the turn's own.
func (r *Record) background() bool {
	rest, retried := strings.CutPrefix(strings.TrimSpace(r.text), retryError)
	return strings.EqualFold(r.agent, "title") || strings.EqualFold(r.agent, "summary") ||
		retried && !wordAt(rest, 0) || r.name == retryError || r.title
}

// class is found in what is said, then in the error's type and code, then in
// the status.
func (r *Record) class(said string) rouse.Class {
	if c := ClassOf(said + "\n" + r.kind + "\n" + r.code); c != rouse.ClassNone {
		return c
	}
	return ClassOfCode(r.status)
}

func (r *Record) remediation() string {
	switch {
	case !r.linked:
		return linkIn(r.text)
	case LinkAllowed(r.link):
		return r.link
	}
	return ""
}

// Name is the id of a provider, a model or a version, if it is one and no
// secret; else "".
func Name(id string) string {
	if !name(id, 128) || Sanitize(id) != id || shown(id) != id {
		return ""
	}
	return id
}
