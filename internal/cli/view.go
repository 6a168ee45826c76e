package cli

import (
	"strings"
	"time"

	"rouse/internal/client"
)

// sink shows what a view found worth showing. A view never tells it the same
// thing twice.
type sink interface {
	// text is the next piece of a text or reasoning part; end is its last.
	text(p client.Part, piece string, end bool)
	// tool is a transition of a tool call.
	tool(p client.Part)
	// step is a step-start or step-finish part.
	step(p client.Part)
	// retry says that an attempt failed and when the next starts.
	retry(session string, s client.Status)
	// failed is the error of a turn.
	failed(session string, e *client.MessageError)
	// idle says that a session has nothing more to do.
	idle(session string)
	// asked is a request to a person.
	asked(r client.Request)
}

// view follows the stream of events and turns it into news: deltas and
// repeated snapshots become pieces of text, transitions are told once.
type view struct {
	sink sink
	// only limits the view to one session; "" is all.
	only string
	// prompt limits it to the answers to one user message; "" is all.
	prompt   string
	messages map[string]client.Message
	parts    map[string]*seen
	last     map[string]string // per session: retry attempts and errors told
	// answered: something that belongs to the prompt was seen.
	answered bool
}

// seen is what was told of a part.
type seen struct {
	part  client.Part
	text  string // what the sink has
	next  int    // where in the text the stream's next delta begins; -1: not announced
	state string // of a tool: the state told last
	done  bool
}

func newView(s sink, only, prompt string) *view {
	return &view{sink: s, only: only, prompt: prompt,
		messages: map[string]client.Message{}, parts: map[string]*seen{}, last: map[string]string{}}
}

// event takes one frame.
func (v *view) event(e client.Event) error {
	if v.only != "" && e.SessionID != v.only {
		return nil
	}
	switch e.Type {
	case "message.updated":
		var m client.MessageUpdated
		if err := e.Into(&m); err != nil {
			return err
		}
		v.message(m.Info)
	case "message.part.updated":
		var p client.PartUpdated
		if err := e.Into(&p); err != nil {
			return err
		}
		v.part(p.Part)
		v.announced(p.Part)
	case "message.part.delta":
		var d client.Delta
		if err := e.Into(&d); err != nil {
			return err
		}
		v.delta(d)
	case "session.status":
		var s client.Status
		if err := e.Into(&s); err != nil {
			return err
		}
		v.status(e.SessionID, s)
	case "session.error":
		var x client.Errored
		if err := e.Into(&x); err != nil {
			return err
		}
		v.errored(e.SessionID, x.Error)
	case "permission.asked", "question.asked":
		var r client.Request
		if err := e.Into(&r); err != nil {
			return err
		}
		v.sink.asked(r)
	}
	return nil
}

func (v *view) message(m client.Message) {
	v.messages[m.ID] = m
	if v.prompt != "" && m.ParentID == v.prompt {
		v.answered = true
	}
}

// wanted says whether parts of a message are shown.
func (v *view) wanted(messageID string) bool {
	return v.prompt == "" || v.messages[messageID].ParentID == v.prompt
}

func (v *view) part(p client.Part) {
	if !v.wanted(p.MessageID) {
		return
	}
	s := v.parts[p.ID]
	if s == nil {
		s = &seen{next: -1}
		v.parts[p.ID] = s
	}
	s.part = p
	switch p.Type {
	case "text", "reasoning":
		// A part of a user's message has no time: it is complete as it comes.
		end := p.Time == nil || p.Time.End != 0
		if len(p.Text) >= len(s.text) {
			v.grow(s, p.Text, end)
		}
	case "tool":
		if p.State != nil && p.State.Status != s.state && !s.done {
			s.state, s.done = p.State.Status, p.State.Status == "completed" || p.State.Status == "error"
			v.sink.tool(p)
		}
	case "step-start", "step-finish":
		if !s.done {
			s.done = true
			v.sink.step(p)
		}
	}
}

// announced takes from a part's frame where its deltas go on: behind the text
// in that frame, whatever a snapshot that was read beside the stream had.
func (v *view) announced(p client.Part) {
	if s := v.parts[p.ID]; s != nil {
		s.next = len(p.Text)
	}
}

// delta shows what of a delta is behind the text that the sink has.
func (v *view) delta(d client.Delta) {
	s := v.parts[d.PartID]
	if s == nil || d.Field != "text" || s.done || s.next < 0 {
		return // the part's own frame comes with all of it
	}
	known := len(s.text) - s.next
	s.next += len(d.Delta)
	if known >= 0 && known < len(d.Delta) {
		v.grow(s, s.text+d.Delta[known:], false)
	}
}

// grow tells the sink what is new of a text that only grows. Where it changed
// after all, the sink gets the rest behind the common beginning.
func (v *view) grow(s *seen, text string, end bool) {
	if s.done {
		return
	}
	piece := strings.TrimPrefix(text, s.text)
	if len(piece) == len(text) && s.text != "" {
		piece = text[min(len(s.text), len(text)):]
	}
	s.text, s.done = text, end
	if piece != "" || end && text != "" {
		v.sink.text(s.part, piece, end)
	}
}

func (v *view) status(session string, s client.Status) {
	switch s.Status.Type {
	case "retry":
		key := "retry " + time.UnixMilli(s.Status.Next).String()
		if v.last[session] != key {
			v.last[session] = key
			v.sink.retry(session, s)
		}
	case "idle":
		if v.last[session] != "idle" {
			v.last[session] = "idle"
			v.sink.idle(session)
		}
	case "busy":
		v.last[session] = "busy"
	}
}

func (v *view) errored(session string, e *client.MessageError) {
	if e == nil {
		return
	}
	if key := "error " + e.Name + e.Data.Message; v.last[session] != key {
		v.last[session] = key
		v.sink.failed(session, e)
	}
}
