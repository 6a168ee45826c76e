package session

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"rouse"
	"rouse/internal/store"
)

// NewSession is a session to create.
type NewSession struct {
	Title        string
	Directory    string // absolute, must exist; "" is the server's own
	Agent        string // "" is the default agent
	ParentID     string
	Model        rouse.ModelRef // zero: decided at the first prompt
	Permission   []rouse.PermissionRule
	Metadata     json.RawMessage
	Orchestrator string
	Engine       string // "" is the default engine
	// Key makes the creation happen once; BodyHash tells another request under
	// the same key (Mismatch). "" is no key.
	Key, BodyHash string

	// child skips the rule that sub-agents are no session's agent.
	child bool
}

// Create stores a session. The warning is for the caller to show: the
// directory is a linked worktree and the session will not be listed with its
// main checkout. Errors: Invalid with the field, NotFound for the parent.
func (l *Lanes) Create(ctx context.Context, n NewSession) (s *rouse.Session, warning string, err error) {
	const op = "session: create"
	if s, err = l.draft(n); err != nil {
		return nil, "", rouse.Wrap(op, err)
	}
	project := l.ProjectOf(s.Directory)
	s.ProjectID = project.ID
	if project.Main != "" && project.Root == s.Directory {
		warning = fmt.Sprintf("%s is a linked git worktree of %s: the session is not listed under the main checkout", s.Directory, project.Main)
		l.Log.Warn("session.worktree", "session", s.ID)
	}
	err = l.Store.Write(ctx, store.Promise, func(tx *store.Tx) error {
		if n.Key != "" {
			before, err := tx.Created(n.Key, n.BodyHash)
			if err != nil || before != nil {
				s = before
				return err
			}
			if err := tx.KeepKey(n.Key, n.BodyHash, s.ID); err != nil {
				return err
			}
		}
		if n.ParentID != "" {
			if _, err := tx.Session(n.ParentID); err != nil {
				return err
			}
		}
		return tx.InsertSession(s)
	})
	if err != nil {
		return nil, "", rouse.Wrap(op, err)
	}
	return s, warning, nil
}

// draft checks what was asked for and fills in the rest.
func (l *Lanes) draft(n NewSession) (*rouse.Session, error) {
	directory, err := CheckDirectory(n.Directory)
	if err != nil {
		return nil, err
	}
	agent := n.Agent
	var found Agent
	if agent != "" {
		if found, err = l.primary(agent, n.child); err != nil {
			return nil, err
		}
		agent = found.Name
		if n.Model, err = found.named(n.Model); err != nil {
			return nil, err
		}
	}
	if !n.Model.IsZero() {
		if err := l.Models.CheckModel(n.Model); err != nil {
			return nil, err
		}
	}
	for _, r := range n.Permission {
		if err := r.Validate(); err != nil {
			return nil, err
		}
	}
	engine := n.Engine
	if engine == "" && l.EngineOf != nil {
		model := n.Model
		if model.IsZero() {
			model = found.Model
		}
		engine = l.EngineOf(model)
	}
	if engine == "" {
		engine = l.DefaultEngine
	}
	if _, err := l.Engine(engine); err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	title := n.Title
	if title == "" {
		title = rouse.DefaultTitle(now)
	}
	return &rouse.Session{ID: rouse.NewID(rouse.SessionPrefix, now), Slug: slug(), Title: rouse.Clip(title, 1000), Directory: directory,
		ParentID: n.ParentID, Agent: agent, Model: n.Model, Permission: n.Permission, Metadata: n.Metadata, Engine: engine,
		Orchestrator: n.Orchestrator, Created: now, Updated: now}, nil
}

// primary finds an agent that may answer a session's prompts.
func (l *Lanes) primary(name string, child bool) (Agent, error) {
	a, err := l.Agents.FindAgent(name)
	if err == nil && !a.Primary && !child {
		err = rouse.FieldError("session: agent", "agent", "agent %q is a sub-agent: it is started inside a session, by the task tool; use a primary agent", rouse.Clip(name, 40))
	}
	return a, err
}

