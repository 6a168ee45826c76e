package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"rouse"
)

// PutMessage inserts or replaces a message and announces it. It says whether
// the message is new, so that the caller counts it.
func (tx *Tx) PutMessage(s *rouse.Session, m *rouse.Message) (added bool, err error) {
	m.Row++
	body, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	summary := 0
	if m.Summary && m.Error == nil && !m.Completed.IsZero() {
		summary = 1
	}
	if m.Row == 1 {
		err = tx.do(`INSERT INTO messages (id, session, created, generation, summary, body) VALUES ($1,$2,$3,$4,$5,$6)`,
			m.ID, m.SessionID, ms(m.Created), int64(m.Generation), summary, string(body))
	} else {
		err = tx.do(`UPDATE messages SET body=$2, summary=$3 WHERE id=$1`, m.ID, string(body), summary)
	}
	if err != nil {
		return false, err
	}
	row := *m
	return m.Row == 1, tx.Emit(rouse.Event{Type: rouse.MessageUpdated, SessionID: s.ID, Directory: s.Directory, TurnID: m.TurnID,
		Generation: m.Generation, MessageID: m.ID, Row: m.Row, Body: &row}, nil)
}

// Message reads a message's row; NotFound if the session has none of that id.
func (tx *Tx) Message(sessionID, id string) (*rouse.Message, error) {
	var m rouse.Message
	found, err := tx.one(&m, `SELECT body FROM messages WHERE id = $1 AND session = $2`, id, sessionID)
	if err == nil && !found {
		return nil, absent("message", "Message", id)
	}
	return &m, err
}

// RemoveMessage deletes a message with its parts.
func (tx *Tx) RemoveMessage(s *rouse.Session, m *rouse.Message) error {
	if err := tx.do(`DELETE FROM parts WHERE message = $1`, m.ID); err != nil {
		return err
	}
	if err := tx.do(`DELETE FROM messages WHERE id = $1`, m.ID); err != nil {
		return err
	}
	return tx.Emit(rouse.Event{Type: rouse.MessageRemoved, SessionID: s.ID, Directory: s.Directory, Generation: m.Generation, MessageID: m.ID}, nil)
}

// MessageCursor is a place in a transcript.
type MessageCursor struct {
	ID   string
	Time int64 // creation, Unix ms
}

// CursorOf is the place of a message.
func CursorOf(m *rouse.Message) MessageCursor { return MessageCursor{m.ID, ms(m.Created)} }

// MessageQuery chooses a page of a transcript. At most one of Before and After
// is set.
type MessageQuery struct {
	SessionID string
	Limit     int // 0: all
	Before    *MessageCursor
	After     *MessageCursor
}

// MessagePage is ascending by time, then id. Without After it is the newest
// Limit messages (older than Before); with After the oldest Limit newer ones.
type MessagePage struct {
	Entries []rouse.Entry
	More    bool           // there are more in the direction of paging
	Next    *MessageCursor // where the next page starts; nil when !More
}

// Messages reads a page. Its cost depends on the page, not the transcript.
func (s *Store) Messages(ctx context.Context, q MessageQuery) (MessagePage, error) {
	const op = "store: messages"
	text, args, desc := `SELECT body FROM messages WHERE session = $1`, []any{q.SessionID}, true
	switch {
	case q.Before != nil:
		text += ` AND (created < $2 OR (created = $2 AND id < $3))`
		args = append(args, q.Before.Time, q.Before.ID)
	case q.After != nil:
		text += ` AND (created > $2 OR (created = $2 AND id > $3))`
		args, desc = append(args, q.After.Time, q.After.ID), false
	}
	text += ` ORDER BY created, id`
	if desc {
		text = text[:len(text)-len(`created, id`)] + `created DESC, id DESC`
	}
	if q.Limit > 0 {
		args = append(args, q.Limit+1)
		text += fmt.Sprintf(` LIMIT $%d`, len(args))
	}
	var page MessagePage
	err := s.each(ctx, func(body []byte) error {
		var m rouse.Message
		err := json.Unmarshal(body, &m)
		page.Entries = append(page.Entries, rouse.Entry{Message: m})
		return err
	}, text, args...)
	if err != nil {
		return page, failure(op, err)
	}
	if q.Limit > 0 && len(page.Entries) > q.Limit {
		page.Entries, page.More = page.Entries[:q.Limit], true
		c := CursorOf(&page.Entries[q.Limit-1].Message)
		page.Next = &c
	}
	if desc {
		slices.Reverse(page.Entries)
	}
	return page, failure(op, s.fillParts(ctx, page.Entries))
}

