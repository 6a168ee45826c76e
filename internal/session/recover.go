package session

import (
	"context"
	"errors"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/store"
)

// Recover ends the turns of servers that are gone: they become interrupted,
// with what was flushed kept and open tool calls closed. It must return before
// requests are accepted. It says how many turns it ended.
func (l *Lanes) Recover(ctx context.Context) (interrupted int, err error) {
	const op = "session: recover"
	busy, err := l.Store.BusySessions(ctx)
	if err != nil {
		return 0, rouse.Wrap(op, err)
	}
	crash.At(crash.RecoverBefore)
	results := make(chan error, len(busy))
	ended := make([]bool, len(busy))
	for i, id := range busy {
		l.Store.Go(ctx, store.Promise, func(tx *store.Tx) (err error) {
			ended[i], err = l.interrupt(tx, id)
			return err
		}, func(err error) { results <- err })
	}
	for range busy {
		err = errors.Join(err, <-results)
	}
	crash.At(crash.RecoverAfter)
	for _, e := range ended {
		if e {
			interrupted++
		}
	}
	return interrupted, rouse.Wrap(op, err)
}

// interrupt ends a session's turn if the server that ran it is gone.
func (l *Lanes) interrupt(tx *store.Tx, sessionID string) (bool, error) {
	s, err := tx.Session(sessionID)
	if err != nil || s.Running == "" || l.Live(s.RunningBoot) {
		return false, err
	}
	t, err := tx.Turn(s.Running)
	if err != nil {
		return false, err
	}
	e := end{state: rouse.TurnInterrupted, reason: "the server stopped while this turn ran"}
	if t.Claimed != "" { // its end was decided before the crash
		e = end{state: t.Claimed, finish: "error", failure: t.Failure, reason: e.reason}
	}
	left, err := storedRest(tx, s, t)
	if err != nil {
		return false, err
	}
	_, err = l.finishTurn(tx, s, t, e, left) // the gate looks when it starts, and so do the lanes
	return true, err
}
