package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
)

// witness remembers, over all lives, what the engines said of each turn: an
// end in the log must rest on its own turn's words, whatever else was said
// before, meanwhile and afterwards.
type witness struct {
	mu            sync.Mutex
	opens         map[string]int // by session
	turns         map[prompted]*testimony
	conversations map[string]*conversation // by the engine's own session id
}

// prompted is one generation of a session.
type prompted struct {
	session    string
	generation uint64
}

// testimony is what was said of one generation's end.
type testimony struct {
	completed, cancelled, bare bool
	failures                   []string // messages, each of which names the generation
	texts                      [][]byte // all that was said; one for each time it was asked, as a life that is over may have asked, too
}

func newWitness() *witness {
	return &witness{turns: map[prompted]*testimony{}, conversations: map[string]*conversation{}, opens: map[string]int{}}
}

func (w *witness) note(of prompted, what func(*testimony)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turns[of] == nil {
		w.turns[of] = &testimony{}
	}
	what(w.turns[of])
}

// fail notes a failure and gives it a message that no other generation has.
func (w *witness) fail(of prompted, f rouse.Failure) rouse.Failure {
	f.Message += fmt.Sprintf(" (generation %d)", of.generation)
	w.note(of, func(t *testimony) { t.failures = append(t.failures, f.Message) })
	return f
}

// Open opens a conversation of the drill engine under the witness's eyes. One
// in three is slower than a cancel's patience, as agent programs can be.
func (w *witness) Open(ctx context.Context, spec engine.Spec, sink engine.Sink) (engine.Conversation, error) {
	w.mu.Lock()
	if w.opens[spec.Session.ID]++; w.opens[spec.Session.ID]%3 == 2 {
		spec.Model.Model = "slowopen"
	}
	w.mu.Unlock()
	inner, err := drill.Engine{}.Open(ctx, spec, overheard{sink, spec.Session.ID, w})
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &conversation{Conversation: inner, w: w, id: fmt.Sprintf("drill-%d", len(w.conversations)), session: spec.Session.ID,
		opened: time.Now(), turns: []string{spec.Session.Running}}
	w.conversations[c.id] = c
	return c, nil
}

// stray is what the drill engine says under another generation's number.
const stray = "from another turn"

// overheard is a lane's sink.
type overheard struct {
	engine.Sink
	session string
	w       *witness
}

func (o overheard) Update(ctx context.Context, u engine.Update) {
	if d, ok := u.Body.(engine.Diagnostic); ok && d.Terminal {
		d.Failure = o.w.fail(prompted{o.session, u.Generation}, d.Failure)
		u.Body = d
	}
	if text, ok := u.Body.(engine.Text); ok && text.Text != stray {
		o.w.note(prompted{o.session, u.Generation}, func(t *testimony) { t.says(text.Text) })
	}
	o.Sink.Update(ctx, u)
}

// conversation is one of the drill engine's.
type conversation struct {
	engine.Conversation
	w           *witness
	id, session string
	opened      time.Time
	turns       []string // that it was opened for or asked
	closed      bool
}

func (c *conversation) Close() error {
	c.w.mu.Lock()
	c.closed = true
	c.w.mu.Unlock()
	return c.Conversation.Close()
}

func (c *conversation) Info() engine.Info {
	info := c.Conversation.Info()
	info.EngineSession = c.id
	return info
}

func (c *conversation) Prompt(ctx context.Context, p rouse.Prompt) engine.Outcome {
	c.w.mu.Lock()
	c.turns = append(c.turns, p.TurnID)
	c.w.mu.Unlock()
	of := prompted{c.session, p.Generation}
	c.w.note(of, func(t *testimony) { t.texts = append(t.texts, nil) })
	out := c.Conversation.Prompt(ctx, p)
	if out.Failure != nil {
		f := c.w.fail(of, *out.Failure)
		out.Failure = &f
		return out
	}
	c.w.note(of, func(t *testimony) {
		t.completed = t.completed || out.State == rouse.TurnCompleted
		t.cancelled = t.cancelled || out.State == rouse.TurnCancelled
		t.bare = t.bare || out.State == rouse.TurnFailed
	})
	return out
}

// left names a conversation that nobody closed, of those that concern the
// caller: it may be a process.
func (w *witness) left(concerns func(session string) bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, c := range w.conversations {
		if !c.closed && concerns(c.session) {
			return fmt.Sprintf("conversation %s of session %s is still open", id, c.session)
		}
	}
	return ""
}

// checkEnd holds a turn's end against what was said of it.
func (s *sim) checkEnd(e *rouse.Event, f *rouse.SettledFact, t *tally) string {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	said := s.witness.turns[prompted{e.SessionID, e.Generation}]
	if said == nil {
		said = &testimony{}
	}
	rests := false
	switch f.State {
	case rouse.TurnCompleted:
		rests = said.completed
	case rouse.TurnCancelled:
		rests = said.cancelled || t.aborted
	case rouse.TurnInterrupted:
		rests = slices.ContainsFunc(s.ends, func(at time.Time) bool { return !at.Before(t.began) && !at.After(e.At) })
	case rouse.TurnFailed:
		switch {
		case f.Failure == nil:
		case f.Failure.Source == "watch", f.Failure.Source == "rouse": // not the engine's word
			rests = true
		case f.Failure.Source == "process" && said.bare:
			rests = true
		default:
			rests = slices.Contains(said.failures, f.Failure.Message)
		}
	}
	if rests {
		return ""
	}
	return fmt.Sprintf("turn %s (generation %d) ended as %s %+v, of which nothing was said but %+v", e.TurnID, e.Generation, f.State, f.Failure, *said)
}

func (t *testimony) says(text string) {
	if n := len(t.texts); n > 0 {
		t.texts[n-1] = append(t.texts[n-1], text...)
	}
}

// checkText holds what is stored of a turn's text against what was said: its
// end may be missing, nothing in the middle. Rouse's own words stand last.
func (s *sim) checkText(of prompted, stored string) string {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	stored, _, _ = strings.Cut(stored, "⚠️")
	said := s.witness.turns[of]
	if stored == "" || said != nil && slices.ContainsFunc(said.texts, func(text []byte) bool { return bytes.HasPrefix(text, []byte(stored)) }) {
		return ""
	}
	return fmt.Sprintf("generation %d of %s is stored as %q, of which nothing was said but %+v", of.generation, of.session, stored, said)
}

// checkResume holds the engine's session that a session would go on in against
// who may write it: a turn that used it, as long as it ran.
func (s *sim) checkResume(row *rouse.Session, turns map[string]*tally) string {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	for _, id := range row.Resume {
		c := s.witness.conversations[id]
		if c == nil || c.session != row.ID {
			return fmt.Sprintf("session %s would go on in %s, which is not its own", row.ID, id)
		}
		if !slices.ContainsFunc(c.turns, func(turn string) bool { t := turns[turn]; return t != nil && !t.ended.Before(c.opened) }) {
			return fmt.Sprintf("session %s would go on in %s, opened at %s, when the turn that wanted it was over", row.ID, id, c.opened.Format(time.TimeOnly))
		}
	}
	return ""
}
