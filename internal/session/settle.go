package session

import (
	"time"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/engine"
	"rouse/internal/store"
)

// end is a claim: how the turn ended and what is known of it.
type end struct {
	state    rouse.TurnState
	finish   string
	failure  *rouse.Failure
	reason   string // interrupted: why
	evidence string
	usage    rouse.Usage
	retry    *rouse.RetryFact // the turn was waiting for another attempt
}

// claim takes an engine's outcome as the end of the active turn, unless one
// was claimed before. Once a cancel step is stored the turn is cancelled,
// whatever the engine says.
func (ln *lane) claim(generation uint64, out engine.Outcome) {
	a := ln.turn
	if a == nil || a.turn.Generation != generation || a.claimed != nil {
		return
	}
	e := end{state: out.State, finish: out.Finish, failure: out.Failure, evidence: out.Evidence, usage: out.Usage, retry: a.retry}
	if a.cancel.stage != "" {
		e.state = rouse.TurnCancelled
	}
	if e.state == rouse.TurnFailed && e.failure == nil {
		e.failure = &rouse.Failure{Message: "the agent ended the turn with an error and gave no reason", Source: "process"}
	}
	if e.failure != nil && e.failure.Code == "" {
		e.failure.Code = rouse.CodeOf(e.failure.Class)
	}
	if e.state == rouse.TurnFailed && engineMayEnrich(out) {
		ln.hold(a, e)
		return
	}
	ln.settle(e)
}

// hold stores an error claim that has no class yet: its state is fixed, and it
// settles when richer evidence of the same generation comes, or after 500 ms.
func (ln *lane) hold(a *active, e end) {
	a.claimed = &e
	a.turn.Claimed, a.turn.Failure = e.state, e.failure
	t := a.turn
	a.pending = append(a.pending, func(tx *store.Tx, _ *rouse.Session) error { t := t; return tx.UpdateTurn(&t) })
	ln.commit()
	if ln.turn == a {
		ln.enrich.Reset(ln.l.Pace.Enrich)
	}
}

// diagnosed takes a terminal finding from outside the protocol: it enriches a
// held claim, or is the claim itself and starts the ladder, because the
// engine's prompt is still open.
func (ln *lane) diagnosed(f *rouse.Failure) {
	a := ln.turn
	if a == nil {
		return
	}
	if f.Code == "" {
		f.Code = rouse.CodeOf(f.Class)
	}
	if a.claimed != nil {
		if a.claimed.failure == nil || a.claimed.failure.Class == "" {
			a.claimed.failure = f
			ln.settleClaim()
		}
		return
	}
	ln.settle(end{state: rouse.TurnFailed, finish: "error", failure: f, evidence: "diagnostic", retry: a.retry})
}

// settleClaim settles what was held back, by its timer or a store that was
// down.
func (ln *lane) settleClaim() {
	if ln.turn != nil && ln.turn.claimed != nil && !ln.down {
		ln.settle(*ln.turn.claimed)
	}
}

// settle writes the end of the active turn, once: parts closed, message
// completed, turn and session moved, all in one durable transaction. A refused
// write is tried again from memory.
func (ln *lane) settle(e end) {
	a := ln.turn
	if a == nil { // lost to another writer meanwhile
		return
	}
	now := time.Now()
	if e.state == rouse.TurnFailed && e.failure != nil && e.failure.Class == "" {
		e.failure.Class = rouse.ClassNone
	}
	ln.closeText(a, now)
	if a.claimed == nil {
		a.claimed = &e
	}
	if a.turn.Usage == (rouse.Usage{}) {
		a.turn.Usage = e.usage
	}
	crash.At(crash.SettleBefore)
	ladder := !a.returned && a.cancel.stage == "" && e.state != rouse.TurnInterrupted // the engine's prompt is open
	var news wallNews
	err := ln.write(store.Promise, func(tx *store.Tx) error {
		s, err := tx.Fence(ln.id, a.turn.ID, ln.l.Boot)
		if err != nil {
			return err
		}
		if err := applyChanges(tx, s, a.pending); err != nil {
			return err
		}
		t := a.turn
		t.Draining = !a.returned
		if news, err = ln.l.finishTurn(tx, s, &t, e, a.rest()); err == nil && ladder {
			err = emitRung(tx, a, rungRequested, "the turn has ended, its prompt is open")
		}
		return err
	})
	switch {
	case err == nil:
	case rouse.KindOf(err) == rouse.Fenced, rouse.KindOf(err) == rouse.NotFound:
		ln.lose(err)
		return
	default:
		ln.storeFailed(err)
		return
	}
	crash.At(crash.SettleAfter)
	ln.committed(a)
	ln.l.Log.Info("turn.settled", "session", ln.id, "turn", a.turn.ID, "generation", a.turn.Generation, "state", e.state,
		"class", classOf(e.failure), "evidence", e.evidence)
	ln.release(a)
	ln.l.tell(news)
	if ladder {
		a.cancel.stage = rungRequested
	}
	if ln.draining == a {
		a.unwanted.Store(true)
		ln.ask(a, engine.Conversation.Cancel)
		ln.rung.Reset(ln.l.Pace.Ask)
	}
}

func classOf(f *rouse.Failure) rouse.Class {
	if f == nil {
		return rouse.ClassNone
	}
	return f.Class
}
