package store

import (
	"context"
	"errors"
	"time"

	"rouse"
)

// Start is a prompt that asks to be accepted.
type Start struct {
	SessionID string
	// Key makes the acceptance happen once; Hash tells another body under the
	// same key. A verb's key is deterministic ("wake:ID"); a request without
	// one gets a key of its own.
	Key, Hash string
	// Message is the user message without generation; Parts are its parts.
	// Both carry their ids.
	Message rouse.Message
	Parts   []rouse.Part
	// Turn is the turn to queue, without generation; nil for noReply.
	Turn     *rouse.Turn
	DelaySec int
	// MaxQueued bounds the turns that wait in one session; 0 is no bound.
	MaxQueued int
	// IfIdle refuses (Conflict) instead of queueing behind another turn.
	IfIdle bool
	// Live tells whether a boot is alive.
	Live func(boot string) bool
	// Maintenance holds what comes.
	Maintenance bool
}

// Started is what became of a Start.
type Started struct {
	Intake     rouse.Intake
	SessionID  string
	MessageID  string
	TurnID     string // empty for noReply
	Generation uint64
	Replayed   bool // the key was used before: nothing happened now
}

// StartTurn decides about a prompt and stores it, in one transaction that is
// on disk when it returns. decide is rouse.DecideIntake or a stricter one.
// Errors: NotFound, Conflict (nothing stored), Mismatch, Unsupported (delay).
func (s *Store) StartTurn(ctx context.Context, in Start, decide func(rouse.IntakeFacts) (rouse.Intake, error)) (Started, error) {
	var out Started
	err := s.Write(ctx, Promise, func(tx *Tx) error {
		var err error
		out, err = tx.startTurn(&in, decide)
		return err
	})
	return out, rouse.Wrap("store: start turn", err)
}

func (tx *Tx) startTurn(in *Start, decide func(rouse.IntakeFacts) (rouse.Intake, error)) (Started, error) {
	if prior, err := tx.replay(in); prior != nil || err != nil {
		if err != nil {
			return Started{}, err
		}
		return *prior, nil
	}
	s, err := tx.Session(in.SessionID)
	if err != nil {
		return Started{}, err
	}
	intake, err := decide(rouse.IntakeFacts{
		Session: s, RunnerLive: s.Running == "" || in.Live(s.RunningBoot), Maintenance: in.Maintenance,
		Queued: s.Queued, MaxQueued: in.MaxQueued, NoReply: in.Turn == nil, DelaySec: in.DelaySec,
		Rescuing: s.Rescue != "" && (in.Turn == nil || in.Turn.Rescue != s.Rescue),
	})
	if err != nil {
		return Started{}, err
	}
	if in.IfIdle && (s.Running != "" || s.Queued > 0) {
		return Started{}, rouse.Errorf(rouse.Conflict, "start turn", "session %s is busy: wait until it is idle, or abort it", s.ID)
	}
	if intake == rouse.Delayed {
		return Started{}, rouse.Errorf(rouse.Unsupported, "start turn", "delay_sec: delayed prompts are not offered by this version; send it without delay_sec, nothing was stored")
	}
	out := Started{Intake: intake, SessionID: s.ID, MessageID: in.Message.ID}
	if in.Turn != nil {
		s.Generation++
		s.Queued++
		in.Turn.Behind = (intake == rouse.Joined || intake == rouse.Held) && in.Turn.Rescue == "" // a rescue is dispatched first
		in.Turn.Generation, in.Turn.State, in.Turn.Accepted = s.Generation, rouse.TurnQueued, tx.now
		out.TurnID, out.Generation = in.Turn.ID, s.Generation
	}
	if err := tx.storePrompt(s, in); err != nil {
		return Started{}, err
	}
	return out, tx.keep(in.Key, in.Hash, out)
}

// replay answers a key that was used before.
func (tx *Tx) replay(in *Start) (*Started, error) {
	hash, prior, err := tx.used(in.Key)
	if err == nil && prior != nil && (hash != in.Hash || prior.SessionID != in.SessionID) {
		return nil, keyMismatch()
	}
	return prior, err
}

