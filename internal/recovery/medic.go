package recovery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/store"
)

// Sessions is what a rescue asks of the session verb.
type Sessions interface {
	// Abort ends the running turn and returns when it is settled.
	Abort(ctx context.Context, sessionID string) error
	// Wake accepts the rescue's prompt, once for its key.
	Wake(ctx context.Context, r *rouse.Rescue, key, text string) (turnID string, generation uint64, model rouse.ModelRef, err error)
	// Generates waits for the turn's first progress, or its end; kind is ""
	// when neither came in time. A turn that ended otherwise than completed is
	// an error that says how.
	Generates(ctx context.Context, sessionID, turnID string, wait time.Duration) (kind string, err error)
	// Vitals are those of the running turn; ok is false when none runs here.
	Vitals(sessionID string) (v rouse.Vitals, ok bool)
	// Attached says that a client waits for the turn's answer on its connection.
	Attached(turnID string) bool
	// Kick looks for queued prompts.
	Kick(sessionID string)
}

// Medic carries rescues out.
type Medic struct {
	store    *store.Store
	sessions Sessions
	log      *slog.Logger
	verify   time.Duration
	patience time.Duration
	grace    time.Duration // of an overdue retry

	mu    sync.Mutex
	asked []string
	bell  chan struct{}
}

const tryAgain = time.Second

// VerifyWait is how long a woken session has to show progress.
const VerifyWait = 60 * time.Second

// NewMedic makes a medic whose patience with silent turns is divided by speed
// (0 and 1: Patience), as the watch's is in a drill.
func NewMedic(st *store.Store, sessions Sessions, log *slog.Logger, speed float64) *Medic {
	faster := func(d time.Duration) time.Duration { return time.Duration(float64(d) / max(1, speed)) }
	return &Medic{store: st, sessions: sessions, log: log, verify: VerifyWait, patience: faster(Patience), grace: faster(rouse.RetryGrace),
		bell: make(chan struct{}, 1)}
}

func stages(list []rouse.RescueStage, name string, at time.Time, ok bool, detail string) []rouse.RescueStage {
	return append(list, rouse.RescueStage{Name: name, At: at, OK: ok, Detail: rouse.Clip(detail, 500)})
}

func (m *Medic) ask(id string) {
	m.mu.Lock()
	m.asked = append(m.asked, id)
	m.mu.Unlock()
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

func (m *Medic) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := m.asked
	m.asked = nil
	return ids
}

// Serve goes on with what a dead server left and carries out what is asked,
// until ctx ends; a rescue that is cut off is continued by the next start.
func (m *Medic) Serve(ctx context.Context) error {
	left, err := m.store.RunningRescues(ctx)
	if err != nil && ctx.Err() == nil {
		return rouse.Wrap("recovery: serve", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	begun := map[string]bool{} // one that was asked for while the list was read is in both
	begin := func(id string) {
		if !begun[id] {
			begun[id] = true
			wg.Go(func() { m.run(ctx, id) })
		}
	}
	for i := range left {
		begin(left[i].ID)
	}
	for {
		select {
		case <-m.bell:
			for _, id := range m.take() {
				begin(id)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// run takes a rescue to its end. While the database refuses, it waits and tries
// the same step again: each step happens once under its key.
func (m *Medic) run(ctx context.Context, id string) {
	for ctx.Err() == nil {
		r, err := m.store.Rescue(ctx, id)
		if err == nil {
			step := Next(r)
			if step == DoEnd {
				m.sessions.Kick(r.SessionID)
				return
			}
			if err = m.do(ctx, r, step); err != nil && rouse.KindOf(err) != rouse.Unavailable {
				m.log.Warn("recovery.failed", "rescue", id, "session", r.SessionID, "step", step, "err", err)
				err = m.fail(ctx, r, step, err)
			}
		}
		switch {
		case err == nil:
		case rouse.KindOf(err) == rouse.NotFound: // the session was deleted, and its rescues with it
			return
		default:
			m.pause(ctx)
		}
	}
}

// pause is between two tries of a step that could not be stored.
func (m *Medic) pause(ctx context.Context) {
	t := time.NewTimer(tryAgain)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// do takes one step and stores the stage that came of it.
func (m *Medic) do(ctx context.Context, r *rouse.Rescue, step Step) error {
	switch step {
	case DoAbort:
		if err := m.sessions.Abort(ctx, r.SessionID); err != nil {
			return err
		}
		what := r.Aborted
		if what == "" {
			what = "nothing ran"
		}
		return m.reached(ctx, r, rouse.StageAborted, what)
	case DoVerify:
		s, err := m.store.Session(ctx, r.SessionID)
		if err != nil {
			return err
		}
		if s.Running != "" {
			return rouse.Errorf(rouse.Conflict, "verify", "the session is not idle after the abort")
		}
		return m.reached(ctx, r, rouse.StageIdle, "")
	case DoPrompt:
		return m.wake(ctx, r)
	default:
		kind, err := m.sessions.Generates(ctx, r.SessionID, r.TurnID, m.verify)
		if err != nil {
			return err
		}
		if kind == "" {
			return rouse.Errorf(rouse.Upstream, "verify", "the woken turn shows no progress within %s", m.verify)
		}
		r.Status = rouse.RescueDone
		return m.reached(ctx, r, rouse.StageGenerating, kind)
	}
}

func (m *Medic) wake(ctx context.Context, r *rouse.Rescue) error {
	s, err := m.store.Session(ctx, r.SessionID)
	if err != nil {
		return err
	}
	if r.Facts, err = gather(ctx, s, m.store, r); err != nil {
		return err
	}
	turn, generation, model, err := m.sessions.Wake(ctx, r, "rescue:"+r.ID+":prompt", Text(r))
	if err != nil {
		return err
	}
	r.TurnID, r.Generation, r.Model = turn, generation, model
	return m.reached(ctx, r, rouse.StagePrompted, turn)
}

// reached stores a stage.
func (m *Medic) reached(ctx context.Context, r *rouse.Rescue, stage, detail string) error {
	return m.put(ctx, r, stage, true, detail)
}

// fail ends a rescue; the queue is released.
func (m *Medic) fail(ctx context.Context, r *rouse.Rescue, step Step, cause error) error {
	why := rouse.SafeMessage(cause)
	if why == "" {
		why = "something went wrong inside the server"
	}
	stage := map[Step]string{DoAbort: rouse.StageAborted, DoVerify: rouse.StageIdle, DoPrompt: rouse.StagePrompted, DoWatch: rouse.StageGenerating}[step]
	r.Status = rouse.RescueFailed
	return m.put(ctx, r, stage, false, why)
}

func (m *Medic) put(ctx context.Context, r *rouse.Rescue, stage string, ok bool, detail string) error {
	crash.At(crash.RescueBefore)
	defer crash.At(crash.RescueAfter)
	return m.store.Write(ctx, store.Promise, func(tx *store.Tx) error {
		s, err := tx.Session(r.SessionID)
		if err != nil {
			return err
		}
		next := *r
		next.Stages = stages(append([]rouse.RescueStage(nil), r.Stages...), stage, tx.Now(), ok, detail)
		if next.Status != rouse.RescueRunning {
			next.Ended = tx.Now()
		}
		if err := tx.UpdateRescue(s, &next); err != nil {
			return err
		}
		*r = next
		return nil
	})
}
