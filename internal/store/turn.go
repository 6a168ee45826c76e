package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"rouse"
)

// Turn reads a turn's row; NotFound if there is none.
func (tx *Tx) Turn(id string) (*rouse.Turn, error) {
	var t rouse.Turn
	found, err := tx.one(&t, `SELECT body FROM turns WHERE id = $1`, id)
	if err == nil && !found {
		return nil, absent("turn", "Turn", id)
	}
	return &t, err
}

// InsertTurn stores a new turn.
func (tx *Tx) InsertTurn(t *rouse.Turn) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return tx.do(`INSERT INTO turns (id, session, generation, state, boot, body) VALUES ($1,$2,$3,$4,$5,$6)`,
		t.ID, t.SessionID, int64(t.Generation), string(t.State), t.Boot, string(body))
}

// UpdateTurn stores a changed turn. It is silent: the transition's event
// carries what changed.
func (tx *Tx) UpdateTurn(t *rouse.Turn) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return tx.do(`UPDATE turns SET state=$2, boot=$3, body=$4 WHERE id=$1`, t.ID, string(t.State), t.Boot, string(body))
}

// NextTurn is the session's oldest queued turn, or nil. While a rescue holds
// the queue only the rescue's own turn is next.
func (tx *Tx) NextTurn(s *rouse.Session) (*rouse.Turn, error) {
	const queued = `SELECT body FROM turns WHERE session = $1 AND state = 'queued' ORDER BY generation`
	if s.Rescue == "" {
		var t rouse.Turn
		found, err := tx.one(&t, queued+` LIMIT 1`, s.ID)
		if err != nil || !found {
			return nil, err
		}
		return &t, nil
	}
	var all []rouse.Turn
	if err := tx.each(collect(&all), queued, s.ID); err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Rescue == s.Rescue {
			return &all[i], nil
		}
	}
	return nil, nil
}

// lastTurn asks for the turn that ended last in a session. A row that was
// written before rows named it has its newest one.
func lastTurn(s *rouse.Session) (query, id string) {
	if s.Last != "" {
		return `SELECT body FROM turns WHERE id = $1`, s.Last
	}
	return `SELECT body FROM turns WHERE session = $1 AND state NOT IN ('queued', 'running', 'waiting') ORDER BY generation DESC LIMIT 1`, s.ID
}

// LastTurn is the session's turn that ended last, or nil.
func (tx *Tx) LastTurn(s *rouse.Session) (*rouse.Turn, error) {
	query, id := lastTurn(s)
	var t rouse.Turn
	found, err := tx.one(&t, query, id)
	if err != nil || !found {
		return nil, err
	}
	return &t, nil
}

// Fence reads the session for a write of the lane that runs its turn. Fenced
// if this boot does not run that turn any more, or it is settled. It stands
// before every write of a lane, so of the turn only what it asks is read.
func (tx *Tx) Fence(sessionID, turnID, boot string) (*rouse.Session, error) {
	st, err := tx.c.prepare(`SELECT s.body, t.boot, t.state FROM sessions s LEFT JOIN turns t ON t.id = $2 WHERE s.id = $1`)
	if err != nil {
		return nil, err
	}
	var body []byte
	var ranBy, state sql.NullString
	switch err := st.QueryRow(sessionID, turnID).Scan(&body, &ranBy, &state); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, absent("session", "Session", sessionID)
	case err != nil:
		return nil, err
	}
	var s rouse.Session
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, err
	}
	if s.Running != turnID || s.RunningBoot != boot {
		return nil, rouse.Errorf(rouse.Fenced, "fence", "the turn is no longer this server's")
	}
	if !state.Valid {
		return nil, absent("turn", "Turn", turnID)
	}
	if ranBy.String != boot || rouse.TurnState(state.String).Settled() {
		return nil, rouse.Errorf(rouse.Fenced, "fence", "the turn is settled")
	}
	return &s, nil
}

// Turn reads a turn; NotFound if there is none.
func (s *Store) Turn(ctx context.Context, id string) (*rouse.Turn, error) {
	const op = "store: turn"
	var t rouse.Turn
	found, err := s.one(ctx, &t, `SELECT body FROM turns WHERE id = $1`, id)
	if err == nil && !found {
		return nil, absent(op, "Turn", id)
	}
	return &t, failure(op, err)
}

// LastTurn is the session's turn that ended last, or nil: also when the session
// was deleted since its row was read.
func (s *Store) LastTurn(ctx context.Context, of *rouse.Session) (*rouse.Turn, error) {
	query, id := lastTurn(of)
	var t rouse.Turn
	found, err := s.one(ctx, &t, query, id)
	if err != nil || !found {
		return nil, failure("store: last turn", err)
	}
	return &t, nil
}

// Turns lists a session's turns by generation, newest last, at most limit of
// the newest (0: all).
func (s *Store) Turns(ctx context.Context, sessionID string, limit int) ([]rouse.Turn, error) {
	if limit <= 0 {
		limit = 1 << 30
	}
	var out []rouse.Turn
	err := s.each(ctx, func(body []byte) error {
		var t rouse.Turn
		err := json.Unmarshal(body, &t)
		out = append(out, t)
		return err
	}, `SELECT body FROM (SELECT body, generation FROM turns WHERE session = $1 ORDER BY generation DESC LIMIT $2) AS newest ORDER BY generation`, sessionID, limit)
	return out, failure("store: turns", err)
}
