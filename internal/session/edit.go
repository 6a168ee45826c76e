package session

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"rouse"
	"rouse/internal/store"
)

// change edits a session that is not busy, durably.
func (l *Lanes) edit(ctx context.Context, op, id string, fn func(tx *store.Tx, s *rouse.Session) error) (out *rouse.Session, err error) {
	err = l.Store.Write(ctx, store.Promise, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		if s.Running != "" || s.Queued > 0 { // what is queued is in the transcript already
			return rouse.Errorf(rouse.Conflict, "edit", "session %s is busy: wait until it is idle, or abort it", s.ID)
		}
		out = s
		return fn(tx, s)
	})
	return out, rouse.Wrap(op, err)
}

// RemoveMessage deletes a message of an idle session; Conflict when busy,
// NotFound when it is not there.
func (l *Lanes) RemoveMessage(ctx context.Context, sessionID, messageID string) error {
	_, err := l.edit(ctx, "session: remove message", sessionID, func(tx *store.Tx, s *rouse.Session) error {
		m, err := tx.Message(s.ID, messageID)
		if err != nil {
			return err
		}
		s.Messages--
		s.Resume = nil // an agent would remember it
		if err := tx.RemoveMessage(s, m); err != nil {
			return err
		}
		return tx.KeepSession(s)
	})
	return err
}

// RemovePart deletes a part of an idle session.
func (l *Lanes) RemovePart(ctx context.Context, sessionID, messageID, partID string) error {
	_, err := l.edit(ctx, "session: remove part", sessionID, func(tx *store.Tx, s *rouse.Session) error {
		p, err := partOf(tx, s, messageID, partID)
		if err != nil {
			return err
		}
		s.Resume = nil // an agent would remember it
		return errors.Join(tx.RemovePart(s, p), tx.KeepSession(s))
	})
	return err
}

// EditPart replaces a part's body in an idle session; its ids must name one
// that exists.
func (l *Lanes) EditPart(ctx context.Context, p rouse.Part) (*rouse.Part, error) {
	_, err := l.edit(ctx, "session: edit part", p.SessionID, func(tx *store.Tx, s *rouse.Session) error {
		old, err := partOf(tx, s, p.MessageID, p.ID)
		if err != nil {
			return err
		}
		if old.Kind != p.Kind {
			return rouse.FieldError("edit part", "type", "a %s part cannot become a %s part", old.Kind, p.Kind)
		}
		p.Row, p.Open = old.Row, false
		s.Resume = nil // an agent would remember what it was
		return errors.Join(tx.PutPart(s, &p, s.Generation), tx.KeepSession(s))
	})
	return &p, err
}

func partOf(tx *store.Tx, s *rouse.Session, messageID, partID string) (*rouse.Part, error) {
	p, err := tx.Part(partID)
	if err == nil && (p.MessageID != messageID || p.SessionID != s.ID) {
		err = rouse.Errorf(rouse.NotFound, "part", "Part not found: %s", rouse.Clip(partID, 64))
	}
	return p, err
}

// Revert marks everything from a message (or one of its parts) on as undone:
// the next prompt replaces it. Files are not touched.
func (l *Lanes) Revert(ctx context.Context, id, messageID, partID string) (*rouse.Session, error) {
	return l.edit(ctx, "session: revert", id, func(tx *store.Tx, s *rouse.Session) error {
		if _, err := tx.Message(s.ID, messageID); err != nil {
			return err
		}
		if partID != "" {
			if _, err := partOf(tx, s, messageID, partID); err != nil {
				return err
			}
		}
		s.Revert, s.Updated = &rouse.Revert{MessageID: messageID, PartID: partID}, tx.Now()
		return tx.UpdateSession(s)
	})
}

// Unrevert takes a revert back.
func (l *Lanes) Unrevert(ctx context.Context, id string) (*rouse.Session, error) {
	return l.edit(ctx, "session: unrevert", id, func(tx *store.Tx, s *rouse.Session) error {
		if s.Revert == nil {
			return nil
		}
		s.Revert, s.Updated = nil, tx.Now()
		return tx.UpdateSession(s)
	})
}