// storePrompt writes message, parts, turn and session of an accepted prompt.
func (tx *Tx) storePrompt(s *rouse.Session, in *Start) error {
	m := &in.Message
	if _, err := tx.Message(s.ID, m.ID); err == nil {
		return &rouse.Error{Kind: rouse.Conflict, Op: "start turn", Field: "messageID", Msg: "a message with this id exists already: " + rouse.Clip(m.ID, 64)}
	} else if rouse.KindOf(err) != rouse.NotFound {
		return err
	}
	m.SessionID, m.Generation, m.Created = s.ID, s.Generation, tx.now
	if in.Turn != nil {
		m.TurnID, m.Agent, m.Model = in.Turn.ID, in.Turn.Agent, in.Turn.Model
		if err := tx.InsertTurn(in.Turn); err != nil {
			return err
		}
	}
	s.Messages++
	s.Updated = tx.now
	if m.Agent != "" {
		s.Agent = m.Agent
	}
	if !m.Model.IsZero() {
		s.Model = m.Model
	}
	if err := tx.dropReverted(s); err != nil {
		return err
	}
	if err := tx.UpdateSession(s); err != nil {
		return err
	}
	if _, err := tx.PutMessage(s, m); err != nil {
		return err
	}
	for i := range in.Parts {
		p := &in.Parts[i]
		p.SessionID, p.MessageID = s.ID, m.ID
		if err := tx.PutPart(s, p, m.Generation); err != nil {
			return err
		}
	}
	if in.Turn == nil {
		return nil
	}
	return tx.Emit(rouse.Event{Type: rouse.TurnQueuedEvent, SessionID: s.ID, Directory: s.Directory, TurnID: in.Turn.ID,
		Generation: in.Turn.Generation, MessageID: m.ID},
		rouse.TurnFact{State: rouse.TurnQueued, Queued: s.Queued, Model: in.Turn.Model})
}

// dropReverted makes an undo final: a new prompt replaces what was undone.
func (tx *Tx) dropReverted(s *rouse.Session) error {
	if s.Revert == nil {
		return nil
	}
	at, err := tx.Message(s.ID, s.Revert.MessageID)
	if err != nil {
		if rouse.KindOf(err) == rouse.NotFound {
			s.Revert = nil
			return nil
		}
		return err
	}
	s.Resume = nil // agents would remember what is undone
	gone, err := tx.messagesFrom(s.ID, at)
	if err != nil {
		return err
	}
	for i := range gone {
		if s.Revert.PartID != "" && gone[i].ID == at.ID {
			if err := tx.dropPartsFrom(s, at, s.Revert.PartID); err != nil {
				return err
			}
			continue
		}
		if err := tx.RemoveMessage(s, &gone[i]); err != nil {
			return err
		}
		s.Messages--
	}
	s.Revert = nil
	return nil
}

func (tx *Tx) dropPartsFrom(s *rouse.Session, m *rouse.Message, partID string) error {
	parts, err := tx.Parts(m.ID)
	if err != nil {
		return err
	}
	found := false
	for i := range parts {
		if found = found || parts[i].ID == partID; found {
			if err := tx.RemovePart(s, &parts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lease is one running server.
type Lease struct {
	ID               string
	PID              int
	Started, Renewed time.Time
}

// LeaseTerm is how long a boot counts as alive after its last renewal.
const LeaseTerm = 10 * time.Second

// PutLease records or renews a boot; ended true says goodbye.
func (s *Store) PutLease(ctx context.Context, l Lease, ended bool) error {
	return rouse.Wrap("store: lease", s.Write(ctx, Lazy, func(tx *Tx) error {
		end := int64(0)
		if ended {
			end = ms(tx.now)
		}
		return tx.do(`INSERT INTO boots (id, pid, started, renewed, ended) VALUES ($1,$2,$3,$4,$5)
			ON CONFLICT (id) DO UPDATE SET renewed = excluded.renewed, ended = excluded.ended`,
			l.ID, l.PID, ms(l.Started), ms(tx.now), end)
	}))
}

// Leases lists the boots that have not said goodbye, newest first.
func (s *Store) Leases(ctx context.Context) ([]Lease, error) {
	const op = "store: leases"
	rows, err := s.query(ctx, `SELECT id, pid, started, renewed FROM boots WHERE ended = 0 ORDER BY started DESC`)
	if err != nil {
		return nil, failure(op, err)
	}
	defer rows.Close()
	var out []Lease
	for rows.Next() {
		var l Lease
		var started, renewed int64
		if err := rows.Scan(&l.ID, &l.PID, &started, &renewed); err != nil {
			return nil, failure(op, err)
		}
		l.Started, l.Renewed = fromMS(started), fromMS(renewed)
		out = append(out, l)
	}
	return out, failure(op, errors.Join(rows.Err()))
}
