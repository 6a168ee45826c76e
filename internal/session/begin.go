package session

import (
	"cmp"
	"errors"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/store"
)

// begin moves the oldest queued turn to running. It is the dispatch: after a
// crash a turn that got here is interrupted, never run again. A turn that has
// to wait for a wall stays queued and t is nil; one that has to end on it is
// given with the wall, and nothing is written.
func (ln *lane) begin() (t *rouse.Turn, s *rouse.Session, parts []rouse.Part, wall *rouse.Wall, err error) {
	crash.At(crash.BeginBefore)
	err = ln.write(store.Lazy, func(tx *store.Tx) error {
		t, parts, wall = nil, nil, nil
		var err error
		if s, err = tx.Session(ln.id); err != nil || s.Pause || s.Running != "" {
			return err
		}
		if t, err = tx.NextTurn(s); err != nil || t == nil {
			return err
		}
		adm, err := ln.l.admit(tx, s, t)
		switch {
		case err != nil:
			return err
		case adm.Verdict == rouse.Hold:
			t = nil
			return nil
		case adm.Verdict == rouse.Refuse:
			wall = adm.Wall
			return nil
		}
		if parts, err = tx.Parts(t.UserMessage); err != nil {
			return err
		}
		return ln.start(tx, s, t)
	})
	if err != nil {
		return nil, nil, nil, nil, err
	}
	crash.At(crash.BeginAfter)
	return t, s, parts, wall, nil
}

// start moves a queued turn to running, in the transaction that does so.
func (ln *lane) start(tx *store.Tx, s *rouse.Session, t *rouse.Turn) error {
	t.State, t.Boot, t.Started = rouse.TurnRunning, ln.l.Boot, tx.Now()
	t.Epoch++
	if ln.l.EngineOf != nil {
		s.Engine = cmp.Or(ln.l.EngineOf(t.Model), s.Engine)
	}
	s.Running, s.RunningBoot, s.WaitingFor = t.ID, ln.l.Boot, ""
	s.Queued--
	if err := errors.Join(tx.UpdateTurn(t), tx.KeepSession(s)); err != nil {
		return err
	}
	return tx.Emit(rouse.Event{Type: rouse.TurnRunningEvent, SessionID: s.ID, Directory: s.Directory, TurnID: t.ID,
		Generation: t.Generation, MessageID: t.UserMessage}, rouse.TurnFact{State: t.State, Queued: s.Queued, Model: t.Model})
}
