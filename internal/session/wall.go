package session

import (
	"context"
	"time"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/store"
)

// Gate decides what happens at walls: limits of providers that are known to
// stand. It is asked inside transactions and does not wait for anything.
type Gate interface {
	// Admit decides whether a turn is given to its provider. walls are those
	// of the provider that are not closed.
	Admit(now time.Time, b rouse.Bid, walls []rouse.Wall) rouse.Admission
	// Park decides when a wall that refused may be tried next.
	Park(now time.Time, w rouse.Wall) rouse.Wall
	// Changed says that walls were written.
	Changed()
}

// noGate is the gate of lanes that were given none: all is admitted.
type noGate struct{}

func (noGate) Admit(time.Time, rouse.Bid, []rouse.Wall) rouse.Admission {
	return rouse.Admission{Verdict: rouse.Admit}
}
func (noGate) Park(_ time.Time, w rouse.Wall) rouse.Wall { w.ProbeAt = w.ResetAt; return w }
func (noGate) Changed()                                  {}

// admit asks the gate about the next turn and notes which walls it tries.
func (l *Lanes) admit(tx *store.Tx, s *rouse.Session, t *rouse.Turn) (rouse.Admission, error) {
	yes := rouse.Admission{Verdict: rouse.Admit}
	if t.Kind == rouse.TurnShell {
		return yes, nil
	}
	walls, err := tx.Walls(t.Model.Provider)
	if err != nil || len(walls) == 0 {
		return yes, err
	}
	b := rouse.Bid{TurnID: t.ID, SessionID: s.ID, Model: t.Model, Unattended: t.Unattended, Behind: t.Behind, Force: t.Force}
	if s.ParentID != "" {
		parent, err := tx.Session(s.ParentID)
		if err != nil && rouse.KindOf(err) != rouse.NotFound {
			return yes, err
		}
		b.Within = err == nil && parent.Running != ""
	}
	adm := l.Gate.Admit(tx.Now(), b, walls)
	for i := range walls {
		w := &walls[i]
		for _, id := range adm.Probes {
			if id != w.ID {
				continue
			}
			w.ProbeTurn, w.ProbeSession = t.ID, s.ID
			put := func() error { return tx.PutWall(w) }
			if state := w.StateAt(tx.Now()); state != w.State {
				w.State = state
				put = func() error { return tx.EmitWall(w, s) }
			}
			if err := put(); err != nil {
				return yes, err
			}
		}
	}
	return adm, nil
}

// refuse ends the next turn on a wall, without asking the provider: the wall is
// being tried by somebody else, or stands.
func (ln *lane) refuse(turnID string, w *rouse.Wall) {
	var news wallNews
	crash.At(crash.SettleBefore)
	err := ln.write(store.Promise, func(tx *store.Tx) error {
		s, err := tx.Session(ln.id)
		if err != nil || s.Running != "" {
			return err
		}
		t, err := tx.NextTurn(s)
		if err != nil || t == nil || t.ID != turnID {
			return err
		}
		if err := ln.start(tx, s, t); err != nil {
			return err
		}
		news, err = ln.l.finishTurn(tx, s, t, end{state: rouse.TurnFailed, finish: "error", failure: refusal(w, t), evidence: "a known wall"}, rest{})
		return err
	})
	crash.At(crash.SettleAfter)
	if err != nil {
		if rouse.KindOf(err) != rouse.NotFound {
			ln.storeFailed(err)
		}
		return
	}
	ln.l.Log.Info("turn.refused", "session", ln.id, "turn", turnID, "wall", w.ID, "provider", w.Provider, "class", w.Class)
	ln.l.waits.wake(turnID)
	ln.l.tell(news)
	ln.box.put(kick{}) // others may wait behind it
}

// refusal is the failure of a turn that a wall refused.
func refusal(w *rouse.Wall, t *rouse.Turn) *rouse.Failure {
	said := "not asked again"
	if w.Message != "" { // "resets in 2 hours" counts from then
		said += "; it said at " + w.RefusedAt.UTC().Format("2006-01-02 15:04 UTC") + ": " + w.Message
	}
	return &rouse.Failure{Class: w.Class, Code: rouse.CodeOf(w.Class), Provider: w.Provider, Model: t.Model.Model, Message: said,
		ResetAt: w.ResetAt, ResetSource: w.Source, Confidence: w.Confidence, LimitName: w.LimitName, LimitModel: w.Model, Source: rouse.SourceWall}
}

// wallNews is what the end of a turn did to walls.
type wallNews struct {
	opened *rouse.Wall
	freed  bool // one closed, or may be tried by the next
}

