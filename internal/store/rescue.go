package store

import (
	"context"
	"encoding/json"
	"time"

	"rouse"
)

// InsertRescue stores a new rescue and holds the session's queue. Conflict if
// another one holds it.
func (tx *Tx) InsertRescue(s *rouse.Session, r *rouse.Rescue) error {
	if s.Rescue != "" && s.Rescue != r.ID {
		return rouse.Errorf(rouse.Conflict, "insert rescue", "rescue %s of this session is under way: wait for its end", s.Rescue)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := tx.do(`INSERT INTO rescues (id, session, status, created, body) VALUES ($1,$2,$3,$4,$5)`,
		r.ID, r.SessionID, string(r.Status), ms(r.Created), string(body)); err != nil {
		return err
	}
	s.Rescue = r.ID
	if err := tx.KeepSession(s); err != nil {
		return err
	}
	return tx.rescueEvent(s, r)
}

// UpdateRescue stores how far a rescue is and announces it. One that is over
// releases the queue.
func (tx *Tx) UpdateRescue(s *rouse.Session, r *rouse.Rescue) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := tx.do(`UPDATE rescues SET status=$2, body=$3 WHERE id=$1`, r.ID, string(r.Status), string(body)); err != nil {
		return err
	}
	if r.Status != rouse.RescueRunning && s.Rescue == r.ID {
		s.Rescue = ""
		if err := tx.KeepSession(s); err != nil {
			return err
		}
	}
	return tx.rescueEvent(s, r)
}

func (tx *Tx) rescueEvent(s *rouse.Session, r *rouse.Rescue) error {
	return tx.Emit(rouse.Event{Type: rouse.RescueStaged, SessionID: s.ID, Directory: s.Directory, TurnID: r.TurnID, Generation: r.Generation}, r)
}

// Rescue reads a rescue; NotFound if there is none.
func (s *Store) Rescue(ctx context.Context, id string) (*rouse.Rescue, error) {
	const op = "store: rescue"
	var r rouse.Rescue
	found, err := s.one(ctx, &r, `SELECT body FROM rescues WHERE id = $1`, id)
	if err == nil && !found {
		return nil, absent(op, "Rescue", id)
	}
	return &r, failure(op, err)
}

const rescuesSince = `SELECT body FROM rescues WHERE session = $1 AND created >= $2 ORDER BY created`

// Rescues lists a session's rescues since a time, oldest first.
func (tx *Tx) Rescues(sessionID string, since time.Time) (out []rouse.Rescue, err error) {
	err = tx.each(collect(&out), rescuesSince, sessionID, ms(since))
	return out, err
}

// RunningRescues lists those that are under way: what a start goes on with.
func (s *Store) RunningRescues(ctx context.Context) ([]rouse.Rescue, error) {
	var out []rouse.Rescue
	err := s.each(ctx, collect(&out), `SELECT body FROM rescues WHERE status = 'running' ORDER BY id`)
	return out, failure("store: running rescues", err)
}
