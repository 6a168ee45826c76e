package session

import (
	"context"
	"time"

	"rouse"
	"rouse/internal/feed"
)

// Wake accepts a rescue's prompt, once for its key. It is dispatched first:
// the rescue holds the queue.
func (l *Lanes) Wake(ctx context.Context, r *rouse.Rescue, key, text string) (turnID string, generation uint64, model rouse.ModelRef, err error) {
	s, err := l.Store.Session(ctx, r.SessionID)
	if err != nil {
		return "", 0, model, err
	}
	unattended := s.Orchestrator != ""
	if r.Aborted != "" {
		t, err := l.Store.Turn(ctx, r.Aborted)
		if err != nil {
			return "", 0, model, err
		}
		unattended = t.Unattended
	}
	acc, err := l.Prompt(ctx, Prompt{SessionID: r.SessionID, Key: key, BodyHash: r.ID, Model: r.Model, Rescue: r.ID,
		Unattended: unattended, Force: r.Force, RetryOf: r.Aborted, Parts: []rouse.Part{{Kind: rouse.TextPart, Text: text}}})
	if err != nil {
		return "", 0, model, err
	}
	t, err := l.Store.Turn(ctx, acc.TurnID)
	if err != nil {
		return "", 0, model, err
	}
	return acc.TurnID, acc.Generation, t.Model, nil
}

// Generates waits until a turn shows its first genuine progress or completes;
// kind says which, "" when neither came within wait. A turn that ends otherwise
// is an Upstream error that says how.
func (l *Lanes) Generates(ctx context.Context, sessionID, turnID string, wait time.Duration) (kind string, err error) {
	const op = "session: generates"
	news, err := l.Feed.Subscribe(feed.Filter{Session: sessionID})
	if err != nil {
		return "", rouse.Wrap(op, err)
	}
	defer news.Close()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		if v, ok := l.Vitals(sessionID); ok && v.TurnID == turnID && v.FirstGenuine != "" {
			return v.FirstGenuine, nil
		}
		t, err := l.Store.Turn(ctx, turnID)
		if err != nil {
			return "", rouse.Wrap(op, err)
		}
		switch {
		case t.State == rouse.TurnCompleted:
			return "completed", nil
		case t.State.Settled():
			return "", rouse.Errorf(rouse.Upstream, op, "the turn %s", endReason(t))
		}
		select {
		case <-news.Bell():
		case <-deadline.C:
			return "", nil
		case <-ctx.Done():
			return "", rouse.Wrap(op, context.Cause(ctx))
		}
	}
}

// endReason is how a turn ended that did not complete.
func endReason(t *rouse.Turn) string {
	switch {
	case t.State == rouse.TurnInterrupted:
		return "was interrupted: the server stopped while it ran"
	case t.State == rouse.TurnCancelled:
		return "was cancelled by somebody else"
	case t.Failure != nil && t.Failure.Message != "":
		return "failed: " + t.Failure.Message
	case t.Failure != nil && t.Failure.Code != "":
		return "failed: " + t.Failure.Code
	}
	return "failed, and no reason is known"
}

// WakeModel is the model that a rescue would wake the session with, where named
// is the one that is asked for, or none. The error says why it cannot be used,
// or why the session cannot be woken at all: its directory is gone.
func (l *Lanes) WakeModel(s *rouse.Session, named rouse.ModelRef) (rouse.ModelRef, error) {
	_, model, err := l.resolve(s, &Prompt{Model: named})
	if err == nil {
		err = l.Models.CheckModel(model)
	}
	if err == nil {
		_, err = CheckDirectory(s.Directory)
	}
	return model, rouse.Wrap("session: wake model", err)
}

// Attached says that somebody waits for the turn's answer on a connection.
func (l *Lanes) Attached(turnID string) bool {
	l.waits.mu.Lock()
	defer l.waits.mu.Unlock()
	return len(l.waits.of[turnID]) > 0
}

// Kick makes the session's lane look for queued prompts.
func (l *Lanes) Kick(sessionID string) { l.post(sessionID, kick{}) }
