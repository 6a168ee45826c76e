package session

import (
	"cmp"
	"errors"
	"maps"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/store"
)

// keepResume stores the engine's own id of the session when it is another than
// before, so that a later conversation can go on in it; none when the engine
// gave its session up.
func (ln *lane) keepResume() {
	a := ln.turn
	if a == nil || ln.conv == nil {
		return
	}
	info := ln.conv.Info()
	ln.sink.describe(a.turn.Generation, info)
	name, id := a.session.Engine, info.EngineSession
	if a.session.Resume[name] == id {
		return
	}
	resume := maps.Clone(a.session.Resume)
	if resume == nil {
		resume = map[string]string{}
	}
	if resume[name] = id; id == "" {
		delete(resume, name)
	}
	a.session.Resume = resume
	a.pending = append(a.pending, func(tx *store.Tx, s *rouse.Session) error {
		s.Resume = resume
		return tx.KeepSession(s)
	})
}

// linger is how long an idle lane keeps its conversation: an agent's process
// takes seconds to start, so its engine may ask for more.
func (ln *lane) linger() time.Duration {
	if ln.conv == nil {
		return ln.l.Linger
	}
	return cmp.Or(ln.conv.Info().Idle, ln.l.Linger)
}

// launchFailed is the outcome of a prompt whose conversation could not be
// opened.
func launchFailed(err error) engine.Outcome {
	if known, ok := errors.AsType[*engine.LaunchError](err); ok {
		f := known.Failure
		return engine.Outcome{State: rouse.TurnFailed, Finish: "error", Evidence: "open failed", Failure: &f}
	}
	msg := rouse.SafeMessage(err)
	if msg == "" {
		msg = "the engine could not be started"
	}
	return engine.Outcome{State: rouse.TurnFailed, Finish: "error", Evidence: "open failed", Failure: &rouse.Failure{
		Class: rouse.ClassNone, Code: rouse.CodeLaunch, Message: rouse.Clip(msg, 2000), Source: "process"}}
}
