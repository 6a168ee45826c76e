package session

import (
	"context"
	"errors"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/store"
)

// What the watch asks of the lanes. It reads vitals, which engines' readers
// stamp, and posts its one claim like everybody else.

// Each calls fn with the vitals of every turn that runs here. fn must be quick
// and must not keep v.
func (l *Lanes) Each(fn func(sessionID string, v *rouse.Vitals)) {
	l.mu.Lock()
	all := make([]*lane, 0, len(l.lanes))
	for _, ln := range l.lanes {
		all = append(all, ln)
	}
	l.mu.Unlock()
	var v rouse.Vitals
	for _, ln := range all {
		if ln.sink.look(&v) {
			fn(ln.id, &v)
		}
	}
}

// Claim ends the running turn as failed, unless another turn runs by now,
// anything genuine came after epoch, or its end was decided already: that is
// Conflict and changes nothing. The engine's prompt is still open, so the
// ladder runs, and the conversation is given up.
func (l *Lanes) Claim(ctx context.Context, sessionID string, generation, epoch uint64, f rouse.Failure) error {
	const op = "session: claim"
	done := make(chan error, 1)
	if !l.postExisting(sessionID, condemned{generation, epoch, f, done}) {
		return rouse.Errorf(rouse.Conflict, op, "nothing runs in session %s", sessionID)
	}
	select {
	case err := <-done:
		return rouse.Wrap(op, err)
	case <-ctx.Done():
		return rouse.Wrap(op, context.Cause(ctx))
	}
}

func (ln *lane) condemn(m condemned) {
	ln.fold(ln.sink.take()) // what came before the claim counts
	a := ln.turn
	v, _ := ln.sink.vitals()
	if a == nil || a.turn.Generation != m.generation || v.Epoch != m.epoch || a.claimed != nil || a.cancel.stage != "" {
		m.done <- rouse.Errorf(rouse.Conflict, "claim", "the turn moved on")
		return
	}
	a.dropConv = true
	f := m.failure
	ln.settle(end{state: rouse.TurnFailed, finish: "error", failure: &f, evidence: "watch", retry: a.retry})
	m.done <- nil
}

// Barrier returns when every lane has handled what was reported to it before,
// or ctx ends.
func (l *Lanes) Barrier(ctx context.Context) error {
	l.mu.Lock()
	var all []chan struct{}
	for _, ln := range l.lanes {
		if !l.stopping {
			b := barrier{make(chan struct{})}
			ln.box.put(b)
			all = append(all, b.done)
		}
	}
	l.mu.Unlock()
	for _, done := range all {
		select {
		case <-done:
		case <-ctx.Done():
			return rouse.Wrap("session: barrier", context.Cause(ctx))
		}
	}
	return nil
}

// Probe makes the session's lane ask its engine whether it still answers; the
// vitals tell what came of it. Nothing happens while a question is open.
func (l *Lanes) Probe(sessionID string) { l.postExisting(sessionID, probe{}) }

func (ln *lane) probe() {
	a := ln.turn
	if a == nil || a.probing.Swap(true) {
		return
	}
	asked, gen := time.Now(), a.turn.Generation
	note := func(p *rouse.ProbeFact) {
		ln.sink.mark(func(v *rouse.Vitals) {
			if v.Generation != gen {
				return
			}
			if was := v.Probe; was != nil && p.Answered.IsZero() && was.Answered.IsZero() && was.Asked.After(v.LastGenuine) {
				p.Asked = was.Asked // it has not answered since then
			}
			v.Probe = p
		})
	}
	ln.answers.Go(func() {
		defer a.probing.Store(false)
		ctx, cancel := context.WithTimeout(a.ctx, ln.l.Pace.Probe)
		defer cancel()
		select {
		case <-a.opened:
		case <-ctx.Done():
			return
		}
		if a.conv == nil {
			return
		}
		switch err := a.conv.Probe(ctx); {
		case errors.Is(err, engine.ErrUnsupported):
			ln.sink.mark(func(v *rouse.Vitals) { v.NoProbe = v.NoProbe || v.Generation == gen })
		case a.ctx.Err() != nil:
		case err != nil:
			note(&rouse.ProbeFact{Asked: asked})
		default:
			note(&rouse.ProbeFact{Asked: asked, Answered: time.Now()})
		}
	})
}

