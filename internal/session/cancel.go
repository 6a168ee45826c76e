package session

import (
	"context"
	"time"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/engine"
)

// The rungs of the cancel ladder, each an event before it is a deed.
const (
	rungRequested = "requested" // stored; open requests are answered, the engine is asked
	rungForced    = "forced"    // the engine is stopped
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

// climb takes the next rung: the engine did not end by itself.
func (ln *lane) climb() {
	a := ln.turn
	if a == nil {
		if d := ln.draining; d != nil {
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
