package store

import (
	"context"
	"encoding/json"
	"slices"

	"rouse"
)

// PutPart inserts or replaces a part and announces it. chunks are the rows
// that AppendChunk gave for it; they are deleted: the part has their text now.
func (tx *Tx) PutPart(s *rouse.Session, p *rouse.Part, generation uint64, chunks ...int64) error {
	p.Row++
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if p.Row == 1 {
		tx.partN++
		err = tx.do(`INSERT INTO parts (n, id, message, body) VALUES ($1,$2,$3,$4)`, tx.partN, p.ID, p.MessageID, string(body))
	} else {
		err = tx.do(`UPDATE parts SET body=$2 WHERE id=$1`, p.ID, string(body))
	}
	if err != nil {
		return err
	}
	if err := tx.dropChunks(chunks); err != nil {
		return err
	}
	row := *p
	return tx.Emit(rouse.Event{Type: rouse.PartUpdated, SessionID: s.ID, Directory: s.Directory, Generation: generation,
		MessageID: p.MessageID, PartID: p.ID, Row: p.Row, Body: &row}, nil)
}

// Part reads a part's row; NotFound if there is none.
func (tx *Tx) Part(id string) (*rouse.Part, error) {
	var p rouse.Part
	found, err := tx.one(&p, `SELECT body FROM parts WHERE id = $1`, id)
	if err == nil && !found {
		return nil, absent("part", "Part", id)
	}
	return &p, err
}

// Parts reads a message's parts in order.
func (tx *Tx) Parts(messageID string) (parts []rouse.Part, err error) {
	err = tx.each(func(body []byte) error {
		var p rouse.Part
		err := json.Unmarshal(body, &p)
		parts = append(parts, p)
		return err
	}, `SELECT body FROM parts WHERE message = $1 ORDER BY n`, messageID)
	return parts, err
}

// RemovePart deletes a part.
func (tx *Tx) RemovePart(s *rouse.Session, p *rouse.Part) error {
	if err := tx.do(`DELETE FROM parts WHERE id = $1`, p.ID); err != nil {
		return err
	}
	return tx.Emit(rouse.Event{Type: rouse.PartRemoved, SessionID: s.ID, Directory: s.Directory, MessageID: p.MessageID, PartID: p.ID}, nil)
}

// NewChunk gives the number of a chunk row to append.
func (s *Store) NewChunk() int64 { return s.chunk.Add(1) }

// AppendChunk keeps a piece of a running part's text under a number that
// NewChunk gave. It is no event.
func (tx *Tx) AppendChunk(n int64, partID, text string) error {
	return tx.do(`INSERT INTO chunks (n, part, body) VALUES ($1,$2,$3)`, n, partID, text)
}

// dropChunks deletes chunk rows by number, many in one statement: a part that
// grew for a minute has sixty.
func (tx *Tx) dropChunks(chunks []int64) error {
	const group = 16
	for some := range slices.Chunk(chunks, group) {
		args := make([]any, 0, group)
		for _, n := range some {
			args = append(args, n)
		}
		for len(some) > 1 && len(args) < group { // two statements for all sizes: one number, or a full group
			args = append(args, 0)
		}
		if err := tx.do(`DELETE FROM chunks WHERE n IN (`+placeholders(len(args))+`)`, args...); err != nil {
			return err
		}
	}
	return nil
}

// TakeChunks returns the text that was flushed for parts whose lane is gone,
// by part, and deletes the rows.
func (tx *Tx) TakeChunks(partIDs []string) (map[string]string, error) {
	text := map[string]string{}
	if len(partIDs) == 0 {
		return text, nil
	}
	for _, id := range partIDs {
		err := tx.each(func(body []byte) error { text[id] += string(body); return nil },
			`SELECT body FROM chunks WHERE part = $1 ORDER BY n`, id)
		if err == nil {
			err = tx.do(`DELETE FROM chunks WHERE part = $1`, id)
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// Part reads a part's row; NotFound if there is none.
func (s *Store) Part(ctx context.Context, id string) (*rouse.Part, error) {
	const op = "store: part"
	var p rouse.Part
	found, err := s.one(ctx, &p, `SELECT body FROM parts WHERE id = $1`, id)
	if err == nil && !found {
		return nil, absent(op, "Part", id)
	}
	return &p, failure(op, err)
}
