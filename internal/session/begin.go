package session

import (
	"cmp"
	"errors"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/store"
)

// begun is a turn that was moved to running, and what its prompt needs.
type begun struct {
	turn    *rouse.Turn
	session *rouse.Session
	parts   []rouse.Part
	grants  []rouse.PermissionRule // given with "always" in the session's directory
}

// begin moves the oldest queued turn to running. It is the dispatch: after a
// crash a turn that got here is interrupted, never run again. All that the
// prompt needs is read with it, so that nothing can fail between the two. A
// turn that has to wait for a wall stays queued and there is none; one that
// has to end on it is given with the wall, and nothing is written.
func (ln *lane) begin() (b begun, wall *rouse.Wall, err error) {
	crash.At(crash.BeginBefore)
	err = ln.write(store.Lazy, func(tx *store.Tx) error {
		b, wall = begun{}, nil
		s, err := tx.Session(ln.id)
		if err != nil || s.Pause || s.Running != "" {
			return err
		}
		t, err := tx.NextTurn(s)
		if err != nil || t == nil {
			return err
		}
		adm, err := ln.l.admit(tx, s, t)
		if err != nil || adm.Verdict == rouse.Hold {
			return err
		}
		b = begun{turn: t, session: s}
		if adm.Verdict == rouse.Refuse {
			wall = adm.Wall
			return nil
		}
		if b.parts, err = tx.Parts(t.UserMessage); err != nil {
			return err
		}
		if b.grants, err = tx.Grants(s.Directory); err != nil {
			return err
		}
		return ln.start(tx, s, t)
	})
	if err != nil {
		return begun{}, nil, err
	}
	crash.At(crash.BeginAfter)
	return b, wall, nil
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
