package store

import (
	"context"
	"encoding/json"
	"time"

	"rouse"
)

// PutVerdict keeps what is made of a session now and announces it. One that is
// about a running turn is dropped (kept is false) when another or none runs; one
// about a settled session is dropped when anything runs.
func (tx *Tx) PutVerdict(sessionID, turnID string, generation uint64, v *rouse.Verdict) (kept bool, err error) {
	s, err := tx.Session(sessionID)
	if err != nil {
		if rouse.KindOf(err) == rouse.NotFound {
			err = nil // deleted meanwhile
		}
		return false, err
	}
	if v.Code.Over() != (s.Running == "") || s.Running != "" && s.Running != turnID {
		return false, nil
	}
	row := *v
	row.Since, row.Until = row.Since.UTC().Truncate(time.Millisecond), row.Until.UTC().Truncate(time.Millisecond)
	body, err := json.Marshal(&row)
	if err != nil {
		return false, err
	}
	if err := tx.do(`INSERT INTO verdicts (session, generation, code, at, body) VALUES ($1,$2,$3,$4,$5)
		ON CONFLICT (session) DO UPDATE SET generation = excluded.generation, code = excluded.code, at = excluded.at, body = excluded.body`,
		sessionID, int64(generation), string(v.Code), ms(v.Since), string(body)); err != nil {
		return false, err
	}
	return true, tx.Emit(rouse.Event{Type: rouse.VerdictChanged, SessionID: s.ID, Directory: s.Directory, TurnID: turnID, Generation: generation}, &row)
}

// VerdictCode is the code of the session's verdict that is stored; "" for none.
func (tx *Tx) VerdictCode(sessionID string) (rouse.VerdictCode, error) {
	var v rouse.Verdict
	_, err := tx.one(&v, `SELECT body FROM verdicts WHERE session = $1`, sessionID)
	return v.Code, err
}

// Judged are the sessions whose stored verdict has a code.
func (s *Store) Judged(ctx context.Context, code rouse.VerdictCode) ([]string, error) {
	var ids []string
	err := s.each(ctx, func(body []byte) error { ids = append(ids, string(body)); return nil },
		`SELECT session FROM verdicts WHERE code = $1 ORDER BY session`, string(code))
	return ids, failure("store: judged", err)
}

// Verdict is what was made of a session last; NotFound before the first time.
func (s *Store) Verdict(ctx context.Context, sessionID string) (*rouse.Verdict, error) {
	const op = "store: verdict"
	var v rouse.Verdict
	found, err := s.one(ctx, &v, `SELECT body FROM verdicts WHERE session = $1`, sessionID)
	if err == nil && !found {
		return nil, absent(op, "Verdict of session", sessionID)
	}
	return &v, failure(op, err)
}

// Orphans are the ids of sessions whose running turn another boot than this
// one dispatched.
func (s *Store) Orphans(ctx context.Context, boot string) ([]string, error) {
	var ids []string
	err := s.each(ctx, func(body []byte) error { ids = append(ids, string(body)); return nil },
		`SELECT id FROM sessions WHERE (running <> '' OR queued > 0) AND running <> '' AND running_boot <> $1 ORDER BY id`, boot)
	return ids, failure("store: orphans", err)
}
