package session

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/store"
)

// Prompt is a prompt that asks to be accepted.
type Prompt struct {
	SessionID string
	// Key makes it happen once; empty gets a key of its own. BodyHash tells
	// another request under the same key.
	Key, BodyHash string
	// MessageID is the client's id for the message, or "".
	MessageID  string
	Parts      []rouse.Part // kind and body; ids are given here unless set
	Agent      string
	Model      rouse.ModelRef
	System     string
	Tools      map[string]bool
	Format     json.RawMessage
	NoReply    bool
	DelaySec   int
	Unattended bool
	// Force asks the provider although a wall stands.
	Force   bool
	Kind    rouse.TurnKind
	Command string
	RetryOf string
	Rescue  string // the rescue whose prompt this is
	// IfIdle refuses (Conflict) instead of queueing.
	IfIdle bool
}

// Accepted is what became of a prompt. It is on disk.
type Accepted struct {
	Intake     rouse.Intake
	MessageID  string
	TurnID     string // empty for noReply
	Generation uint64
	Replayed   bool
	FireAt     time.Time // delayed prompts
}

// Prompt accepts a prompt: when it returns without error the prompt is stored
// and will end in exactly one settled turn. Errors: NotFound, Invalid (field
// named: agent, model, parts, messageID), Conflict (paused, queue full, busy;
// nothing stored), Mismatch, Unsupported (delay), Unavailable.
func (l *Lanes) Prompt(ctx context.Context, p Prompt) (Accepted, error) {
	const op = "session: prompt"
	s, err := l.Store.Session(ctx, p.SessionID)
	if err != nil {
		return Accepted{}, rouse.Wrap(op, err)
	}
	start, err := l.start(s, &p)
	if err != nil {
		return Accepted{}, rouse.Wrap(op, err)
	}
	start.Maintenance, _, _ = l.hold.state()
	crash.At(crash.PromptBefore)
	out, err := l.Store.StartTurn(ctx, start, rouse.DecideIntake)
	if p.Key == "" && rouse.KindOf(err) == rouse.Mismatch { // nobody sent a key: the id is one
		err = &rouse.Error{Kind: rouse.Mismatch, Op: op, Field: "messageID",
			Msg: "messageID: " + rouse.Clip(p.MessageID, 64) + " was used for another prompt; use a new one"}
	}
	if err != nil {
		return Accepted{}, rouse.Wrap(op, err)
	}
	crash.At(crash.PromptAfter)
	if p.DelaySec > 0 && !out.Replayed {
		l.Log.Info("intake.delay_dropped", "session", s.ID, "intake", out.Intake)
	}
	if out.TurnID != "" && !out.Replayed {
		if out.Intake == rouse.Preempts {
			l.post(s.ID, superseded{})
		}
		l.post(s.ID, kick{})
	}
	return Accepted{Intake: out.Intake, MessageID: out.MessageID, TurnID: out.TurnID, Generation: out.Generation, Replayed: out.Replayed}, nil
}

// start fills in what the prompt leaves out and refuses what cannot work.
func (l *Lanes) start(s *rouse.Session, p *Prompt) (store.Start, error) {
	agent, model, err := l.resolve(s, p)
	if err != nil {
		return store.Start{}, err
	}
	if _, err := CheckDirectory(s.Directory); err != nil && !p.NoReply {
		return store.Start{}, err
	}
	now := time.Now().UTC()
	message := rouse.Message{ID: p.MessageID, SessionID: s.ID, Role: rouse.User, Agent: agent, Model: model,
		System: p.System, Tools: p.Tools, Format: p.Format}
	if message.ID == "" {
		message.ID = rouse.NewID(rouse.MessagePrefix, now)
	} else if err := rouse.CheckID(rouse.MessagePrefix, message.ID); err != nil {
		return store.Start{}, &rouse.Error{Kind: rouse.Invalid, Op: "message id", Field: "messageID", Err: err}
	}
	for i := range p.Parts {
		if p.Parts[i].ID == "" {
			p.Parts[i].ID = rouse.NewID(rouse.PartPrefix, now)
		}
	}
	start := store.Start{SessionID: s.ID, Key: p.Key, Hash: p.BodyHash, Message: message, Parts: p.Parts, DelaySec: p.DelaySec,
		MaxQueued: l.MaxQueued, IfIdle: p.IfIdle, Live: l.Live}
	if !p.NoReply {
		start.Turn = &rouse.Turn{ID: rouse.NewID(rouse.TurnPrefix, now), SessionID: s.ID, Kind: p.Kind, Command: p.Command,
			UserMessage: message.ID, RetryOf: p.RetryOf, Rescue: p.Rescue, Agent: agent, Model: model, System: p.System, Tools: p.Tools, Format: p.Format,
			Unattended: p.Unattended, Force: p.Force}
	}
	if start.Key == "" {
		start.Key = "message:" + message.ID
	}
	return start, nil
}

// resolve names agent and model: what the prompt says, else the session's
// agent and its model, else what the session used last, else the default. A
// model named by the caller must be usable; a fallback is tried and may fail.
func (l *Lanes) resolve(s *rouse.Session, p *Prompt) (agent string, model rouse.ModelRef, err error) {
	name := p.Agent
	if name == "" {
		name = s.Agent
	}
	a, err := l.primary(name, s.ParentID != "")
	if err != nil {
		return "", model, err
	}
	if a.Program && p.Kind == rouse.TurnCompact {
		p.Model = rouse.ModelRef{} // it summarizes by itself, whatever model is named
	}
	if !p.Model.IsZero() {
		if model, err = a.named(p.Model); err != nil {
			return "", model, err
		}
		return a.Name, model, l.Models.CheckModel(model)
	}
	chosen := s.Model
	if p.Agent != "" && a.Name != s.Agent && !a.Program && strings.HasPrefix(chosen.Provider, rouse.AgentProvider) {
		chosen = rouse.ModelRef{} // the session goes back from an agent program to Rouse's own loop
	}
	if model = l.usual(a, chosen); !model.IsZero() {
		return a.Name, model, nil
	}
	return "", model, rouse.FieldError("session: model", "model",
		"no model is named and none is configured: name one as {\"providerID\":…,\"modelID\":…} or \"provider/model\", or set \"model\" in the configuration")
}

// usual is the model of a prompt that names none: the agent's, else the
// session's, else the default; of a program, the one that was chosen for the
// session.
func (l *Lanes) usual(a Agent, chosen rouse.ModelRef) rouse.ModelRef {
	if a.Program && chosen.Provider == a.Model.Provider {
		return chosen
	}
	for _, m := range []rouse.ModelRef{a.Model, chosen, l.Models.DefaultModel()} {
		if !m.IsZero() {
			return m
		}
	}
	return rouse.ModelRef{}
}

// Wait returns the turn when it is settled; NotFound when it never was or its
// session was deleted meanwhile.
func (l *Lanes) Wait(ctx context.Context, turnID string) (*rouse.Turn, error) {
	const op = "session: wait"
	for {
		settled, forget := l.waits.add(turnID)
		t, err := l.Store.Turn(ctx, turnID)
		if err != nil || t.State.Settled() {
			forget()
			return t, rouse.Wrap(op, err)
		}
		select {
		case <-settled:
		case <-ctx.Done():
			forget()
			return nil, rouse.Wrap(op, context.Cause(ctx))
		case <-l.ctx.Done():
			forget()
			return nil, errShutdown
		}
	}
}
