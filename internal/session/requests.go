package session

import (
	"context"
	"time"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/engine"
	"rouse/internal/store"
)

// openRequest stores what the engine asks a person. Where nobody is there to
// answer it is rejected at once.
func (ln *lane) openRequest(a *active, r rouse.Request, at time.Time) {
	r.SessionID, r.TurnID, r.Generation, r.Asked = ln.id, a.turn.ID, a.turn.Generation, at
	if p := a.tools[r.CallID]; p != nil {
		r.MessageID = p.MessageID
	} else if a.msg != nil {
		r.MessageID = a.msg.ID
	}
	switch {
	case a.cancel.stage != "":
		ln.tell(a, r.ID, rouse.Reply{Verb: rouse.ReplyCancelled, By: "cancel"})
		return
	case a.turn.Unattended:
		ln.tell(a, r.ID, rouse.Reply{Verb: rouse.ReplyReject, By: "unattended", Message: "nobody is there to answer: this session runs unattended"})
		return
	}
	a.requests[r.ID] = r
	ln.sink.waits(a.turn.Generation, &rouse.WaitFact{For: r.Kind, ID: r.ID, Since: at})
	a.turn.State = rouse.TurnWaiting
	t, waiting := a.turn, r.Kind
	a.pending = append(a.pending, func(tx *store.Tx, s *rouse.Session) error {
		s.WaitingFor = waiting
		t := t
		if err := tx.UpdateTurn(&t); err != nil {
			return err
		}
		if err := tx.Emit(rouse.Event{Type: rouse.TurnWaitingEvent, SessionID: s.ID, Directory: s.Directory, TurnID: t.ID, Generation: t.Generation},
			rouse.TurnFact{State: t.State, WaitingFor: waiting, Model: t.Model}); err != nil {
			return err
		}
		return tx.OpenRequest(s, &r)
	})
}

// closeRequest stages the end of a request; the turn runs on when it was the
// last one.
func (ln *lane) closeRequest(a *active, r rouse.Request, reply rouse.Reply) {
	delete(a.requests, r.ID)
	waiting := ""
	var still *rouse.WaitFact
	for _, other := range a.requests {
		waiting = other.Kind
		still = &rouse.WaitFact{For: other.Kind, ID: other.ID, Since: other.Asked}
	}
	ln.sink.waits(a.turn.Generation, still)
	if waiting == "" {
		a.turn.State = rouse.TurnRunning
	}
	t, ends := a.turn, a.cancel.stage != ""
	a.pending = append(a.pending, func(tx *store.Tx, s *rouse.Session) error {
		s.WaitingFor = waiting
		t := t
		if err := tx.UpdateTurn(&t); err != nil {
			return err
		}
		if err := tx.CloseRequest(s, &r, reply); err != nil || waiting != "" || ends {
			return err
		}
		return tx.Emit(rouse.Event{Type: rouse.TurnAnswered, SessionID: s.ID, Directory: s.Directory, TurnID: t.ID, Generation: t.Generation},
			rouse.TurnFact{State: t.State, Queued: s.Queued, Model: t.Model})
	})
}

// tell gives a reply to the engine after the next commit.
func (ln *lane) tell(a *active, requestID string, reply rouse.Reply) {
	a.replies = append(a.replies, func() {
		ln.ask(a, func(c engine.Conversation, ctx context.Context) error { return c.Answer(ctx, requestID, reply) })
	})
	if len(a.pending) == 0 {
		ln.committed(a)
	}
}

// answer takes a person's reply: stored first, then told. A reply that cannot
// be stored is refused and never given: another one may come instead.
func (ln *lane) answer(m answered) {
	ln.commit() // what came before it
	a := ln.turn
	if a == nil {
		m.done <- requestGone(m.requestID)
		return
	}
	r, ok := a.requests[m.requestID]
	switch {
	case !ok:
		m.done <- requestGone(m.requestID)
		return
	case ln.down:
		m.done <- errStoreDown
		return
	}
	ln.closeRequest(a, r, m.reply)
	ln.tell(a, r.ID, m.reply)
	crash.At(crash.AnswerBefore)
	err := ln.commitAs(store.Promise)
	crash.At(crash.AnswerAfter)
	if err != nil && ln.turn == a {
		a.pending, a.replies = nil, nil
		a.requests[r.ID], a.turn.State = r, rouse.TurnWaiting
		ln.sink.waits(a.turn.Generation, &rouse.WaitFact{For: r.Kind, ID: r.ID, Since: time.Now()}) // the wait before is counted
	}
	m.done <- err
}

// supersede rejects the open questions: a prompt came instead of an answer.
func (ln *lane) supersede() {
	a := ln.turn
	if a == nil {
		return
	}
	for _, r := range a.requests {
		if r.Kind == rouse.ForQuestion {
			reply := rouse.Reply{Verb: rouse.ReplyReject, By: "superseded", Message: "a new prompt came instead of an answer"}
			ln.closeRequest(a, r, reply)
			ln.tell(a, r.ID, reply)
		}
	}
	ln.commit()
}

func requestGone(id string) error {
	return rouse.Errorf(rouse.NotFound, "session: answer", "Request not found, or already answered: %s", rouse.Clip(id, 64))
}

// Answer replies to an open request of the given kind (rouse.ForPermission,
// rouse.ForQuestion). NotFound if it is not open.
func (l *Lanes) Answer(ctx context.Context, requestID, kind string, r rouse.Reply) error {
	const op = "session: answer"
	req, err := l.Store.Request(ctx, requestID)
	if err != nil {
		return rouse.Wrap(op, err)
	}
	if req.Kind != kind {
		return requestGone(requestID)
	}
	done := make(chan error, 1)
	if !l.postExisting(req.SessionID, answered{requestID, r, done}) {
		return requestGone(requestID)
	}
	select {
	case err := <-done:
		return rouse.Wrap(op, err)
	case <-ctx.Done():
		return rouse.Wrap(op, context.Cause(ctx))
	}
}