// Adopt ends a turn whose server is gone as interrupted and lets the session's
// queue run. It says whether there was one; a session that is not there has
// none.
func (l *Lanes) Adopt(ctx context.Context, sessionID string) (ended bool, err error) {
	s, err := l.Store.Session(ctx, sessionID)
	if rouse.KindOf(err) == rouse.NotFound || err == nil && (s.Running == "" || l.Live(s.RunningBoot)) {
		return false, nil
	}
	if err != nil {
		return false, rouse.Wrap("session: adopt", err)
	}
	err = l.Store.Write(ctx, store.Promise, func(tx *store.Tx) (err error) {
		ended, err = l.interrupt(tx, sessionID)
		return err
	})
	if err == nil && ended {
		l.post(sessionID, kick{})
		l.Gate.Changed() // the end may have moved a wall
	}
	return ended, rouse.Wrap("session: adopt", err)
}

// Cancel starts the ladder for the running turn and returns at once: what
// follows is told by events. generation 0 is whichever runs; another one than
// the running turn's is Conflict, and nothing running is no error. A turn whose
// server is gone is interrupted.
func (l *Lanes) Cancel(ctx context.Context, sessionID string, generation uint64) (v rouse.Vitals, running bool, err error) {
	v, running = l.Vitals(sessionID)
	switch {
	case !running:
		err = l.cancelOrphan(ctx, sessionID, generation)
	case generation != 0 && generation != v.Generation:
		err = notRunning(sessionID, generation)
	default:
		l.postExisting(sessionID, cancelled{generation: v.Generation, reason: "cancel", done: make(chan struct{})})
	}
	return v, running, rouse.Wrap("session: cancel", err)
}

func notRunning(sessionID string, generation uint64) error {
	return rouse.Errorf(rouse.Conflict, "cancel", "generation %d does not run in session %s", generation, sessionID)
}

// cancelOrphan interrupts a turn whose server is gone, where it is the one that
// is meant.
func (l *Lanes) cancelOrphan(ctx context.Context, sessionID string, generation uint64) error {
	if generation != 0 {
		s, err := l.Store.Session(ctx, sessionID)
		if err != nil {
			return err
		}
		if s.Running == "" || l.Live(s.RunningBoot) {
			return notRunning(sessionID, generation)
		}
		t, err := l.Store.Turn(ctx, s.Running)
		if err != nil {
			return err
		}
		if t.Generation != generation {
			return notRunning(sessionID, generation)
		}
	}
	_, err := l.Adopt(ctx, sessionID)
	return err
}

// Process is the process behind a session's conversation, also between turns; 0
// when it keeps none here.
func (l *Lanes) Process(sessionID string) (pid int) {
	l.mu.Lock()
	ln := l.lanes[sessionID]
	l.mu.Unlock()
	if ln == nil {
		return 0
	}
	ln.sink.mu.Lock()
	defer ln.sink.mu.Unlock()
	return ln.sink.pid
}

// look copies the vitals of an active turn.
func (s *sink) look(v *rouse.Vitals) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active {
		*v = s.v
	}
	return s.active
}

// waits notes for whom the turn waits; nil is nobody any more.
func (s *sink) waits(generation uint64, w *rouse.WaitFact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.v.Generation != generation {
		return
	}
	if was := s.v.Waiting; was != nil {
		s.v.Stand(was.Since, time.Now())
		if w != nil {
			w.Since = time.Now()
		}
	}
	s.v.Waiting = w
}

// describe notes what the conversation says of itself.
func (s *sink) describe(generation uint64, info engine.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid = info.PID
	if s.v.Generation != generation {
		return
	}
	s.v.PID, s.v.ModelConfirmed = info.PID, info.ModelConfirmed
	next := rouse.StderrFact{}
	if s.v.Stderr != nil {
		next = *s.v.Stderr
	}
	next.Supported = info.Diagnostics
	s.v.Stderr = &next
}