var forkMark = regexp.MustCompile(` \(fork #(\d+)\)$`)

// Fork copies a session up to, not including, a message ("" copies all) into a
// new one with ids of its own.
func (l *Lanes) Fork(ctx context.Context, id, messageID string) (*rouse.Session, error) {
	const op = "session: fork"
	from, err := l.Store.Session(ctx, id)
	if err != nil {
		return nil, rouse.Wrap(op, err)
	}
	page, err := l.Store.Messages(ctx, store.MessageQuery{SessionID: id})
	if err != nil {
		return nil, rouse.Wrap(op, err)
	}
	entries, err := upTo(page.Entries, messageID)
	if err != nil {
		return nil, rouse.Wrap(op, err)
	}
	to := forked(from)
	err = l.Store.Write(ctx, store.Promise, func(tx *store.Tx) error {
		if err := tx.InsertSession(to); err != nil {
			return err
		}
		return copyEntries(tx, to, entries)
	})
	return to, rouse.Wrap(op, err)
}

func upTo(entries []rouse.Entry, messageID string) ([]rouse.Entry, error) {
	if messageID == "" {
		return entries, nil
	}
	for i := range entries {
		if entries[i].Message.ID == messageID {
			return entries[:i], nil
		}
	}
	return nil, rouse.Errorf(rouse.NotFound, "fork", "Message not found: %s", rouse.Clip(messageID, 64))
}

func forked(from *rouse.Session) *rouse.Session {
	now := time.Now().UTC().Truncate(time.Millisecond)
	n, base := 1, from.Title
	if m := forkMark.FindStringSubmatchIndex(base); m != nil {
		n, _ = strconv.Atoi(base[m[2]:m[3]])
		n, base = n+1, base[:m[0]]
	}
	to := *from
	to.ID, to.Slug, to.Title = rouse.NewID(rouse.SessionPrefix, now), slug(), fmt.Sprintf("%s (fork #%d)", base, n)
	to.Running, to.RunningBoot, to.WaitingFor, to.Pause, to.Rescue, to.Last, to.Outcome, to.Revert = "", "", "", false, "", "", "", nil
	to.Resume = nil // an agent's session cannot be copied, and must not be shared
	to.Generation, to.Queued, to.Messages, to.Usage = 0, 0, 0, rouse.Usage{}
	to.Created, to.Updated, to.Archived = now, now, time.Time{}
	return &to
}

// copyEntries writes messages and parts under new ids. Generations are kept
// relative: each copied turn gets the next one, so that the order the model
// sees stays the same.
func copyEntries(tx *store.Tx, to *rouse.Session, entries []rouse.Entry) error {
	ids := make(map[string]string, len(entries))
	for i := range entries {
		m := entries[i].Message
		ids[m.ID] = rouse.NewID(rouse.MessagePrefix, tx.Now())
		m.ID, m.SessionID, m.Row, m.TurnID = ids[m.ID], to.ID, 0, ""
		if m.ParentID != "" {
			m.ParentID = ids[m.ParentID]
		}
		if m.Role == rouse.Assistant && m.Completed.IsZero() {
			m.Completed = tx.Now() // a copy of a running message does not run
		}
		to.Generation = max(to.Generation, m.Generation)
		if _, err := tx.PutMessage(to, &m); err != nil {
			return err
		}
		for _, p := range entries[i].Parts {
			p.ID, p.SessionID, p.MessageID, p.Row = rouse.NewID(rouse.PartPrefix, tx.Now()), to.ID, m.ID, 0
			if p.Open {
				p.Open, p.End = false, tx.Now()
				if p.Tool != nil {
					tool := *p.Tool
					tool.State, tool.Error = rouse.ToolFailed, "Tool execution was not finished when the session was forked"
					p.Tool = &tool
				}
			}
			if err := tx.PutPart(to, &p, m.Generation); err != nil {
				return err
			}
		}
	}
	to.Messages = len(entries)
	return tx.UpdateSession(to)
}
