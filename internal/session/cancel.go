package session

import (
	"context"
	"time"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/engine"
	"rouse/internal/store"
)

// The rungs of the cancel ladder, each an event before it is a deed.
const (
	rungRequested = "requested" // stored; open requests are answered, the engine is asked
	rungForced    = "forced"    // the engine is stopped
	rungKilled    = "killed"    // its process was ended, by the signal that is named
	rungGivenUp   = "given_up"  // the turn is settled without the engine
)

// cancelTurn starts the ladder for the running turn.
func (ln *lane) cancelTurn(m cancelled) {
	a := ln.turn
	if a == nil || m.generation != 0 && m.generation != a.turn.Generation {
		close(m.done)
		return
	}
	a.cancel.done = append(a.cancel.done, m.done)
	if a.cancel.stage != "" || a.claimed != nil {
		return
	}
	crash.At(crash.CancelBefore)
	ln.step(a, rungRequested, m.reason)
	crash.At(crash.CancelAfter)
	if ln.turn != a { // it was not this server's any more
		return
	}
	a.unwanted.Store(true)
	for _, r := range a.requests {
		reply := rouse.Reply{Verb: rouse.ReplyCancelled, By: "cancel"}
		ln.closeRequest(a, r, reply)
		ln.tell(a, r.ID, reply)
	}
	ln.commit()
	if ln.turn != a {
		return
	}
	ln.ask(a, engine.Conversation.Cancel)
	ln.rung.Reset(ln.l.Pace.Ask)
}

// step records a rung. It outlives the process before anything is done about
// it, but not power loss: then the turn is interrupted instead of cancelled,
// and nobody was told otherwise, as callers are answered when the end is on
// disk.
func (ln *lane) step(a *active, stage, detail string) {
	a.cancel.stage = stage
	if detail != "" {
		a.cancel.reason = detail
	}
	a.emit(rouse.CancelStage, rouse.CancelFact{Stage: stage, Detail: detail})
	if ln.turn == a {
		ln.commit()
	}
}

// tellDraining tells of a rung of a turn that is settled already: what is done
// until its engine is free.
func (ln *lane) tellDraining(d *active, stage, detail string) {
	err := ln.write(store.Lazy, func(tx *store.Tx) error {
		if _, err := tx.Turn(d.turn.ID); err != nil {
			return err
		}
		return emitRung(tx, d, stage, detail)
	})
	if err != nil && rouse.KindOf(err) != rouse.NotFound {
		ln.l.Log.Warn("session.rung", "session", ln.id, "err", err)
	}
}

func emitRung(tx *store.Tx, a *active, stage, detail string) error {
	return tx.Emit(rouse.Event{Type: rouse.CancelStage, SessionID: a.turn.SessionID, Directory: a.session.Directory, TurnID: a.turn.ID,
		Generation: a.turn.Generation}, rouse.CancelFact{Stage: stage, Detail: detail})
}

// exited tells that the ladder ended the engine's process.
func (ln *lane) exited(x engine.Exit, generation uint64) {
	a, d := ln.turn, ln.draining
	switch {
	case !x.Killed:
	case a != nil && a.turn.Generation == generation && a.cancel.stage != "":
		a.emit(rouse.CancelStage, rouse.CancelFact{Stage: rungKilled, Detail: x.Reason})
	case d != nil && d.turn.Generation == generation:
		ln.tellDraining(d, rungKilled, x.Reason)
	}
}

// climb takes the next rung: the engine did not end by itself.
func (ln *lane) climb() {
	a := ln.turn
	if a == nil {
		if d := ln.draining; d != nil {
			if d.cancel.stage == rungRequested {
				d.cancel.stage = rungForced
				ln.tellDraining(d, rungForced, "")
			}
			ln.ask(d, engine.Conversation.Stop)
			d.end(errNotWanted)
		}
		return
	}
	switch a.cancel.stage {
	case rungRequested:
		ln.step(a, rungForced, "")
		if ln.turn != a {
			return
		}
		ln.ask(a, engine.Conversation.Stop)
		a.end(errNotWanted)
		ln.rung.Reset(ln.l.Pace.Force)
	case rungForced:
		ln.step(a, rungGivenUp, "")
		if ln.turn == a {
			ln.settle(end{state: rouse.TurnCancelled, evidence: "the engine did not end in time"})
		}
	}
}

var errNotWanted = rouse.Errorf(rouse.Conflict, "session: cancel", "the turn was cancelled")

// abortWait bounds Abort; the ladder is shorter.
const abortWait = 15 * time.Second

// Abort ends the session's running turn and returns when it is settled, at the
// latest after 15 s. Queued prompts stay and run. Nothing running is no error;
// a turn whose server is gone is interrupted.
func (l *Lanes) Abort(ctx context.Context, sessionID string) error {
	done := make(chan struct{})
	if !l.postExisting(sessionID, cancelled{reason: "abort", done: done}) {
		_, err := l.Adopt(ctx, sessionID)
		return rouse.Wrap("session: abort", err)
	}
	ctx, cancel := context.WithTimeout(ctx, abortWait)
	defer cancel()
	select {
	case <-done:
		_, err := l.Adopt(ctx, sessionID) // a lane may be there that runs nothing
		return rouse.Wrap("session: abort", err)
	case <-ctx.Done():
		if v, ok := l.Vitals(sessionID); ok && v.StoreDown {
			return rouse.Errorf(rouse.Unavailable, "session: abort", "the database cannot be written, so the end of the turn is not stored yet; it will be when writing works again")
		}
		return rouse.Errorf(rouse.Unavailable, "session: abort", "the turn was asked to end but has not yet; it is being forced")
	}
}
