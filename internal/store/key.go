package store

import "rouse"

// createdIntake marks the key of a created session.
const createdIntake = "created"

// Created gives the session that was created under a key, or nil. Mismatch if
// the key was used with another request.
func (tx *Tx) Created(key, hash string) (*rouse.Session, error) {
	used, prior, err := tx.used(key)
	switch {
	case err != nil || prior == nil:
		return nil, err
	case used != hash || prior.Intake != createdIntake:
		return nil, keyMismatch()
	}
	return tx.Session(prior.SessionID)
}

// KeepKey notes that a session was created under a key.
func (tx *Tx) KeepKey(key, hash, sessionID string) error {
	return tx.keep(key, hash, Started{SessionID: sessionID, Intake: createdIntake})
}

func keyMismatch() error {
	return rouse.Errorf(rouse.Mismatch, "idempotency", "this idempotency key was used with another request; use a new key")
}

// used looks a key up: the hash it came with and what became of it; nil when
// it is new.
func (tx *Tx) used(key string) (hash string, prior *Started, err error) {
	st, err := tx.c.prepare(`SELECT hash, session, message, turn, generation, intake FROM idempotency WHERE key = $1`)
	if err != nil {
		return "", nil, err
	}
	var intake string
	var generation int64
	var p Started
	err = st.QueryRow(key).Scan(&hash, &p.SessionID, &p.MessageID, &p.TurnID, &generation, &intake)
	switch {
	case err != nil && rouse.KindOf(failure("", err)) == rouse.NotFound:
		return "", nil, nil
	case err != nil:
		return "", nil, err
	}
	p.Generation, p.Intake, p.Replayed = uint64(generation), rouse.Intake(intake), true
	return hash, &p, nil
}

// keep notes what became of a key.
func (tx *Tx) keep(key, hash string, out Started) error {
	return tx.do(`INSERT INTO idempotency (key, hash, session, message, turn, generation, intake, at) VALUES ($1,$2,$3,$4,$5,$6,$7,$8)`,
		key, hash, out.SessionID, out.MessageID, out.TurnID, int64(out.Generation), string(out.Intake), ms(tx.now))
}
