package recovery

import (
	"context"
	"fmt"
	"time"

	"rouse"
	"rouse/internal/store"
)

// Request is a wish to rescue.
type Request struct {
	SessionID    string
	By           string // User, or the asking session's id
	Reason       string
	Reassignment string
	Facts        []string
	Model        rouse.ModelRef // zero: the session's own
	Force        bool           // also when the turn moves or waits, or a client waits for it
}

// errStoreDown: a rescue that cannot be stored is not begun, by force neither.
var errStoreDown = rouse.Errorf(rouse.Unavailable, "rescue", "the database refuses writes, so nothing can be rescued until it takes them again: `rouse doctor` looks at its folder")

// BudgetSpent is the refusal of a rescue whose session had too many; the next
// one is allowed at Again. It is stored with an incident for a person, unless
// one such is open.
type BudgetSpent struct {
	Rescue rouse.Rescue
	Again  time.Time
}

// Error says it.
func (e *BudgetSpent) Error() string {
	return "this session was rescued 3 times within an hour: a person has to look at it"
}

// Rescue checks authority and budget, stores the rescue, which holds the
// session's queue, and starts it. Errors: NotFound, Denied, Conflict (another
// is under way; paused; a client is attached), Unavailable (nothing can be
// stored), *BudgetSpent.
func (m *Medic) Rescue(ctx context.Context, in Request) (*rouse.Rescue, error) {
	const op = "recovery: rescue"
	now := time.Now().UTC().Truncate(time.Millisecond)
	r := &rouse.Rescue{ID: rouse.NewID(rouse.RescuePrefix, now), SessionID: in.SessionID, By: in.By, Reason: rouse.Clip(in.Reason, 500),
		Reassignment: rouse.Clip(in.Reassignment, 8000), Given: in.Facts, Model: in.Model, Force: in.Force, Clause: Clause, Created: now}
	if m.store.Refusing() {
		return nil, rouse.Wrap(op, errStoreDown)
	}
	var spent *BudgetSpent
	err := m.store.Write(ctx, store.Promise, func(tx *store.Tx) error {
		spent = nil
		s, err := tx.Session(in.SessionID)
		if err != nil {
			return err
		}
		if err := m.admit(s, in); err != nil {
			return err
		}
		past, err := tx.Rescues(s.ID, now.Add(-budgetWindow))
		if err != nil {
			return err
		}
		if again, over := Spent(past, now); over {
			spent = &BudgetSpent{*r, again}
			return refuse(tx, s, &spent.Rescue)
		}
		row := *r
		row.Status, row.Aborted, row.Last = rouse.RescueRunning, s.Running, s.Outcome
		if v, ok := m.sessions.Vitals(s.ID); ok {
			row.Silence = v.Silence(time.Now(), m.grace) // by the clock that nobody sets
		}
		row.Stages = stages(row.Stages, rouse.StageAuthorized, now, true, in.By)
		row.Stages = stages(row.Stages, rouse.StageWritten, now, true, "")
		if err := tx.InsertRescue(s, &row); err != nil {
			return err
		}
		*r = row
		return nil
	})
	if err != nil {
		return nil, rouse.Wrap(op, err)
	}
	if spent != nil {
		m.sessions.Kick(in.SessionID)
		return nil, spent
	}
	m.ask(r.ID)
	return r, nil
}

// refuse stores a rescue beyond the budget and tells a person; one that is told
// already is not told again by every further try.
func refuse(tx *store.Tx, s *rouse.Session, r *rouse.Rescue) error {
	r.Status, r.Ended = rouse.RescuePerson, r.Created
	r.Stages = stages(r.Stages, rouse.StageAuthorized, r.Created, false, "3 rescues within an hour")
	if open, err := tx.Incident(s.ID); err != nil || open != nil && open.Kind == rouse.CodePerson {
		return err
	}
	if err := tx.InsertRescue(s, r); err != nil {
		return err
	}
	if err := tx.UpdateRescue(s, r); err != nil { // it holds nothing
		return err
	}
	return tx.OpenIncident(s, needsPerson(s, r))
}

// needsPerson is what a person sees of a session that was rescued too often.
func needsPerson(s *rouse.Session, r *rouse.Rescue) *rouse.Incident {
	return &rouse.Incident{ID: rouse.NewID(rouse.IncidentPrefix, r.Created), SessionID: s.ID, TurnID: s.Running, Generation: s.Generation,
		Kind: rouse.CodePerson, Source: "watch", Provider: s.Model.Provider, Model: s.Model.Model, OccurredAt: r.Created, Status: rouse.IncidentOpen,
		Message: "rescued 3 times within an hour, and again it was asked for: look at the session"}
}

// admit is what must hold of the session.
func (m *Medic) admit(s *rouse.Session, in Request) error {
	if err := Authorized(s, in.By); err != nil {
		return err
	}
	switch {
	case s.Rescue != "":
		return rouse.Errorf(rouse.Conflict, "rescue", "rescue %s of this session is under way: wait for its end", s.Rescue)
	case s.Pause:
		return rouse.Errorf(rouse.Conflict, "rescue", "session %s is paused: resume it first", s.ID)
	case s.Running == "" || in.Force:
		return nil
	}
	if err := m.hopeful(s.ID); err != nil {
		return err
	}
	if m.sessions.Attached(s.Running) {
		return &rouse.Error{Kind: rouse.Conflict, Op: "rescue", Field: "client_attached",
			Msg: "a client is attached and waits for this turn's answer: leave it to its user, or force it (--force)"}
	}
	return nil
}

// hopeful is why the running turn is not to be rescued without force: it was not
// silent long enough, or says itself what it waits for. Nil when it is.
func (m *Medic) hopeful(sessionID string) error {
	v, ok := m.sessions.Vitals(sessionID)
	now := time.Now()
	refuse := func(field, format string, args ...any) error {
		return &rouse.Error{Kind: rouse.Conflict, Op: "rescue", Field: field, Msg: fmt.Sprintf(format, args...) + ", or force it (--force)"}
	}
	switch {
	case !ok:
		return nil
	case v.StoreDown:
		return errStoreDown
	case v.Waiting != nil:
		return refuse("waiting", "this turn waits for an answer to a %s: answer it, abort the turn", v.Waiting.For)
	case v.Retry != nil && now.Before(v.Retry.Next.Add(m.grace)):
		return refuse("retrying", "this turn waits for its next attempt, at %s: let it, abort the turn", v.Retry.Next.UTC().Format("15:04:05 UTC"))
	case v.Silence(now, m.grace) < m.patience:
		return refuse("working", "this turn made progress a moment ago, and a rescue would end work: look at its health")
	}
	return nil
}
