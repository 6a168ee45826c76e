package store

import (
	"context"
	"time"

	"rouse"
)

// EventFilter chooses events; the zero value is all.
type EventFilter struct{ Session, Directory string }

// Events reads at most limit events after a sequence number. cursor is where
// to go on: the last event looked at, also when it did not match.
func (s *Store) Events(ctx context.Context, after int64, f EventFilter, limit int) (events []rouse.Event, cursor int64, err error) {
	const op = "store: events"
	text, args := `SELECT seq, at, type, session, directory, turn, generation, message, part, row_version, data FROM events WHERE seq > $1`, []any{after}
	if f.Session != "" {
		text += ` AND session = $2`
		args = append(args, f.Session)
	} else if f.Directory != "" {
		text += ` AND directory = $2`
		args = append(args, f.Directory)
	}
	head := s.Head()
	args = append(args, limit)
	text += ` ORDER BY seq LIMIT ` + map[int]string{2: "$2", 3: "$3"}[len(args)]
	rows, err := s.query(ctx, text, args...)
	if err != nil {
		return nil, after, failure(op, err)
	}
	defer rows.Close()
	for rows.Next() {
		var e rouse.Event
		var at, generation int64
		var kind, data string
		if err := rows.Scan(&e.Seq, &at, &kind, &e.SessionID, &e.Directory, &e.TurnID, &generation, &e.MessageID, &e.PartID, &e.Row, &data); err != nil {
			return nil, after, failure(op, err)
		}
		e.At, e.Type, e.Generation = fromMS(at), rouse.EventType(kind), uint64(generation)
		if data != "" {
			e.Data = []byte(data)
		}
		events = append(events, e)
	}
	if err := rows.Err(); err != nil {
		return nil, after, failure(op, err)
	}
	switch n := len(events); {
	case n == limit:
		return events, events[n-1].Seq, nil
	case n > 0: // the newest may have been committed after head was read
		return events, max(events[n-1].Seq, head), nil
	default:
		return events, max(after, head), nil
	}
}

// Oldest is the sequence number of the oldest event kept; 0 when none is.
func (s *Store) Oldest(ctx context.Context) (seq int64, err error) {
	err = s.row(ctx, `SELECT COALESCE(MIN(seq), 0) FROM events`, nil, &seq)
	return seq, failure("store: oldest", err)
}

// Retention bounds what is kept.
type Retention struct {
	Events    time.Duration // default 7 days
	EventRows int64         // default 1,000,000
	Keys      time.Duration // idempotency; default 24 h
}

// closedWalls is how long after its opening a closed wall is kept.
const closedWalls = 30 * 24 * time.Hour

// Prune deletes what is older than the bounds, a piece at a time so that
// nothing else waits long, and gives free pages back. The newest event always
// stays: the sequence goes on from it.
func (s *Store) Prune(ctx context.Context, r Retention, now time.Time) error {
	const op, piece = "store: prune", 2000
	limit := s.Head() - r.EventRows
	for {
		var n int64
		err := s.Write(ctx, Lazy, func(tx *Tx) error {
			res, err := tx.c.do(`DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq < $1 AND (seq <= $2 OR at < $3) ORDER BY seq LIMIT $4)`,
				tx.seq, limit, ms(now.Add(-r.Events)), piece)
			if err != nil {
				return err
			}
			n, err = res.RowsAffected()
			return err
		})
		if err != nil {
			return failure(op, err)
		}
		if n < piece {
			break
		}
	}
	return failure(op, s.Write(ctx, Lazy, func(tx *Tx) error {
		if err := tx.do(`DELETE FROM idempotency WHERE at < $1`, ms(now.Add(-r.Keys))); err != nil {
			return err
		}
		if err := tx.do(`DELETE FROM walls WHERE state = 'closed' AND at < $1`, ms(now.Add(-closedWalls))); err != nil {
			return err
		}
		return tx.do(`PRAGMA incremental_vacuum(4096)`)
	}))
}