// fillParts reads the parts of many messages, in few queries.
func (s *Store) fillParts(ctx context.Context, entries []rouse.Entry) error {
	const group = 256
	at := make(map[string]int, len(entries))
	for i := range entries {
		at[entries[i].Message.ID] = i
	}
	for start := 0; start < len(entries); start += group {
		some := entries[start:min(start+group, len(entries))]
		args := make([]any, 0, group)
		for i := range some {
			args = append(args, some[i].Message.ID)
		}
		n := len(args)
		if n > 1 { // two statements for all sizes: one id, or a full group
			for len(args) < group {
				args = append(args, "")
			}
			n = group
		}
		err := s.each(ctx, func(body []byte) error {
			var p rouse.Part
			err := json.Unmarshal(body, &p)
			if i, ok := at[p.MessageID]; ok {
				entries[i].Parts = append(entries[i].Parts, p)
			}
			return err
		}, `SELECT body FROM parts WHERE message IN (`+placeholders(n)+`) ORDER BY n`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Message reads a message with its parts; NotFound if the session has none of
// that id.
func (s *Store) Message(ctx context.Context, sessionID, id string) (*rouse.Entry, error) {
	const op = "store: message"
	e := make([]rouse.Entry, 1)
	found, err := s.one(ctx, &e[0].Message, `SELECT body FROM messages WHERE id = $1 AND session = $2`, id, sessionID)
	if err != nil {
		return nil, failure(op, err)
	}
	if !found {
		return nil, absent(op, "Message", id)
	}
	return &e[0], failure(op, s.fillParts(ctx, e))
}

// MessageRow reads a message without its parts.
func (s *Store) MessageRow(ctx context.Context, id string) (*rouse.Message, error) {
	const op = "store: message row"
	var m rouse.Message
	found, err := s.one(ctx, &m, `SELECT body FROM messages WHERE id = $1`, id)
	if err == nil && !found {
		return nil, absent(op, "Message", id)
	}
	return &m, failure(op, err)
}

// Transcript is what a model is told when the turn of a generation runs: the
// entries of all turns dispatched before it and its own, in the order in which
// they were dispatched, so that a prompt which was queued during a turn stands
// after that turn's answer. It starts at the last completed summary, if there
// is one.
func (s *Store) Transcript(ctx context.Context, sessionID string, generation uint64) ([]rouse.Entry, error) {
	const op = "store: transcript"
	var from, overtook int64
	err := s.row(ctx, `SELECT
		(SELECT COALESCE(MAX(generation), 0) FROM messages WHERE session = $1 AND summary = 1),
		(SELECT COUNT(*) FROM turns WHERE session = $1 AND generation > $2 AND state <> 'queued')`,
		[]any{sessionID, int64(generation)}, &from, &overtook)
	if err != nil {
		return nil, failure(op, err)
	}
	upTo := int64(generation)
	if overtook > 0 { // a later prompt was dispatched before this one
		upTo = math.MaxInt64
	}
	var entries []rouse.Entry
	err = s.each(ctx, func(body []byte) error {
		var m rouse.Message
		err := json.Unmarshal(body, &m)
		entries = append(entries, rouse.Entry{Message: m})
		return err
	}, `SELECT body FROM messages WHERE session = $1 AND generation >= $2 AND generation <= $3 ORDER BY generation, created, id`,
		sessionID, min(from, int64(generation)), upTo)
	if err == nil && overtook > 0 {
		entries, err = s.byDispatch(ctx, sessionID, generation, entries)
	}
	if err != nil {
		return nil, failure(op, err)
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if m := entries[i].Message; m.Summary && m.Error == nil && !m.Completed.IsZero() {
			entries = entries[i:]
			break
		}
	}
	return entries, failure(op, s.fillParts(ctx, entries))
}

// byDispatch orders entries by when their turns were dispatched and leaves out
// those that were not before the asked one.
func (s *Store) byDispatch(ctx context.Context, sessionID string, generation uint64, entries []rouse.Entry) ([]rouse.Entry, error) {
	turns, err := s.Turns(ctx, sessionID, 0)
	if err != nil {
		return nil, err
	}
	asked := time.Time{}
	for i := range turns {
		if turns[i].Generation == generation {
			asked = turns[i].Started
		}
	}
	started := make(map[uint64]time.Time, len(turns))
	for i := range turns {
		t := &turns[i]
		before := asked.IsZero() || t.Started.Before(asked) || t.State.Settled() && !t.Ended.After(asked)
		if t.Generation == generation || t.State != rouse.TurnQueued && before {
			started[t.Generation] = t.Started
		}
	}
	entries = slices.DeleteFunc(entries, func(e rouse.Entry) bool {
		_, dispatched := started[e.Message.Generation]
		return !dispatched && e.Message.TurnID != ""
	})
	slices.SortStableFunc(entries, func(a, b rouse.Entry) int {
		return started[a.Message.Generation].Compare(started[b.Message.Generation])
	})
	return entries, nil
}
