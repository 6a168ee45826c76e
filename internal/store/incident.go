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

// CloseIncidents moves the session's open incidents to a status and announces
// each.
func (tx *Tx) CloseIncidents(s *rouse.Session, status string) error {
	var open []rouse.Incident
	if err := tx.each(collect(&open), `SELECT body FROM incidents WHERE session = $1 AND status = 'open' ORDER BY at, id`, s.ID); err != nil {
		return err
	}
	for k := range open {
		i := &open[k]
		i.Status = status
		body, err := json.Marshal(i)
		if err != nil {
			return err
		}
		if err := tx.do(`UPDATE incidents SET status = $2, body = $3 WHERE id = $1`, i.ID, status, string(body)); err != nil {
			return err
		}
		if err := tx.Emit(rouse.Event{Type: rouse.IncidentClosed, SessionID: s.ID, Directory: s.Directory, TurnID: i.TurnID, Generation: i.Generation}, i); err != nil {
			return err
		}
	}
	return nil
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
