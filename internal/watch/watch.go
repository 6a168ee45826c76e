// Package watch looks at every running turn and says, with evidence, what it
// does: working, quiet, hung, waiting, retrying, never started. It keeps its
// verdicts and the notices for people in the log, and changes nothing else,
// except that it claims the end of a turn that never began.
//
// judge.go is pure. Serve is the clock: vitals are sampled every 15 s into a
// ring, and once a minute (the tick) notices, never_started and hung are
// judged. Engines pay nothing for it beyond the counters they stamp anyway.
package watch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"rouse"
	"rouse/internal/store"
)

// Lanes is what the watch asks of those who run turns.
type Lanes interface {
	// Each calls fn with the vitals of every turn that runs here; v is lent.
	Each(fn func(sessionID string, v *rouse.Vitals))
	// Vitals of a session's running turn; ok is false when none runs here.
	Vitals(sessionID string) (v rouse.Vitals, ok bool)
	// Claim ends a turn as failed; Conflict when it moved on.
	Claim(ctx context.Context, sessionID string, generation, epoch uint64, f rouse.Failure) error
	// Barrier returns when what was reported before is handled.
	Barrier(ctx context.Context) error
	// Probe asks the session's engine whether it answers; vitals tell.
	Probe(sessionID string)
	// Adopt ends a turn whose server is gone.
	Adopt(ctx context.Context, sessionID string) (ended bool, err error)
}

// Config is what a watch stands on; Store, Lanes and Boot are required.
type Config struct {
	Store *store.Store
	Lanes Lanes
	// Boot is this server's; Live says whether another one is alive (nil: none).
	Boot   string
	Live   func(boot string) bool
	Limits Limits
	Log    *slog.Logger
	// Hold says that turns of dead servers are left as they are, for a drill;
	// nil never does.
	Hold func() bool
	// Clock reads both clocks of the machine: one of them stands while it is
	// suspended. Nil is the machine's own.
	Clock func() Reading
}

// Reading is both clocks at a moment.
type Reading struct {
	Mono time.Duration // since any fixed moment
	Wall time.Time
}

// Watch judges what runs here.
type Watch struct {
	Config

	mu    sync.Mutex
	turns map[string]*watched // by session
	pass  uint64
	gaps  gaps
}

// New makes a watch; nothing is judged by itself before Serve.
func New(c Config) *Watch {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Live == nil {
		c.Live = func(string) bool { return false }
	}
	if c.Hold == nil {
		c.Hold = func() bool { return false }
	}
	if c.Limits == (Limits{}) {
		c.Limits = Default
	}
	if began := time.Now(); c.Clock == nil {
		c.Clock = func() Reading { return Reading{time.Since(began), time.Now().Round(0)} }
	}
	return &Watch{Config: c, turns: map[string]*watched{}}
}

// Serve watches until ctx ends.
func (w *Watch) Serve(ctx context.Context) error {
	sample := time.NewTicker(w.Limits.SampleEvery)
	defer sample.Stop()
	tick := time.NewTicker(w.Limits.Tick)
	defer tick.Stop()
	peek := time.NewTimer(w.Limits.Peek) // runs while a notice is shown
	defer peek.Stop()
	w.mu.Lock()
	w.gaps.last = w.Clock()
	w.mu.Unlock()
	var looked time.Time
	for {
		var err error
		select {
		case <-sample.C:
			if time.Since(looked) < w.Limits.SampleEvery/2 {
				continue // a tick was due at the same moment
			}
			looked, err = time.Now(), w.look(ctx, false)
		case <-tick.C:
			looked, err = time.Now(), w.look(ctx, true)
		case <-peek.C:
			err = w.peek(ctx)
		case <-ctx.Done():
			return nil
		}
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("watch.store", "err", err) // tried again: nothing is spent before it is stored
		}
		if w.shows() {
			peek.Reset(w.Limits.Peek)
		}
	}
}

// found is what one pass found of a turn.
type found struct {
	session string
	vitals  rouse.Vitals
	verdict rouse.Verdict
	changed bool // the verdict is to be written
	notice  bool // a notice is due
	claim   bool // the turn is to be ended
}

