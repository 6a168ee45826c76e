package session

import (
	"context"
	"strings"

	"rouse"
	"rouse/internal/feed"
	"rouse/internal/store"
)

// Child is a prompt for a sub-agent: a session of its own under the parent's.
type Child struct {
	ParentSession string
	// Resume goes on in an earlier child of the same parent; "" makes one.
	Resume string
	Agent  string
	Title  string
	Prompt string
	Model  rouse.ModelRef
	// Unattended is the parent's.
	Unattended bool
	// Started hears the child's id before it works; Progress each time it
	// moved. Both may be nil.
	Started  func(sessionID string)
	Progress func()
}

// ChildResult is how a child ended.
type ChildResult struct {
	SessionID string
	State     rouse.TurnState
	Text      string // the last answer
	Failure   *rouse.Failure
}

// Spawn runs a sub-agent to its end. When ctx ends the child is aborted.
func (l *Lanes) Spawn(ctx context.Context, c Child) (ChildResult, error) {
	const op = "session: spawn"
	s, err := l.child(ctx, c)
	if err != nil {
		return ChildResult{}, rouse.Wrap(op, err)
	}
	if c.Started != nil {
		c.Started(s.ID)
	}
	news, err := l.Feed.Subscribe(feed.Filter{Session: s.ID})
	if err != nil {
		return ChildResult{}, rouse.Wrap(op, err)
	}
	defer news.Close()
	acc, err := l.Prompt(ctx, Prompt{SessionID: s.ID, Agent: c.Agent, Model: c.Model, Unattended: c.Unattended,
		Parts: []rouse.Part{{Kind: rouse.TextPart, Text: c.Prompt}}})
	if err != nil {
		return ChildResult{}, rouse.Wrap(op, err)
	}
	t, err := l.follow(ctx, s.ID, acc.TurnID, news, c.Progress)
	if err != nil {
		return ChildResult{SessionID: s.ID, State: rouse.TurnCancelled}, rouse.Wrap(op, err)
	}
	text, err := l.lastText(ctx, s.ID)
	return ChildResult{SessionID: s.ID, State: t.State, Text: text, Failure: t.Failure}, rouse.Wrap(op, err)
}

func (l *Lanes) child(ctx context.Context, c Child) (*rouse.Session, error) {
	parent, err := l.Store.Session(ctx, c.ParentSession)
	if err != nil {
		return nil, err
	}
	if c.Resume != "" {
		s, err := l.Store.Session(ctx, c.Resume)
		if err == nil && s.ParentID != parent.ID {
			err = rouse.Errorf(rouse.NotFound, "child", "session %s is no child of this one", rouse.Clip(c.Resume, 64))
		}
		return s, err
	}
	s, _, err := l.Create(ctx, NewSession{Title: c.Title, Directory: parent.Directory, Agent: c.Agent, ParentID: parent.ID,
		Permission: parent.Permission, Orchestrator: parent.Orchestrator, Engine: parent.Engine, child: true})
	return s, err
}

// follow waits for the child's turn; its news are progress.
func (l *Lanes) follow(ctx context.Context, sessionID, turnID string, news *feed.Subscription, progress func()) (*rouse.Turn, error) {
	settled, forget := l.waits.add(turnID)
	defer forget()
	for {
		t, err := l.Store.Turn(ctx, turnID)
		if err != nil || t.State.Settled() {
			return t, err
		}
		select {
		case <-settled:
		case <-news.Bell():
			if progress != nil {
				progress()
			}
			select { // a settled turn rings too: only then is the row read again
			case <-settled:
			default:
				continue
			}
		case <-ctx.Done():
			if err := l.Abort(context.WithoutCancel(ctx), sessionID); err != nil {
				return nil, err
			}
			return nil, context.Cause(ctx)
		}
	}
}

func (l *Lanes) lastText(ctx context.Context, sessionID string) (string, error) {
	page, err := l.Store.Messages(ctx, store.MessageQuery{SessionID: sessionID, Limit: 1})
	if err != nil || len(page.Entries) == 0 {
		return "", err
	}
	var text []string
	for _, p := range page.Entries[0].Parts {
		if p.Kind == rouse.TextPart && p.Broken == nil {
			text = append(text, p.Text)
		}
	}
	return strings.Join(text, "\n"), nil
}
