package session

import (
	"context"

	"rouse"
)

// again makes a prompt of a turn's own.
func (l *Lanes) again(ctx context.Context, turnID string, model rouse.ModelRef) (Prompt, error) {
	t, err := l.Store.Turn(ctx, turnID)
	if err != nil {
		return Prompt{}, err
	}
	e, err := l.Store.Message(ctx, t.SessionID, t.UserMessage)
	if err != nil {
		return Prompt{}, err
	}
	if model.IsZero() {
		model = t.Model
	}
	p := Prompt{SessionID: t.SessionID, Agent: t.Agent, Model: model, System: t.System, Tools: t.Tools, Format: t.Format,
		Unattended: t.Unattended, Kind: t.Kind, Command: t.Command, RetryOf: t.ID}
	for _, part := range e.Parts {
		part.ID, part.Row = "", 0
		p.Parts = append(p.Parts, part)
	}
	return p, nil
}

// Repeat accepts a turn's prompt once more in its session. Under one key it is
// accepted once, unless somebody cancelled the turn that came of it: who asks
// again after that means another one. Any other end has an incident of its own,
// or needs none.
func (l *Lanes) Repeat(ctx context.Context, turnID, key string, model rouse.ModelRef) (newTurn string, err error) {
	const op = "session: repeat"
	for next := key; ; next = key + ":after:" + newTurn {
		p, err := l.again(ctx, turnID, model)
		if err != nil {
			return "", rouse.Wrap(op, err)
		}
		p.Key, p.BodyHash = next, turnID
		acc, err := l.Prompt(ctx, p)
		if newTurn = acc.TurnID; err != nil || !acc.Replayed {
			return newTurn, rouse.Wrap(op, err)
		}
		if t, err := l.Store.Turn(ctx, newTurn); err != nil || t.State != rouse.TurnCancelled {
			return newTurn, rouse.Wrap(op, err)
		}
	}
}

// Renew puts a turn's prompt into a new session like the old one, once for its
// key.
func (l *Lanes) Renew(ctx context.Context, turnID, key string, model rouse.ModelRef) (sessionID, newTurn string, err error) {
	const op = "session: renew"
	p, err := l.again(ctx, turnID, model)
	if err != nil {
		return "", "", rouse.Wrap(op, err)
	}
	old, err := l.Store.Session(ctx, p.SessionID)
	if err != nil {
		return "", "", rouse.Wrap(op, err)
	}
	s, _, err := l.Create(ctx, NewSession{Title: old.Title, Directory: old.Directory, Agent: old.Agent, ParentID: old.ParentID,
		Permission: old.Permission, Metadata: old.Metadata, Orchestrator: old.Orchestrator, Engine: old.Engine, child: old.ParentID != "",
		Key: key, BodyHash: turnID})
	if err != nil {
		return "", "", rouse.Wrap(op, err)
	}
	p.SessionID, p.Key, p.BodyHash = s.ID, key+":prompt", turnID
	acc, err := l.Prompt(ctx, p)
	return s.ID, acc.TurnID, rouse.Wrap(op, err)
}
