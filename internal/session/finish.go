package session

import (
	"encoding/json"
	"fmt"
	"time"

	"rouse"
	"rouse/internal/store"
)

// finishTurn writes the end of a turn: live lanes and the start after a crash
// share it. Open parts are closed, the assistant message is completed (made,
// if there is none), requests are withdrawn, then turn and session move, walls
// and incidents with them, and the end is announced last. What it did to walls
// is for tell, once it is committed.
func (l *Lanes) finishTurn(tx *store.Tx, s *rouse.Session, t *rouse.Turn, e end, left rest) (news wallNews, err error) {
	failure, err := finishMessages(tx, s, t, e, left)
	if err != nil {
		return news, err
	}
	requests := left.requests
	for i := range requests {
		if err := tx.CloseRequest(s, &requests[i], rouse.Reply{Verb: rouse.ReplyCancelled, By: string(e.state)}); err != nil {
			return news, err
		}
	}
	if err := tx.HideNotice(s, t.Generation); err != nil {
		return news, err
	}
	t.State, t.Finish, t.Failure, t.Ended, t.Claimed = e.state, e.finish, e.failure, tx.Now(), ""
	t.Epoch++
	if err := tx.UpdateTurn(t); err != nil {
		return news, err
	}
	s.Running, s.RunningBoot, s.WaitingFor = "", "", ""
	s.Last, s.Outcome, s.Updated, s.Usage = t.ID, e.state, tx.Now(), s.Usage.Add(t.Usage)
	if err := tx.UpdateSession(s); err != nil {
		return news, err
	}
	if news, err = l.moveWalls(tx, s, t); err != nil {
		return news, err
	}
	if err := moveIncidents(tx, s, t); err != nil {
		return news, err
	}
	open, err := tx.Incident(s.ID)
	if err != nil {
		return news, err
	}
	after := rouse.FactOf(s, open)
	if err := tx.Emit(rouse.Event{Type: rouse.TurnSettledEvent, SessionID: s.ID, Directory: s.Directory, TurnID: t.ID, Generation: t.Generation},
		rouse.SettledFact{State: e.state, Finish: e.finish, Idle: s.Queued == 0 || s.Pause, Error: failure, Failure: e.failure, Session: &after}); err != nil {
		return news, err
	}
	return news, l.judge(tx, t)
}

// judge keeps what is made of the session now, if it is another thing than
// before.
func (l *Lanes) judge(tx *store.Tx, t *rouse.Turn) error {
	if l.Judge == nil {
		return nil
	}
	var walls []rouse.Wall
	if t.State == rouse.TurnFailed {
		var err error
		if walls, err = tx.Walls(t.Model.Provider); err != nil {
			return err
		}
	}
	v := l.Judge(tx.Now(), t, walls)
	was, err := tx.VerdictCode(t.SessionID)
	if err == nil && was != v.Code {
		_, err = tx.PutVerdict(t.SessionID, t.ID, t.Generation, &v)
	}
	return err
}

// finishMessages completes the assistant message in flight and gives the error
// that it carries.
func finishMessages(tx *store.Tx, s *rouse.Session, t *rouse.Turn, e end, left rest) (*rouse.MessageError, error) {
	if err := closeParts(tx, s, t, e, left.parts); err != nil {
		return nil, err
	}
	last := left.message
	if last == nil {
		if e.state == rouse.TurnCompleted && left.answered {
			return nil, nil
		}
		last = &rouse.Message{ID: rouse.NewID(rouse.MessagePrefix, tx.Now()), SessionID: s.ID, Role: rouse.Assistant, Generation: t.Generation,
			TurnID: t.ID, ParentID: t.UserMessage, Agent: t.Agent, Model: t.Model, Directory: s.Directory, Created: tx.Now(),
			Summary: t.Kind == rouse.TurnCompact}
		s.Messages++
	}
	fail := messageError(e)
	last.Completed, last.Error = tx.Now(), fail
	switch {
	case e.state == rouse.TurnFailed, e.state == rouse.TurnCancelled && e.retry != nil:
		last.Finish = "error"
	case e.state == rouse.TurnCompleted:
		last.Finish = e.finish
		if last.Usage == (rouse.Usage{}) {
			last.Usage = t.Usage
		}
	}
	if _, err := tx.PutMessage(s, last); err != nil {
		return nil, err
	}
	if last.Finish != "error" {
		return fail, nil
	}
	return fail, tx.PutPart(s, warning(t, e, last, tx.Now()), t.Generation)
}

