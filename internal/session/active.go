package session

import (
	"context"
	"sync/atomic"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/store"
)

// active is a dispatched turn as its lane holds it.
type active struct {
	turn    rouse.Turn
	session rouse.Session // directory and the like; counters are the row's
	ctx     context.Context
	end     context.CancelCauseFunc

	msg      *rouse.Message // the assistant message that grows now
	answered bool           // an assistant message was begun
	text     *openText      // the text or reasoning part that grows now
	tools    map[string]*rouse.Part
	progress map[string]time.Time // last written progress of a tool
	requests map[string]rouse.Request
	retry    *rouse.RetryFact
	attempt  []*rouse.Part // parts that the model call in flight has ended

	pending []change // not yet committed, in order
	grown   []*openText

	replies []func() // to the engine, once what they rest on is committed

	// conv is set before opened is closed; nil then if it could not be opened.
	conv   engine.Conversation
	opened chan struct{}
	// unwanted is set when the turn is cancelled before it was asked.
	unwanted atomic.Bool
	probing  atomic.Bool // the engine is asked whether it answers
	begun    bool        // something genuine came

	claimed  *end // decided, not settled
	dropConv bool // its conversation is worth nothing any more
	returned bool // Prompt came back
	cancel   struct {
		stage  string
		reason string
		done   []chan struct{}
	}
}

// openText is a text or reasoning part while it grows.
type openText struct {
	part   *rouse.Part
	text   []byte
	live   *feed.Text // nil until its start is committed
	shown  int        // bytes of text that live has
	saved  int        // bytes that are in chunk rows
	saving bool       // a chunk is on its way to the store; one at a time leaves no hole
	chunks []int64
}

// change is one write of a fold. It may run again after a refused commit, so
// it changes nothing but what the transaction gives it.
type change func(tx *store.Tx, s *rouse.Session) error

func newActive(t *rouse.Turn, s *rouse.Session) *active {
	return &active{turn: *t, session: *s, tools: map[string]*rouse.Part{}, progress: map[string]time.Time{},
		requests: map[string]rouse.Request{}, opened: make(chan struct{})}
}

// put stages the write of a part's current state.
func (a *active) put(p *rouse.Part, chunks ...int64) {
	row, gen := *p, a.turn.Generation
	p.Row++
	a.pending = append(a.pending, func(tx *store.Tx, s *rouse.Session) error {
		c := row
		return tx.PutPart(s, &c, gen, chunks...)
	})
}

// putMessage stages the write of the growing message's current state.
func (a *active) putMessage() {
	row := *a.msg
	a.msg.Row++
	a.pending = append(a.pending, func(tx *store.Tx, s *rouse.Session) error {
		c := row
		added, err := tx.PutMessage(s, &c)
		if added {
			s.Messages++
		}
		return err
	})
}

// emit stages an event that is no row.
func (a *active) emit(t rouse.EventType, data any) {
	turn, gen := a.turn.ID, a.turn.Generation
	a.pending = append(a.pending, func(tx *store.Tx, s *rouse.Session) error {
		return tx.Emit(rouse.Event{Type: t, SessionID: s.ID, Directory: s.Directory, TurnID: turn, Generation: gen}, data)
	})
}

// ask runs a call to the turn's conversation outside the lane, bounded.
func (ln *lane) ask(a *active, call func(engine.Conversation, context.Context) error) {
	ln.answers.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), ln.l.Pace.Ask+ln.l.Pace.Force)
		defer cancel()
		select {
		case <-a.opened:
		case <-ctx.Done():
			return
		}
		if a.conv == nil {
			return
		}
		if err := call(a.conv, ctx); err != nil {
			ln.l.Log.Debug("session.ask", "session", ln.id, "err", err)
		}
	})
}

// engineMayEnrich says that an error without class can still get one: another
// channel of the same generation may bring it.
func engineMayEnrich(o engine.Outcome) bool {
	return o.State == rouse.TurnFailed && (o.Failure == nil || o.Failure.Class == "")
}
