package rouse

import (
	"strings"
	"time"
)

// Wall is a limit that stands in the way of a provider's account. It is opened
// by a refusal, and closed by one completed turn after its reset or by hand.
// In between it is half-open: the next prompt that wants the provider tries it.
type Wall struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	// Account is whose limit it is: DefaultAccount, the one that the
	// configuration gives the provider, or, of an agent program, the provider
	// inside it.
	Account   string `json:"account"`
	LimitName string `json:"limit_name,omitempty"`
	Model     string `json:"model,omitempty"` // a model, or a family of them; empty: the whole account
	// AgentChose: an agent program was asked for the model of its own choice, so
	// the wall is in the way of that, too.
	AgentChose bool   `json:"agent_chose,omitempty"`
	Class      Class  `json:"class"`
	State      string `json:"state"`             // WallIsOpen, WallIsHalf, WallIsClosed
	Message    string `json:"message,omitempty"` // of the refusal; sanitized
	// OpenedAt is the first refusal, RefusedAt the last one.
	OpenedAt  time.Time `json:"opened_at"`
	RefusedAt time.Time `json:"refused_at"`
	// ResetAt is when the provider says that capacity returns; zero when it
	// does not say, never a guess.
	ResetAt    time.Time `json:"reset_at,omitzero"`
	Confidence string    `json:"confidence,omitempty"`
	Source     string    `json:"source,omitempty"` // of the reset: retry_after, body_epoch …
	// ProbeAt is when the next prompt may try it; zero when only a person or
	// a close by hand does.
	ProbeAt time.Time `json:"probe_at,omitzero"`
	// Refusals in a row, the first one included.
	Refusals int `json:"refusals"`
	// ProbeTurn is the turn that tries it now, ProbeSession its session.
	ProbeTurn    string `json:"probe_turn,omitempty"`
	ProbeSession string `json:"probe_session,omitempty"`
	// OpenedBy is the turn that was refused.
	OpenedBy string    `json:"opened_by,omitempty"`
	ClosedAt time.Time `json:"closed_at,omitzero"`
	ClosedBy string    `json:"closed_by,omitempty"` // a turn, or "hand", or "superseded"
}

// The states of a wall.
const (
	WallIsOpen   = "open"
	WallIsHalf   = "half_open"
	WallIsClosed = "closed"
)

// DefaultAccount is the account of a provider that has one.
const DefaultAccount = "default"

// AgentProvider is the prefix of the provider ids that stand for agent
// programs: "acp:claude" is the account of Claude Code, and its models are the
// models as that program names them.
const AgentProvider = "acp:"

// AgentModel is the model id that leaves the choice to the agent program.
const AgentModel = "default"

// SourceStderr is the source of a failure that OpenCode's stderr told: its
// provider is one inside the agent.
const SourceStderr = "opencode_stderr"

// SourceWall is the source of a failure that no provider was asked for: a
// known wall refused it.
const SourceWall = "wall"

// wallAfter is the longest wait that opens no wall.
const wallAfter = 60 * time.Second

// WallOf is the wall that a failed turn ran into; ok is false when it ran into
// none. A failure of class quota or billing opens one, and any other whose
// reset is more than a minute ahead.
func WallOf(t *Turn, now time.Time) (w Wall, ok bool) {
	f := t.Failure
	if t.State != TurnFailed || f == nil || f.Source == SourceWall {
		return Wall{}, false
	}
	if f.Class != ClassQuota && f.Class != ClassBilling && f.ResetAt.Sub(now) <= wallAfter {
		return Wall{}, false
	}
	w = Wall{Provider: f.Provider, Account: DefaultAccount, LimitName: f.LimitName, Model: f.LimitModel, Class: f.Class, State: WallIsOpen,
		Message: f.Message, OpenedAt: now, RefusedAt: now, ResetAt: f.ResetAt, Confidence: f.Confidence, Source: f.ResetSource, Refusals: 1, OpenedBy: t.ID}
	if strings.HasPrefix(t.Model.Provider, AgentProvider) { // the agent's account stands before the wall, whoever said so
		if f.Provider != "" && (f.Source == SourceStderr || strings.HasPrefix(t.Model.Model, f.Provider+"/")) {
			w.Account = f.Provider
		}
		w.Provider = t.Model.Provider
	}
	if w.Provider == "" {
		w.Provider = t.Model.Provider
	}
	if w.Provider == "" {
		return Wall{}, false
	}
	if !w.Covers(ModelRef{Provider: w.Provider, Model: t.Model.Model}) { // named in a way that would stop nothing
		w.AgentChose = t.Model.Model == AgentModel && strings.HasPrefix(w.Provider, AgentProvider)
		if !w.AgentChose {
			w.Model = t.Model.Model
		}
	}
	return w, true
}