// closeParts ends what is still open.
func closeParts(tx *store.Tx, s *rouse.Session, t *rouse.Turn, e end, parts []rouse.Part) error {
	for i := range parts {
		p := &parts[i]
		p.Open, p.End = false, tx.Now()
		if p.Tool != nil {
			if p.Start.IsZero() {
				p.Start = tx.Now()
			}
			p.Tool.State, p.Tool.Error = rouse.ToolFailed, unfinishedTool(e)
		}
		if err := tx.PutPart(s, p, t.Generation); err != nil {
			return err
		}
	}
	return nil
}

func unfinishedTool(e end) string {
	switch e.state {
	case rouse.TurnInterrupted:
		return "Tool execution interrupted: " + e.reason
	case rouse.TurnCancelled:
		return "Tool execution aborted"
	default:
		return "Tool execution ended with the turn"
	}
}

func messageError(e end) *rouse.MessageError {
	switch e.state {
	case rouse.TurnCompleted:
		return nil
	case rouse.TurnFailed:
		return &rouse.MessageError{State: e.state, Failure: e.failure}
	default:
		return &rouse.MessageError{State: e.state, Reason: e.reason}
	}
}

// warning is the part that says, in the transcript, why a turn ended with an
// error: people, and agents that poll the tail, read it there.
func warning(t *rouse.Turn, e end, m *rouse.Message, now time.Time) *rouse.Part {
	f := e.failure
	if f == nil {
		f = &rouse.Failure{Class: rouse.ClassNone}
		if e.retry != nil {
			f = &rouse.Failure{Class: e.retry.Class, Message: e.retry.Message}
		}
	}
	provider := f.Provider
	if provider == "" {
		provider = t.Model.Provider
	}
	reason := string(f.Class)
	if f.Class == rouse.ClassNone || f.Class == "" {
		reason = f.Code
	}
	meta, _ := json.Marshal(map[string]any{"error": true, "reason": reason, "provider": provider}) // strings and a bool
	return &rouse.Part{ID: rouse.NewID(rouse.PartPrefix, now), SessionID: m.SessionID, MessageID: m.ID, Kind: rouse.TextPart,
		Text: warningText(provider, f), Metadata: meta, Start: now, End: now, Synthetic: true}
}

func warningText(provider string, f *rouse.Failure) string {
	text := "⚠️ "
	if provider != "" {
		text += provider + ": "
	}
	switch {
	case f.LimitName != "":
		text += f.LimitName + " usage limit reached"
	case f.Class != rouse.ClassNone && f.Class != "":
		text += classWords[f.Class]
	default:
		text += "the turn failed"
	}
	if f.Message != "" {
		text += fmt.Sprintf(" (%s)", f.Message)
	}
	if !f.ResetAt.IsZero() {
		text += ". Resets at " + f.ResetAt.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return text
}

var classWords = map[rouse.Class]string{
	rouse.ClassQuota:    "usage limit reached",
	rouse.ClassRate:     "rate limited",
	rouse.ClassBilling:  "billing problem",
	rouse.ClassAuth:     "authentication failed",
	rouse.ClassCapacity: "the provider is overloaded",
	rouse.ClassNetwork:  "the provider could not be reached or broke off",
	rouse.ClassContext:  "the conversation is too long for the model",
	rouse.ClassModel:    "the model is not available",
}