// moveWalls opens, parks and closes walls by a settled turn, in its
// transaction.
func (l *Lanes) moveWalls(tx *store.Tx, s *rouse.Session, t *rouse.Turn) (news wallNews, err error) {
	fresh, refused := rouse.WallOf(t, tx.Now())
	provider := t.Model.Provider
	if refused {
		provider = fresh.Provider
	}
	walls, err := tx.Walls(provider)
	if err != nil {
		return news, err
	}
	parked := false
	for i := range walls {
		w := &walls[i]
		tried := w.ProbeTurn == t.ID
		if tried {
			w.ProbeTurn, w.ProbeSession = "", ""
		}
		switch {
		case w.FallsTo(t):
			w.State, w.ClosedAt, w.ClosedBy, w.ProbeTurn, w.ProbeSession = rouse.WallIsClosed, tx.Now(), t.ID, "", ""
			err, news.freed = tx.EmitWall(w, s), true
		case refused && w.Same(&fresh):
			fresh.ID, fresh.OpenedAt, fresh.Refusals, parked = w.ID, w.OpenedAt, w.Refusals, true
			if t.Started.After(w.RefusedAt) { // else it was under way when the wall was found
				fresh.Refusals++
			}
			fresh.ProbeTurn, fresh.ProbeSession = w.ProbeTurn, w.ProbeSession
		case refused && tried && w.StateAt(tx.Now()) == rouse.WallIsHalf: // another limit took its place
			w.State, w.ClosedAt, w.ClosedBy = rouse.WallIsClosed, tx.Now(), "superseded"
			err = tx.EmitWall(w, s)
		case tried:
			err, news.freed = tx.PutWall(w), true
		}
		if err != nil {
			return news, err
		}
	}
	if !refused {
		return news, nil
	}
	if !parked {
		fresh.ID = rouse.NewID(rouse.WallPrefix, tx.Now())
	}
	fresh = l.Gate.Park(tx.Now(), fresh)
	news.opened = &fresh
	return news, tx.EmitWall(&fresh, s)
}

// moveIncidents opens an incident for a turn that ended badly, and resolves the
// open one of a session whose turn completed.
func moveIncidents(tx *store.Tx, s *rouse.Session, t *rouse.Turn) error {
	if t.State == rouse.TurnCompleted {
		return tx.CloseIncidents(s, rouse.IncidentResolved)
	}
	i, ok := rouse.IncidentOf(t, tx.Now())
	if !ok {
		return nil
	}
	i.ID = rouse.NewID(rouse.IncidentPrefix, tx.Now())
	return tx.OpenIncident(s, &i)
}

// tell passes on what a commit did to walls.
func (l *Lanes) tell(news wallNews) {
	if w := news.opened; w != nil {
		reset := "unknown"
		if !w.ResetAt.IsZero() {
			reset = w.ResetAt.UTC().Format(time.RFC3339)
		}
		l.Log.Warn("turn.wall", "provider", w.Provider, "class", w.Class, "reset", reset, "limit", w.LimitName, "model", w.Model,
			"confidence", w.Confidence, "wall", w.ID, "turn", w.OpenedBy, "refusals", w.Refusals)
		l.Gate.Changed()
	}
	if news.freed {
		l.Gate.Changed()
		l.KickQueued()
	}
}

// KickQueued makes every session with waiting prompts look again whether one
// may start: a wall half-opened or fell.
func (l *Lanes) KickQueued() {
	busy, err := l.Store.BusySessions(l.ctx)
	if err != nil {
		if l.ctx.Err() == nil {
			l.Log.Warn("session.kick", "err", err)
		}
		return
	}
	for _, id := range busy {
		l.post(id, kick{})
	}
}

// CloseWall closes a wall by hand. NotFound if there is none.
func (l *Lanes) CloseWall(ctx context.Context, id string) (*rouse.Wall, error) {
	w, err := l.Store.CloseWall(ctx, id)
	if err != nil {
		return nil, rouse.Wrap("session: close wall", err)
	}
	l.Log.Info("wall.closed", "wall", w.ID, "provider", w.Provider, "by", w.ClosedBy)
	l.tell(wallNews{freed: true})
	return w, nil
}

// ModelOf is the model that the first prompt of a new session would use, whose
// model is the named one. Zero where there is none, or the agent is unknown.
func (l *Lanes) ModelOf(agent string, named rouse.ModelRef) rouse.ModelRef {
	a, err := l.Agents.FindAgent(agent)
	if err != nil {
		return rouse.ModelRef{}
	}
	model, err := a.named(named)
	if err != nil {
		return rouse.ModelRef{}
	}
	return l.usual(a, model)
}