// Covers reports that the wall stands in the way of a model: of every model of
// the account, of one model by its id, or of a family ("opus") by a part of it.
func (w *Wall) Covers(m ModelRef) bool {
	if !w.asks(m) {
		return false
	}
	id, name := strings.ToLower(m.Model), strings.ToLower(w.Model)
	if name == "" || id == name || w.AgentChose && m.Model == AgentModel || strings.HasSuffix(id, "/"+name) {
		return true
	}
	return !strings.ContainsAny(name, "0123456789") && strings.Contains(id, name)
}

// asks reports that a model is asked of the wall's account. Inside an agent
// program an account is a provider of its own, and models are named by it.
func (w *Wall) asks(m ModelRef) bool {
	return m.Provider == w.Provider &&
		(w.Account == DefaultAccount || w.Account == "" || m.Model == AgentModel || strings.HasPrefix(m.Model, w.Account+"/"))
}

// Same reports that both are the same limit: provider, account, window, model.
func (w *Wall) Same(o *Wall) bool {
	return w.Provider == o.Provider && w.Account == o.Account && w.LimitName == o.LimitName && strings.EqualFold(w.Model, o.Model)
}

// StateAt is the wall's state at a time: one whose hour has come is half-open,
// also before that was written.
func (w *Wall) StateAt(now time.Time) string {
	if w.State == WallIsOpen && !w.ProbeAt.IsZero() && !now.Before(w.ProbeAt) {
		return WallIsHalf
	}
	return w.State
}

// FallsTo reports that a completed turn closes the wall: it asked the wall's
// provider after the reset. What has no reset falls to the first turn that was
// begun after the refusal; billing to a person's or a forced one only.
func (w *Wall) FallsTo(t *Turn) bool {
	if t.State != TurnCompleted || t.Kind == TurnShell || !w.asks(t.Model) || !t.Started.After(w.RefusedAt) {
		return false
	}
	switch {
	case w.Class == ClassBilling:
		return w.Covers(t.Model) && (!t.Unattended || t.Force)
	case w.ResetAt.IsZero():
		return w.Covers(t.Model)
	}
	return !t.Started.Before(w.ResetAt)
}

// Bid is a turn that asks to be given to its provider.
type Bid struct {
	TurnID, SessionID string
	Model             ModelRef
	Unattended        bool // nobody waits for it: it was launched
	Behind            bool // it waited behind another turn of its session
	Force             bool
	// Within: it belongs to a turn that was let through, as a sub-agent's.
	Within bool
}

// Admission is what becomes of a bid.
type Admission struct {
	Verdict AdmissionVerdict
	// Wall is the one that stands in the way; nil for Admit.
	Wall *Wall
	// Probes are the ids of the walls that the turn tries.
	Probes []string
}

// AdmissionVerdict decides a bid.
type AdmissionVerdict string

// The verdicts on a bid.
const (
	Admit  AdmissionVerdict = "admit"  // ask the provider
	Hold   AdmissionVerdict = "hold"   // stay queued until the wall half-opens or closes
	Refuse AdmissionVerdict = "refuse" // end on the wall, without asking the provider
)
