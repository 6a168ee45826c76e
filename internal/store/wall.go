package store

import (
	"context"
	"encoding/json"
	"time"

	"rouse"
)

// Walls reads the walls of a provider that are not closed, oldest first.
func (tx *Tx) Walls(provider string) (out []rouse.Wall, err error) {
	err = tx.each(collect(&out), `SELECT body FROM walls WHERE provider = $1 AND state <> 'closed' ORDER BY at, id`, provider)
	return out, err
}

// PutWall stores a wall. It is silent; see EmitWall.
func (tx *Tx) PutWall(w *rouse.Wall) error {
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return tx.do(`INSERT INTO walls (id, provider, account, state, at, body) VALUES ($1,$2,$3,$4,$5,$6)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body`,
		w.ID, w.Provider, w.Account, w.State, ms(w.OpenedAt), string(body))
}

// EmitWall stores a wall and announces the state it is in. s is the session
// whose turn moved it, or nil.
func (tx *Tx) EmitWall(w *rouse.Wall, s *rouse.Session) error {
	if err := tx.PutWall(w); err != nil {
		return err
	}
	e := rouse.Event{Type: rouse.WallOpened}
	switch w.State {
	case rouse.WallIsHalf:
		e.Type = rouse.WallHalfOpen
	case rouse.WallIsClosed:
		e.Type = rouse.WallClosed
	}
	if s != nil {
		e.SessionID, e.Directory, e.Generation = s.ID, s.Directory, s.Generation
	}
	return tx.Emit(e, w)
}

// freeProbes lets go of the walls that turns of a session were trying.
func (tx *Tx) freeProbes(sessionID string) error {
	var held []rouse.Wall
	err := tx.each(func(body []byte) error {
		var w rouse.Wall
		err := json.Unmarshal(body, &w)
		if w.ProbeSession == sessionID {
			held = append(held, w)
		}
		return err
	}, `SELECT body FROM walls WHERE state <> 'closed'`)
	for i := range held {
		if err == nil {
			held[i].ProbeTurn, held[i].ProbeSession = "", ""
			err = tx.PutWall(&held[i])
		}
	}
	return err
}

// Walls lists the walls that are not closed, oldest first.
func (s *Store) Walls(ctx context.Context) ([]rouse.Wall, error) {
	var out []rouse.Wall
	err := s.each(ctx, collect(&out), `SELECT body FROM walls WHERE state <> 'closed' ORDER BY at, id`)
	return out, failure("store: walls", err)
}

// AllWalls lists the newest walls, closed ones included, oldest first, at most
// limit.
func (s *Store) AllWalls(ctx context.Context, limit int) ([]rouse.Wall, error) {
	var out []rouse.Wall
	err := s.each(ctx, collect(&out), `SELECT body FROM (SELECT body, at, id FROM walls ORDER BY at DESC, id DESC LIMIT $1) AS newest ORDER BY at, id`, limit)
	return out, failure("store: walls", err)
}

// HalfOpenWalls marks the open walls whose time has come and says how many
// there were.
func (s *Store) HalfOpenWalls(ctx context.Context, now time.Time) (n int, err error) {
	const op = "store: half-open walls"
	open, err := s.Walls(ctx)
	if err != nil {
		return 0, err
	}
	due := false
	for i := range open {
		due = due || open[i].StateAt(now) != open[i].State
	}
	if !due {
		return 0, nil
	}
	err = s.Write(ctx, Promise, func(tx *Tx) error {
		n = 0
		var walls []rouse.Wall
		if err := tx.each(collect(&walls), `SELECT body FROM walls WHERE state <> 'closed' ORDER BY at, id`); err != nil {
			return err
		}
		for i := range walls {
			w := &walls[i]
			if state := w.StateAt(now); state != w.State {
				w.State = state
				n++
				if err := tx.EmitWall(w, nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return n, rouse.Wrap(op, err)
}

// CloseWall closes a wall by hand and gives it as it then is; NotFound if
// there is none. A closed one stays as it is.
func (s *Store) CloseWall(ctx context.Context, id string) (*rouse.Wall, error) {
	const op = "store: close wall"
	var w rouse.Wall
	err := s.Write(ctx, Promise, func(tx *Tx) error {
		w = rouse.Wall{}
		found, err := tx.one(&w, `SELECT body FROM walls WHERE id = $1`, id)
		switch {
		case err != nil:
			return err
		case !found:
			return absent(op, "Wall", id)
		case w.State == rouse.WallIsClosed:
			return nil
		}
		w.State, w.ClosedAt, w.ClosedBy, w.ProbeTurn, w.ProbeSession = rouse.WallIsClosed, tx.Now(), "hand", "", ""
		return tx.EmitWall(&w, nil)
	})
	if err != nil {
		return nil, rouse.Wrap(op, err)
	}
	return &w, nil
}

// Waiting lists the turns that are queued, by session and generation.
func (s *Store) Waiting(ctx context.Context) ([]rouse.Turn, error) {
	var out []rouse.Turn
	err := s.each(ctx, collect(&out), `SELECT body FROM turns WHERE state = 'queued' ORDER BY session, generation`)
	return out, failure("store: waiting turns", err)
}
