package session

import (
	"context"
	"sync"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/store"
)

// Messages of a lane's mailbox.
type (
	kick     struct{} // look whether a prompt is queued
	opened   struct{ conv engine.Conversation }
	returned struct {
		generation uint64
		out        engine.Outcome
	}
	cancelled struct { // somebody wants the running turn to end
		generation uint64 // 0: whichever runs
		reason     string
		done       chan struct{} // closed when it is settled, or nothing runs
	}
	answered struct {
		requestID string
		reply     rouse.Reply
		done      chan error // 1 slot
	}
	superseded struct{} // the open question makes way for a prompt
	condemned  struct { // the watch claims the end of a turn
		generation, epoch uint64
		failure           rouse.Failure
		done              chan error // 1 slot
	}
	flushed struct { // a piece of a growing text was stored, or refused
		text *openText
		upto int
		err  error
	}
	probe   struct{}                     // ask the engine whether it answers its protocol
	barrier struct{ done chan struct{} } // closed once everything before it is handled
	reset   struct{}                     // the session changed under the conversation: open a new one
)

// lane is one session's only writer of turns. All fields below box and sink
// belong to its goroutine.
type lane struct {
	l    *Lanes
	id   string
	box  mailbox
	sink *sink

	conv     engine.Conversation
	convSpec convKey
	closing  chan struct{}  // closed when the conversation before is; nil for none
	turn     *active        // dispatched and unsettled, or nil
	draining *active        // settled, but its Prompt has not returned
	answers  sync.WaitGroup // goroutines that answer and cancel
	retryAt  *time.Timer    // store down: try again
	idle     *time.Timer    // linger
	flush    *time.Timer    // running text to the store
	rung     *time.Timer    // next rung of the cancel ladder
	enrich   *time.Timer    // an error claim waits for richer evidence
	down     bool           // the store refused a write, and it is not time to try again
	// downSince is the first of the refused writes; zero once one was done.
	downSince time.Time
}

// convKey is what a conversation was opened with; another value needs a new
// one.
type convKey struct{ engine, directory, agent string }

func newLane(l *Lanes, id string) *lane {
	stopped := func() *time.Timer { t := time.NewTimer(time.Hour); t.Stop(); return t }
	return &lane{l: l, id: id, box: mailbox{bell: make(chan struct{}, 1)}, sink: newSink(l.Pace.RetryGrace),
		retryAt: stopped(), idle: stopped(), flush: stopped(), rung: stopped(), enrich: stopped()}
}

// run is the lane's goroutine.
func (ln *lane) run() {
	defer ln.l.wg.Done()
	defer ln.close()
	ctx := ln.l.ctx
	for {
		select {
		case <-ln.box.bell:
			for _, m := range ln.box.take() {
				ln.handle(m)
			}
		case <-ln.sink.bell:
			ln.fold(ln.sink.take())
		case <-ln.flush.C:
			ln.flushText()
		case <-ln.rung.C:
			ln.climb()
		case <-ln.enrich.C:
			ln.settleClaim()
		case <-ln.retryAt.C:
			ln.retryStore()
		case <-ln.idle.C:
			if ln.turn == nil && ln.draining == nil && ln.l.retire(ln) {
				return
			}
			ln.idle.Reset(ln.linger())
		case <-ctx.Done():
			ln.shutdown()
			return
		}
		ln.next()
	}
}

func (ln *lane) handle(m any) {
	switch m := m.(type) {
	case kick:
	case reset:
		switch {
		case ln.turn != nil:
		case ln.draining != nil:
			ln.draining.dropConv = true
		default:
			ln.dropConversation()
		}
	case opened:
		ln.conv = m.conv
		ln.keepResume()
	case returned:
		ln.keepResume()
		ln.fold(ln.sink.take())
		ln.promptReturned(m)
	case cancelled:
		ln.cancelTurn(m)
	case answered:
		ln.answer(m)
	case superseded:
		ln.supersede()
	case condemned:
		ln.condemn(m)
	case flushed:
		ln.textFlushed(m)
	case probe:
		ln.probe()
	case barrier:
		ln.fold(ln.sink.take())
		close(m.done)
	}
}

// next dispatches the oldest queued prompt if nothing stands in the way.
func (ln *lane) next() {
	if ln.turn != nil || ln.draining != nil || ln.down {
		return
	}
	if !ln.l.hold.take() {
		ln.idle.Reset(ln.linger())
		return
	}
	if !ln.l.slots.take(ln) {
		ln.l.hold.give()
		return
	}
	b, wall, err := ln.begin()
	if wall != nil {
		ln.giveBack()
		ln.refuse(b.turn.ID, wall)
		ln.idle.Reset(ln.linger())
		return
	}
	if err != nil || b.turn == nil {
		ln.giveBack()
		if err != nil && rouse.KindOf(err) == rouse.NotFound {
			err = nil // the session was deleted
		}
		ln.storeFailed(err)
		ln.idle.Reset(ln.linger())
		return
	}
	ln.idle.Stop()
	ln.dispatch(b)
}

// giveBack frees what next took for a turn.
func (ln *lane) giveBack() {
	ln.l.slots.give()
	ln.l.hold.give()
}