// look judges everything that runs here; tick says that notices, never_started
// and hung are judged too.
func (w *Watch) look(ctx context.Context, tick bool) error {
	w.mu.Lock()
	late := w.gaps.woke(w.Clock(), time.Now(), w.Limits.SampleEvery, w.Limits.Tick)
	w.mu.Unlock()
	if late {
		w.Log.Warn("watch.late", "lost", w.gaps.size)
		drain, cancel := context.WithTimeout(ctx, w.Limits.SampleEvery)
		err := w.Lanes.Barrier(drain)
		cancel()
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("watch.drain", "err", err)
		}
	}
	list, mute := w.judge(time.Now(), tick)
	err := w.write(ctx, list)
	if tick {
		w.claim(ctx, list)
		for _, id := range mute {
			w.Lanes.Probe(id)
		}
		err = errors.Join(err, w.adopt(ctx), w.rewall(ctx))
	}
	return err
}

// judge samples and judges; it gives what has to be done, and whose engines are
// worth a question.
func (w *Watch) judge(now time.Time, tick bool) (list []found, mute []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass++
	late := w.gaps.late || !tick
	if tick {
		w.gaps.late = false
	}
	w.Lanes.Each(func(id string, v *rouse.Vitals) {
		s := w.turns[id]
		if s == nil {
			s = &watched{}
			w.turns[id] = s
		}
		s.take(v, &w.gaps)
		s.seen = w.pass
		facts := s.facts(now, v, &w.Limits, &w.gaps, late)
		verdict := Judge(now, &facts, &w.Limits)
		s.sample(now, v, w.Limits.SampleEvery)
		f := found{session: id, verdict: verdict, changed: verdict.Code != s.code}
		if tick {
			f.notice = noticeDue(v, &verdict, &w.Limits, s.told)
			f.claim = neverBegan(now, &facts, &verdict, &w.Limits)
			if !v.NoProbe && (verdict.Code == rouse.Quiet || verdict.Code == rouse.Hung || verdict.Code == rouse.Unresponsive) {
				mute = append(mute, id)
			}
		}
		if f.changed || f.notice || f.claim {
			f.vitals = *v
			list = append(list, f)
		}
	})
	for id, s := range w.turns {
		if s.seen != w.pass {
			delete(w.turns, id)
		}
	}
	return list, mute
}

// claim ends the turns that never began. The lane drops it when a first sign
// of life came meanwhile.
func (w *Watch) claim(ctx context.Context, list []found) {
	for i := range list {
		f := &list[i]
		if !f.claim {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, w.Limits.Tick)
		err := w.Lanes.Claim(limited, f.session, f.vitals.Generation, f.vitals.Epoch, rouse.Failure{Class: rouse.ClassNone, Code: rouse.CodeNever,
			Source: "watch", Message: "no sign of progress within " + w.Limits.NeverStarted.String() + " of the start"})
		cancel()
		switch {
		case err == nil:
			w.Log.Warn("watch.never_started", "session", f.session, "turn", f.vitals.TurnID, "generation", f.vitals.Generation)
		case ctx.Err() == nil:
			w.Log.Info("watch.claim_dropped", "session", f.session, "generation", f.vitals.Generation, "err", rouse.SafeMessage(err))
		}
	}
}

// adopt ends turns of servers that are gone.
func (w *Watch) adopt(ctx context.Context) error {
	if w.Hold() {
		return nil
	}
	ids, err := w.Store.Orphans(ctx, w.Boot)
	if err != nil {
		return err
	}
	for _, id := range ids {
		s, err := w.Store.Session(ctx, id)
		if err != nil || s.Running == "" || w.Live(s.RunningBoot) {
			continue // ended meanwhile, or somebody's
		}
		t, err := w.Store.Turn(ctx, s.Running)
		if err != nil {
			return err
		}
		facts := Facts{Running: true}
		v := Judge(time.Now(), &facts, &w.Limits)
		v.Since = time.Now()
		if err := w.Store.Write(ctx, store.Lazy, func(tx *store.Tx) error {
			_, err := tx.PutVerdict(id, t.ID, t.Generation, &v)
			return err
		}); err != nil {
			return err
		}
		if _, err := w.Lanes.Adopt(ctx, id); err != nil {
			return err
		}
		w.Log.Warn("watch.orphaned", "session", id, "turn", t.ID)
	}
	return nil
}
