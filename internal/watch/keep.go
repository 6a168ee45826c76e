package watch

import (
	"context"
	"slices"
	"time"

	"rouse"
	"rouse/internal/store"
)

// chunk is how many sessions share a transaction.
const chunk = 64

// write keeps changed verdicts and due notices, a piece at a time. What could
// not be stored stays to be done.
func (w *Watch) write(ctx context.Context, list []found) error {
	var todo []found
	for i := range list {
		if list[i].changed || list[i].notice {
			todo = append(todo, list[i])
		}
	}
	for len(todo) > 0 {
		n := min(chunk, len(todo))
		if err := w.keep(ctx, todo[:n]); err != nil {
			return err
		}
		todo = todo[n:]
	}
	return nil
}

func (w *Watch) keep(ctx context.Context, list []found) error {
	now := time.Now().UTC()
	told, first := make([]bool, len(list)), make([]bool, len(list))
	err := w.Store.Write(ctx, store.Lazy, func(tx *store.Tx) error {
		for i := range list {
			f := &list[i]
			v := &f.vitals
			if f.changed {
				if _, err := tx.PutVerdict(f.session, v.TurnID, v.Generation, &f.verdict); err != nil {
					return err
				}
			}
			if f.notice {
				var err error
				n := rouse.Notice{SessionID: f.session, TurnID: v.TurnID, Generation: v.Generation, Code: rouse.StillWaiting, Tool: toolName(v), At: now}
				if told[i], first[i], err = tx.PutNotice(&n); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return rouse.Wrap("watch: keep", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range list {
		f := &list[i]
		s := w.turns[f.session]
		if s == nil || s.turn != f.vitals.TurnID {
			continue
		}
		if f.changed {
			s.code = f.verdict.Code
		}
		if told[i] { // only now is it spent
			s.told, s.shown = now, true
		}
		if first[i] {
			w.Log.Info("watch.silent", "session", f.session, "turn", f.vitals.TurnID, "generation", f.vitals.Generation,
				"silence_ms", f.verdict.Facts.SilenceMS, "verdict", f.verdict.Code)
		}
	}
	return nil
}

// shows says that a notice is to be seen somewhere.
func (w *Watch) shows() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.turns {
		if s.shown {
			return true
		}
	}
	return false
}

// peek looks at the sessions that show a notice: it goes when the agent moves
// or a person is asked.
func (w *Watch) peek(ctx context.Context) error {
	w.mu.Lock()
	type shown struct {
		session, turn string
		generation    uint64
	}
	var moved []shown
	for id, s := range w.turns {
		if !s.shown {
			continue
		}
		v, ok := w.Lanes.Vitals(id)
		if !ok || v.TurnID != s.turn {
			s.shown = false // its end hid it
		} else if v.LastGenuine.After(s.told) || v.Waiting != nil {
			moved = append(moved, shown{id, s.turn, s.generation})
		}
	}
	w.mu.Unlock()
	for _, m := range moved {
		err := w.Store.Write(ctx, store.Lazy, func(tx *store.Tx) error {
			s, err := tx.Session(m.session)
			if err != nil {
				return err
			}
			return tx.HideNotice(s, m.generation)
		})
		if err != nil && rouse.KindOf(err) != rouse.NotFound {
			return rouse.Wrap("watch: hide", err)
		}
		w.mu.Lock()
		if s := w.turns[m.session]; s != nil && s.turn == m.turn {
			s.shown = false
		}
		w.mu.Unlock()
	}
	return nil
}

// Settled is what is made of a session whose last turn ended so, with the walls
// of its provider.
func Settled(now time.Time, t *rouse.Turn, walls []rouse.Wall) rouse.Verdict {
	return settled(&Facts{Outcome: t.State, Ended: t.Ended, Failure: t.Failure, Wall: Met(now, t, walls)})
}

// rewall looks at the sessions that wait for a wall: it may have gone. Thousands
// can wait for one, so that only those that do not any more become a write.
func (w *Watch) rewall(ctx context.Context) error {
	waiting, err := w.Store.Judged(ctx, rouse.WaitingQuota)
	if err != nil || len(waiting) == 0 {
		return err
	}
	walls, err := w.Store.Walls(ctx)
	if err != nil {
		return err
	}
	var free []string
	for _, id := range waiting {
		waits, err := w.waits(ctx, id, walls)
		if err != nil {
			return rouse.Wrap("watch: rewall", err)
		}
		if !waits {
			free = append(free, id)
		}
	}
	for some := range slices.Chunk(free, chunk) {
		if err := w.Store.Write(ctx, store.Lazy, func(tx *store.Tx) error {
			for _, id := range some {
				if err := w.again(tx, id); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return rouse.Wrap("watch: rewall", err)
		}
	}
	return nil
}

// waits says that a session in which nothing runs still waits for one of these
// walls.
func (w *Watch) waits(ctx context.Context, id string, walls []rouse.Wall) (bool, error) {
	s, err := w.Store.Session(ctx, id)
	if err == nil {
		var t *rouse.Turn
		if t, err = w.Store.LastTurn(ctx, s); t != nil {
			return Met(time.Now(), t, walls) != nil, err
		}
	}
	if rouse.KindOf(err) == rouse.NotFound {
		err = nil // deleted
	}
	return false, err
}

// again keeps the verdict on a session in which nothing runs, if its code is
// another one than before.
func (w *Watch) again(tx *store.Tx, id string) error {
	s, err := tx.Session(id)
	if err != nil || s.Running != "" {
		if rouse.KindOf(err) == rouse.NotFound {
			err = nil // deleted
		}
		return err
	}
	t, err := tx.LastTurn(s)
	if err != nil || t == nil {
		return err
	}
	walls, err := tx.Walls(t.Model.Provider)
	if err != nil {
		return err
	}
	v := Settled(tx.Now(), t, walls)
	if was, err := tx.VerdictCode(id); err != nil || was == v.Code {
		return err
	}
	_, err = tx.PutVerdict(id, t.ID, t.Generation, &v)
	return err
}

// Look is one session as it is now.
type Look struct {
	Verdict rouse.Verdict // without a code when there is nothing to say
	// Vitals of the running turn; nil when none runs here.
	Vitals *rouse.Vitals
	// Samples are at most two: one from before and one of now.
	Samples []rouse.Sample
}

// Look judges a session now. last is the turn that ended last and may be nil;
// walls are those that stand. What only a tick may say
// for the first time is not said here before one did.
func (w *Watch) Look(now time.Time, s *rouse.Session, last *rouse.Turn, walls []rouse.Wall) Look {
	f := Facts{Running: s.Running != "", Live: s.RunningBoot == w.Boot || w.Live(s.RunningBoot), WaitingFor: s.WaitingFor, Outcome: s.Outcome}
	if last != nil && last.State.Settled() {
		f.Ended, f.Failure, f.Wall = last.Ended, last.Failure, Met(now, last, walls)
	}
	v, here := w.Lanes.Vitals(s.ID)
	if !here || v.TurnID != s.Running {
		found := Judge(now, &f, &w.Limits)
		if found.Code == "" && f.Running && s.RunningBoot == w.Boot {
			found = verdict(rouse.Working, now) // dispatched this moment
		}
		return Look{Verdict: found}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f.Vitals, f.Late = &v, true
	out := Look{Vitals: &v}
	if t := w.turns[s.ID]; t != nil && t.turn == v.TurnID {
		f = t.facts(now, &v, &w.Limits, &w.gaps, true)
		older := f.Before
		if older == nil {
			older = t.oldest()
		}
		if older != nil {
			out.Samples = append(out.Samples, *older)
		}
	}
	out.Samples = append(out.Samples, sampleOf(now, &v))
	out.Verdict = Judge(now, &f, &w.Limits)
	return out
}
