package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"rouse"
)

// Tx is one write inside the committer's batch. It is valid during the call
// that it was given to. Its methods write a row and, where the row is public,
// the event that says so.
type Tx struct {
	c      *committer
	now    time.Time
	seq    int64
	partN  int64
	events []rouse.Event
}

// Now is the commit's time, UTC, to the millisecond.
func (tx *Tx) Now() time.Time { return tx.now }

// Seq is the sequence number of the last event written so far.
func (tx *Tx) Seq() int64 { return tx.seq }

// Emit appends an event; the sequence number, and the time if it has none, are
// given here. data is marshalled unless nil.
func (tx *Tx) Emit(e rouse.Event, data any) error {
	tx.seq++
	e.Seq = tx.seq
	if e.At.IsZero() {
		e.At = tx.now
	}
	if data != nil {
		raw, err := json.Marshal(data)
		if err != nil {
			return err
		}
		e.Data = raw
	}
	_, err := tx.c.do(`INSERT INTO events
		(seq, at, type, session, directory, turn, generation, message, part, row_version, data)
		VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11)`,
		e.Seq, ms(e.At), string(e.Type), e.SessionID, e.Directory, e.TurnID, int64(e.Generation),
		e.MessageID, e.PartID, e.Row, string(e.Data))
	tx.events = append(tx.events, e)
	return err
}

// one reads a single row whose only column is a struct as JSON; found is false
// when there is none.
func (tx *Tx) one(into any, text string, args ...any) (found bool, err error) {
	st, err := tx.c.prepare(text)
	if err != nil {
		return false, err
	}
	var body []byte
	switch err := st.QueryRow(args...).Scan(&body); {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, json.Unmarshal(body, into)
}

// each calls fn with the only column of every row.
func (tx *Tx) each(fn func(body []byte) error, text string, args ...any) error {
	st, err := tx.c.prepare(text)
	if err != nil {
		return err
	}
	rows, err := st.Query(args...)
	if err != nil {
		return err
	}
	return bodies(rows, fn)
}

func (tx *Tx) do(text string, args ...any) error {
	_, err := tx.c.do(text, args...)
	return err
}