// slug is a name for people, of two words as OpenCode's clients show them.
func slug() string {
	first := [...]string{"brave", "calm", "clever", "eager", "gentle", "happy", "jolly", "kind", "lucky", "mighty", "nimble", "proud", "quiet", "quick", "shiny", "sunny", "swift", "tidy", "witty", "bright"}
	second := [...]string{"cabin", "canyon", "cloud", "comet", "eagle", "engine", "falcon", "forest", "garden", "harbor", "island", "knight", "lagoon", "meadow", "moon", "mountain", "orchid", "planet", "river", "rocket"}
	return first[rand.N(len(first))] + "-" + second[rand.N(len(second))]
}

// Patch changes a session; nil fields stay.
type Patch struct {
	Title      *string
	Archived   *time.Time
	Permission *[]rouse.PermissionRule
	Metadata   json.RawMessage
}

// Update changes a session's title, archive mark, rules or metadata. Title and
// archive do not count as activity.
func (l *Lanes) Update(ctx context.Context, id string, p Patch) (out *rouse.Session, err error) {
	const op = "session: update"
	if p.Permission != nil {
		for _, r := range *p.Permission {
			if err := r.Validate(); err != nil {
				return nil, rouse.Wrap(op, err)
			}
		}
	}
	err = l.Store.Write(ctx, store.Promise, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		if p.Title != nil {
			s.Title = rouse.Clip(*p.Title, 1000)
		}
		if p.Archived != nil {
			s.Archived = *p.Archived
		}
		if p.Permission != nil {
			s.Permission = *p.Permission
		}
		if p.Metadata != nil {
			s.Metadata = p.Metadata
		}
		out = s
		return tx.UpdateSession(s)
	})
	if err == nil && p.Permission != nil {
		l.postExisting(id, reset{})
	}
	return out, rouse.Wrap(op, err)
}

// Delete ends what runs and removes the session, its children with it.
func (l *Lanes) Delete(ctx context.Context, id string) error {
	const op = "session: delete"
	if _, err := l.Store.Session(ctx, id); err != nil {
		return rouse.Wrap(op, err)
	}
	children, err := l.Store.Children(ctx, id)
	if err != nil {
		return rouse.Wrap(op, err)
	}
	for i := range children {
		if err := l.Delete(ctx, children[i].ID); err != nil && rouse.KindOf(err) != rouse.NotFound {
			return err
		}
	}
	if err := l.Pause(ctx, id); err != nil { // nothing new starts while it goes
		return rouse.Wrap(op, err)
	}
	if err := l.Abort(ctx, id); err != nil {
		return rouse.Wrap(op, err)
	}
	var queued []rouse.Turn
	if queued, err = l.Store.Turns(ctx, id, 0); err != nil {
		return rouse.Wrap(op, err)
	}
	err = l.Store.Write(ctx, store.Promise, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		return tx.DeleteSession(s)
	})
	if err == nil {
		l.postExisting(id, reset{}) // an agent's process would wait for its next prompt
	}
	for i := range queued {
		l.waits.wake(queued[i].ID)
	}
	return rouse.Wrap(op, err)
}

// Pause lets the running turn end and dispatches nothing after it; intake is
// refused from now on. Pausing twice is no error.
func (l *Lanes) Pause(ctx context.Context, id string) error {
	return rouse.Wrap("session: pause", l.setPause(ctx, id, true))
}

// Resume ends a pause; the queue runs.
func (l *Lanes) Resume(ctx context.Context, id string) error {
	err := l.setPause(ctx, id, false)
	if err == nil {
		l.post(id, kick{})
	}
	return rouse.Wrap("session: resume", err)
}

func (l *Lanes) setPause(ctx context.Context, id string, pause bool) error {
	return l.Store.Write(ctx, store.Promise, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil || s.Pause == pause {
			return err
		}
		s.Pause = pause
		if err := tx.UpdateSession(s); err != nil {
			return err
		}
		kind := rouse.SessionResumed
		if pause {
			kind = rouse.SessionPaused
		}
		open, err := tx.Incident(s.ID)
		if err != nil {
			return err
		}
		return tx.Emit(rouse.Event{Type: kind, SessionID: s.ID, Directory: s.Directory}, rouse.FactOf(s, open))
	})
}
