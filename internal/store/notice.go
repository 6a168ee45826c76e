package store

import (
	"context"
	"encoding/json"

	"rouse"
)

// PutNotice shows the notice of a running turn, or shows it again with its new
// time: there is one row per generation. It is dropped when that turn does not
// run any more: kept is false. first says that there was none before.
func (tx *Tx) PutNotice(n *rouse.Notice) (kept, first bool, err error) {
	s, err := tx.Session(n.SessionID)
	if err != nil {
		if rouse.KindOf(err) == rouse.NotFound {
			err = nil
		}
		return false, false, err
	}
	if s.Running != n.TurnID || s.WaitingFor != "" {
		return false, false, nil
	}
	was, err := tx.notice(n.SessionID, n.Generation)
	if err != nil {
		return false, false, err
	}
	row := *n
	row.Visible, row.Created = true, row.At
	kind := rouse.NoticeCreated
	if was != nil {
		kind, row.Created = rouse.NoticeUpdated, was.Created
	}
	return true, was == nil, tx.keepNotice(s, &row, kind)
}

// HideNotice takes a generation's notice out of sight; nothing happens where
// there is none to be seen.
func (tx *Tx) HideNotice(s *rouse.Session, generation uint64) error {
	n, err := tx.notice(s.ID, generation)
	if err != nil || n == nil || !n.Visible {
		return err
	}
	n.Visible = false
	return tx.keepNotice(s, n, rouse.NoticeHidden)
}

func (tx *Tx) notice(sessionID string, generation uint64) (*rouse.Notice, error) {
	var n rouse.Notice
	found, err := tx.one(&n, `SELECT body FROM notices WHERE session = $1 AND generation = $2`, sessionID, int64(generation))
	if err != nil || !found {
		return nil, err
	}
	return &n, nil
}

func (tx *Tx) keepNotice(s *rouse.Session, n *rouse.Notice, kind rouse.EventType) error {
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := tx.do(`INSERT INTO notices (session, generation, at, body) VALUES ($1,$2,$3,$4)
		ON CONFLICT (session, generation) DO UPDATE SET at = excluded.at, body = excluded.body`,
		n.SessionID, int64(n.Generation), ms(n.At), string(body)); err != nil {
		return err
	}
	return tx.Emit(rouse.Event{Type: kind, SessionID: s.ID, Directory: s.Directory, TurnID: n.TurnID, Generation: n.Generation}, n)
}

// Notice is the notice of a generation; nil when there is none.
func (s *Store) Notice(ctx context.Context, sessionID string, generation uint64) (*rouse.Notice, error) {
	var n rouse.Notice
	found, err := s.one(ctx, &n, `SELECT body FROM notices WHERE session = $1 AND generation = $2`, sessionID, int64(generation))
	if err != nil || !found {
		return nil, failure("store: notice", err)
	}
	return &n, nil
}