// dispatch gives the turn to the engine, in a goroutine that posts back.
func (ln *lane) dispatch(b begun) {
	t, s := b.turn, b.session
	a := newActive(t, s)
	a.ctx, a.end = context.WithCancelCause(context.WithoutCancel(ln.l.ctx))
	ln.turn = a
	ln.sink.begin(t)
	key := convKey{s.Engine, s.Directory, t.Agent}
	if ln.conv != nil && (ln.convSpec != key || ln.conv.Info().EngineSession != s.Resume[s.Engine]) {
		ln.dropConversation() // or its memory is not the session's any more
	}
	ln.convSpec = key
	spec := engine.Spec{Session: *s, Directory: s.Directory, Agent: t.Agent, Model: t.Model, Resume: s.Resume[s.Engine]}
	if ln.l.Env != nil {
		spec.Env = ln.l.Env(s.ID)
	}
	prompt := rouse.Prompt{SessionID: s.ID, TurnID: t.ID, Generation: t.Generation, MessageID: t.UserMessage, Parts: b.parts,
		Agent: t.Agent, Model: t.Model, System: t.System, Tools: t.Tools, Format: t.Format, Unattended: t.Unattended,
		Kind: t.Kind, Command: t.Command, Rules: append(b.grants, s.Permission...)}
	conv, closing := ln.conv, ln.closing
	ln.answers.Go(func() {
		if closing != nil { // an agent's session is in one process at a time
			select {
			case <-closing:
			case <-a.ctx.Done():
			}
		}
		ln.prompt(a, conv, spec, prompt)
	})
	ln.flush.Reset(flushEvery)
}

// prompt runs in its own goroutine: it opens the conversation if there is
// none, asks, and posts what came of it.
func (ln *lane) prompt(a *active, conv engine.Conversation, spec engine.Spec, p rouse.Prompt) {
	if conv == nil {
		eng, err := ln.l.Engine(spec.Session.Engine)
		if err == nil {
			conv, err = eng.Open(a.ctx, spec, ln.sink)
		}
		if err != nil {
			close(a.opened)
			ln.box.put(returned{p.Generation, launchFailed(err)})
			return
		}
		ln.box.put(opened{conv})
	}
	a.conv = conv
	ln.sink.describe(p.Generation, conv.Info())
	close(a.opened)
	if a.unwanted.Load() {
		ln.box.put(returned{p.Generation, engine.Outcome{State: rouse.TurnCancelled, Evidence: "cancelled before it was asked"}})
		return
	}
	ln.box.put(returned{p.Generation, conv.Prompt(a.ctx, p)})
}

// promptReturned takes the engine's word for the end, or notes that a settled
// turn's engine is free again.
func (ln *lane) promptReturned(m returned) {
	if d := ln.draining; d != nil && d.turn.Generation == m.generation {
		d.end(nil)
		ln.draining = nil
		ln.rung.Stop()
		ln.sink.mark(func(v *rouse.Vitals) { v.Draining = false })
		ln.drained(d)
		if d.dropConv {
			ln.dropConversation()
		}
		ln.giveBack()
		return
	}
	if ln.turn == nil || ln.turn.turn.Generation != m.generation {
		return
	}
	ln.turn.returned = true
	ln.claim(m.generation, m.out)
}

// drained notes on the settled turn that its engine is free.
func (ln *lane) drained(a *active) {
	ln.l.Store.Go(context.WithoutCancel(ln.l.ctx), store.Lazy, func(tx *store.Tx) error {
		t, err := tx.Turn(a.turn.ID)
		if err != nil || !t.Draining {
			return err
		}
		t.Draining = false
		return tx.UpdateTurn(t)
	}, func(err error) {
		if err != nil && rouse.KindOf(err) != rouse.NotFound {
			ln.l.Log.Warn("session.drained", "session", ln.id, "err", err)
		}
	})
}

func (ln *lane) dropConversation() {
	if conv := ln.conv; conv != nil {
		ln.conv = nil
		ln.sink.describe(0, engine.Info{})
		closed := make(chan struct{})
		ln.closing = closed
		ln.answers.Go(func() {
			defer close(closed)
			if err := conv.Close(); err != nil {
				ln.l.Log.Warn("session.close", "session", ln.id, "err", err)
			}
		})
	}
}

// shutdown ends the lane with the server: the running turn is interrupted.
func (ln *lane) shutdown() {
	if a := ln.turn; a != nil {
		ln.fold(ln.sink.take())
		ln.settle(end{state: rouse.TurnInterrupted, reason: "the server was stopped"})
		a.end(errShutdown)
	}
	if ln.draining != nil {
		ln.draining.end(errShutdown)
	}
}

// close frees what the lane holds; nothing it started outlives it.
func (ln *lane) close() {
	ln.sink.close()
	for _, t := range []*time.Timer{ln.retryAt, ln.idle, ln.flush, ln.rung, ln.enrich} {
		t.Stop()
	}
	ln.answers.Wait()
	for _, m := range ln.box.take() {
		switch m := m.(type) {
		case opened:
			ln.conv = m.conv
		case answered:
			m.done <- errShutdown
		case cancelled:
			close(m.done)
		case condemned:
			m.done <- errShutdown
		case barrier:
			close(m.done)
		}
	}
	if ln.conv != nil {
		if err := ln.conv.Close(); err != nil {
			ln.l.Log.Warn("session.close", "session", ln.id, "err", err)
		}
	}
}
