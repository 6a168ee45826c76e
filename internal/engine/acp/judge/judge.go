// Package judge decides how one prompt of an agent ended: a pure fold over
// what the agent and the client wrote, what stood on stderr, the end of the
// process, and the clock.
//
//	open ──► completed | failed | cancelled
//
// Live, the events come with the clock's time; a replay feeds recorded times.
// The first decision is final. Silence decides nothing: a turn of which nothing
// proves the end stays open, however long.
//
// An agent's own "end_turn" is one witness of several. What agents really do
// when a provider fails is in their vendors' files and in testdata, which are
// judgements on recordings of real agents.
package judge

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/wire"
)

// Turn is the fold over one prompt. It is not safe for concurrent use.
type Turn struct {
	agent   string
	session string
	request json.RawMessage
	before  wire.Usage // of the session, see Params

	v     Verdict
	grace diagnostics.Grace
	tools openTools
	asked []json.RawMessage // ids of permission requests that nobody answered yet
	// cancelled and superseded: the client sent a cancel, or another prompt in
	// this session.
	cancelled, superseded bool

	// lastText says whether the last text that is neither blank nor a banner is
	// the text of a failure; failureText is the last such text.
	lastText    textKind
	failureText string
	reported    *sessionFailure // the last typed failure of severity error
	systemError bool            // a thread status said so
}

// New opens the window of a prompt. agentType is whose adapter it is
// ("opencode", "claude" …), session the agent's own session id, request the
// JSON-RPC id of the session/prompt that was written at the time at. What was
// written earlier must not be fed.
func New(p Params, agentType, session string, request json.RawMessage, at time.Time) *Turn {
	t := &Turn{agent: agentType, session: session, request: request, before: p.Before, grace: diagnostics.Grace{Wait: p.Grace, ByArrival: true}}
	t.v.Outcome, t.v.Evidence, t.v.StartedAt = Open, EvidenceNone, at
	return t
}

// Agent takes a message of the agent and says what it is to this turn. After
// the decision everything is Foreign and nothing is counted.
func (t *Turn) Agent(at time.Time, m *wire.Message) Weight {
	t.Tick(at)
	switch {
	case !t.Open():
		return Foreign
	case m.Method == "":
		if m.IsAnswer() && wire.SameID(m.ID, t.request) {
			t.answer(at, m)
		}
		return Foreign
	case m.Method == wire.MethodCancelRequest:
		t.withdraw(m.Cancels)
	}
	if m.SessionID != t.session && m.SessionID != "" {
		return Foreign
	}
	if m.SessionID == "" || Weigh(m) == Noise {
		t.v.Noise++
		if m.SessionID != "" {
			t.noise(m)
		}
		return Noise
	}
	t.v.Genuine++
	t.v.LastGenuine = at
	t.grace.Progress(at)
	t.genuine(m)
	return Genuine
}

// genuine keeps what the end will be judged by.
func (t *Turn) genuine(m *wire.Message) {
	switch {
	case m.Permission != nil:
		t.tools.see(m.Permission.Tool)
		if m.ID != nil {
			t.asked = append(t.asked, m.ID)
		}
	case m.Update.Tool != nil:
		t.tools.see(*m.Update.Tool)
	default:
		t.chunk(m.Update)
	}
}

// noise keeps what noise has to say about the end.
func (t *Turn) noise(m *wire.Message) {
	if m.Update == nil {
		return
	}
	t.chunk(m.Update)
	if m.Update.Meta != nil && m.Update.Kind == wire.KindSessionInfo {
		t.sessionInfo(m.Update.Meta)
	}
}

// sessionInfo takes the _meta of a session_info_update, in which vendors tell
// how their session does.
func (t *Turn) sessionInfo(meta json.RawMessage) {
	if isSystemError(meta) {
		t.systemError = true
	}
	if f := failureIn(meta); f != nil {
		t.reported = f
	}
}

// chunk looks at a chunk of text, whatever its weight.
func (t *Turn) chunk(u *wire.Update) {
	switch u.Kind {
	case wire.KindMessage, wire.KindThought:
		switch kind := kindOf(u.Content.Text); kind {
		case blank, banner:
		case failure:
			t.failureText = strings.Clone(bounded(u.Content.Text)) // the whole may be large
			fallthrough
		default:
			t.lastText = kind
		}
	case wire.KindUserMessage:
	default:
		return
	}
	if u.Meta != nil && wire.Positive(wire.At(u.Meta, "usage")) {
		t.v.ModelUsageSeen = true
	}
}

// bounded keeps the part of a text that a failure is told in.
func bounded(text string) string {
	const most = 16 << 10
	return text[:min(len(text), most)]
}

// Client takes a message that the client wrote after the prompt.
func (t *Turn) Client(at time.Time, m *wire.Message) {
	t.Tick(at)
	if !t.Open() {
		return
	}
	switch {
	case m.IsAnswer():
		t.withdraw(m.ID)
	case m.Method == wire.MethodCancelRequest:
		t.cancelled = t.cancelled || wire.SameID(m.Cancels, t.request)
	case m.SessionID != t.session:
	case m.Method == wire.MethodCancel:
		t.cancelled = true
	case m.Method == wire.MethodPrompt:
		t.superseded = t.superseded || !wire.SameID(m.ID, t.request)
	}
}

// withdraw closes a permission request: it was answered or taken back.
func (t *Turn) withdraw(id json.RawMessage) {
	t.asked = slices.DeleteFunc(t.asked, func(open json.RawMessage) bool { return wire.SameID(open, id) })
}

// Exit takes the end of the agent's process. What its orphans still write
// comes too late.
func (t *Turn) Exit(at time.Time) {
	t.Tick(at)
	if t.Open() {
		t.decide(at, t.byDiagnostic(EvidenceExit))
	}
}
