package store

import (
	"context"
	"encoding/json"

	"rouse"
)

// OpenIncident stores a new incident and announces it; an older open one of
// the session is superseded.
func (tx *Tx) OpenIncident(s *rouse.Session, i *rouse.Incident) error {
	if err := tx.CloseIncidents(s, rouse.IncidentSuperseded); err != nil {
		return err
	}
	body, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if err := tx.do(`INSERT INTO incidents (id, session, turn, status, at, body) VALUES ($1,$2,$3,$4,$5,$6)`,
		i.ID, i.SessionID, i.TurnID, i.Status, ms(i.OccurredAt), string(body)); err != nil {
		return err
	}
	return tx.Emit(rouse.Event{Type: rouse.IncidentOpened, SessionID: s.ID, Directory: s.Directory, TurnID: i.TurnID, Generation: i.Generation}, i)
}

// Incident is the session's open incident; nil when there is none.
func (tx *Tx) Incident(sessionID string) (*rouse.Incident, error) {
	var i rouse.Incident
	found, err := tx.one(&i, `SELECT body FROM incidents WHERE session = $1 AND status = 'open' ORDER BY at DESC, id DESC LIMIT 1`, sessionID)
	if err != nil || !found {
		return nil, err
	}
	return &i, nil
}

// CloseIncidents moves the session's open incidents to a status and announces
// each.
func (tx *Tx) CloseIncidents(s *rouse.Session, status string) error {
	var open []rouse.Incident
	if err := tx.each(collect(&open), `SELECT body FROM incidents WHERE session = $1 AND status = 'open' ORDER BY at, id`, s.ID); err != nil {
		return err
	}
	for k := range open {
		if err := tx.closeIncident(s, &open[k], status); err != nil {
			return err
		}
	}
	return nil
}

// CloseIncident is CloseIncidents for one of them; closed is false when it was
// not open any more.
func (tx *Tx) CloseIncident(s *rouse.Session, id, status string) (closed bool, err error) {
	var i rouse.Incident
	if found, err := tx.one(&i, `SELECT body FROM incidents WHERE id = $1 AND status = 'open'`, id); err != nil || !found {
		return false, err
	}
	return true, tx.closeIncident(s, &i, status)
}

func (tx *Tx) closeIncident(s *rouse.Session, i *rouse.Incident, status string) error {
	i.Status = status
	body, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if err := tx.do(`UPDATE incidents SET status = $2, body = $3 WHERE id = $1`, i.ID, status, string(body)); err != nil {
		return err
	}
	return tx.Emit(rouse.Event{Type: rouse.IncidentClosed, SessionID: s.ID, Directory: s.Directory, TurnID: i.TurnID, Generation: i.Generation}, i)
}

// IncidentFilter chooses incidents; the zero value is all of them.
type IncidentFilter struct {
	Session string
	Status  string // open, resolved or superseded
	Limit   int    // of the newest; 0: all
}

// Incidents lists incidents, newest first.
func (s *Store) Incidents(ctx context.Context, f IncidentFilter) ([]rouse.Incident, error) {
	if f.Limit <= 0 {
		f.Limit = 1 << 30
	}
	var out []rouse.Incident
	err := s.each(ctx, collect(&out), `SELECT body FROM incidents WHERE ($1 = '' OR session = $1) AND ($2 = '' OR status = $2) ORDER BY at DESC, id DESC LIMIT $3`,
		f.Session, f.Status, f.Limit)
	return out, failure("store: incidents", err)
}

// Incident reads one; NotFound if there is none.
func (s *Store) Incident(ctx context.Context, id string) (*rouse.Incident, error) {
	const op = "store: incident"
	var i rouse.Incident
	found, err := s.one(ctx, &i, `SELECT body FROM incidents WHERE id = $1`, id)
	if err == nil && !found {
		return nil, absent(op, "Incident", id)
	}
	return &i, failure(op, err)
}
