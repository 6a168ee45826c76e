package session

import (
	"context"
	"encoding/json"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/store"
)

// progressEvery bounds how often a running tool's progress is written.
const progressEvery = time.Second

// fold takes updates into the turn: text grows in memory at once, everything
// else is committed together.
func (ln *lane) fold(updates []engine.Update) {
	for i := range updates {
		u := &updates[i]
		if t, ok := u.Body.(engine.TitleSuggested); ok {
			ln.suggestTitle(t.Title)
			continue
		}
		if x, ok := u.Body.(engine.Exit); ok {
			ln.exited(x, u.Generation)
		}
		a := ln.turn
		if a == nil || u.Generation != a.turn.Generation {
			continue // late: it is about a turn that is over
		}
		a.turn.Epoch += b2i(u.Genuine)
		ln.foldOne(a, u)
	}
	if a := ln.turn; a != nil {
		if !a.begun && a.turn.Epoch > 1 { // it moves: what the engine started and chose is known by now
			a.begun = true
			ln.keepResume()
		}
		ln.commit()
	}
}

func b2i(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (ln *lane) foldOne(a *active, u *engine.Update) {
	switch b := u.Body.(type) {
	case engine.Text:
		ln.grow(a, rouse.TextPart, b.Text, nil, u.At)
	case engine.Reasoning:
		ln.grow(a, rouse.ReasoningPart, b.Text, b.Metadata, u.At)
	case engine.StepStarted:
		ln.startStep(a, b, u.At)
	case engine.StepEnded:
		ln.endStep(a, b, u.At)
	case engine.ToolStarted:
		ln.startTool(a, b, u.At)
	case engine.ToolProgress:
		ln.toolProgress(a, b, u.At)
	case engine.ToolEnded:
		ln.endTool(a, b, u.At)
	case engine.Plan:
		todos := b.Todos
		a.pending = append(a.pending, func(tx *store.Tx, s *rouse.Session) error { return tx.PutTodos(s, todos) })
	case engine.PermissionAsked:
		b.Request.Kind = rouse.ForPermission
		ln.openRequest(a, b.Request, u.At)
	case engine.QuestionAsked:
		b.Request.Kind = rouse.ForQuestion
		ln.openRequest(a, b.Request, u.At)
	case engine.RequestWithdrawn:
		if r, ok := a.requests[b.RequestID]; ok {
			ln.closeRequest(a, r, rouse.Reply{Verb: rouse.ReplyCancelled, By: "engine"})
		}
	case engine.Retry:
		ln.noteRetry(a, b, u.At)
	case engine.Resumed:
		if a.retry != nil {
			a.retry = nil
			a.emit(rouse.TurnRunningEvent, rouse.TurnFact{State: rouse.TurnRunning, Model: a.turn.Model})
		}
	case engine.Diagnostic:
		if b.Terminal {
			f := b.Failure
			ln.commit()
			ln.diagnosed(&f)
		}
	}
}

// grow adds text to the part of its kind, which is begun if another one, or
// none, grew before.
func (ln *lane) grow(a *active, kind rouse.PartKind, text string, metadata json.RawMessage, at time.Time) {
	if a.text != nil && a.text.part.Kind != kind {
		ln.closeText(a, at)
	}
	if a.text == nil {
		if text == "" && metadata == nil {
			return
		}
		ln.ensureMessage(a, at)
		p := &rouse.Part{ID: rouse.NewID(rouse.PartPrefix, at), SessionID: ln.id, MessageID: a.msg.ID, Kind: kind, Open: true, Start: at}
		a.text = &openText{part: p}
		a.grown = append(a.grown, a.text)
		a.put(p)
		ln.sink.mark(func(v *rouse.Vitals) { v.Counters.Parts++ })
	}
	if metadata != nil {
		a.text.part.Metadata = metadata
	}
	a.text.text = append(a.text.text, text...)
	a.text.show()
}

// show gives new text to whoever follows, once the part's start is committed.
func (t *openText) show() {
	if t.live != nil && len(t.text) > t.shown {
		t.live.Append(string(t.text[t.shown:]))
		t.shown = len(t.text)
	}
}

// closeText ends the growing part: its row gets the text, its chunks go.
func (ln *lane) closeText(a *active, at time.Time) {
	t := a.text
	if t == nil {
		return
	}
	a.text = nil
	t.part.Text, t.part.Open, t.part.End = string(t.text), false, at
	a.put(t.part, t.chunks...)
	a.attempt = append(a.attempt, t.part)
}

// ensureMessage begins an assistant message for an engine that knows no steps.
func (ln *lane) ensureMessage(a *active, at time.Time) {
	if a.msg == nil {
		ln.startStep(a, engine.StepStarted{}, at)
	}
}

// startStep begins an assistant message, or goes on with one whose first
// attempt broke.
func (ln *lane) startStep(a *active, b engine.StepStarted, at time.Time) {
	ln.closeText(a, at)
	if a.msg == nil {
		agent, model := b.Agent, b.Model
		if agent == "" {
			agent = a.turn.Agent
		}
		if model.IsZero() {
			model = a.turn.Model
		}
		parent := a.turn.UserMessage
		if b.Compaction && a.turn.Kind != rouse.TurnCompact {
			parent = ln.askCompaction(a, b.Auto, at)
		}
		a.msg = &rouse.Message{ID: rouse.NewID(rouse.MessagePrefix, at), SessionID: ln.id, Role: rouse.Assistant, Generation: a.turn.Generation,
			TurnID: a.turn.ID, ParentID: parent, Agent: agent, Model: model, Directory: a.session.Directory, Summary: b.Compaction, Created: at}
		a.answered = true
		a.putMessage()
		ln.sink.mark(func(v *rouse.Vitals) { v.Counters.Messages++ })
	}
	if a.turn.Kind == rouse.TurnShell {
		return // a person's own command is no model's step
	}
	a.attempt = nil
	p := &rouse.Part{ID: rouse.NewID(rouse.PartPrefix, at), SessionID: ln.id, MessageID: a.msg.ID, Kind: rouse.StepStart}
	a.put(p)
	ln.sink.mark(func(v *rouse.Vitals) { v.Counters.Parts++ })
}

// askCompaction stores the message that stands for the wish to summarize.
func (ln *lane) askCompaction(a *active, auto bool, at time.Time) string {
	m := rouse.Message{ID: rouse.NewID(rouse.MessagePrefix, at), SessionID: ln.id, Role: rouse.User, Generation: a.turn.Generation,
		TurnID: a.turn.ID, Agent: a.turn.Agent, Model: a.turn.Model, Created: at}
	extra, _ := json.Marshal(map[string]bool{"auto": auto}) // a map of bools always marshals
	p := rouse.Part{ID: rouse.NewID(rouse.PartPrefix, at), SessionID: ln.id, MessageID: m.ID, Kind: rouse.CompactionPart, Extra: extra}
	gen := a.turn.Generation
	a.pending = append(a.pending, func(tx *store.Tx, s *rouse.Session) error {
		m, p := m, p
		if _, err := tx.PutMessage(s, &m); err != nil {
			return err
		}
		s.Messages++
		return tx.PutPart(s, &p, gen)
	})
	return m.ID
}

// endStep completes the assistant message.
func (ln *lane) endStep(a *active, b engine.StepEnded, at time.Time) {
	if a.msg == nil {
		return
	}
	ln.closeText(a, at)
	if a.turn.Kind != rouse.TurnShell {
		p := &rouse.Part{ID: rouse.NewID(rouse.PartPrefix, at), SessionID: ln.id, MessageID: a.msg.ID, Kind: rouse.StepFinish,
			Step: &rouse.Step{Reason: b.Finish, Usage: b.Usage}}
		a.put(p)
	}
	a.msg.Finish, a.msg.Usage, a.msg.Structured = b.Finish, a.msg.Usage.Add(b.Usage), b.Structured
	a.msg.Completed = at
	a.turn.Usage = a.turn.Usage.Add(b.Usage)
	a.putMessage()
	if a.msg.Summary {
		a.emit(rouse.SessionCompacted, nil)
	}
	a.msg = nil
}

func (ln *lane) startTool(a *active, b engine.ToolStarted, at time.Time) {
	if b.Parent != "" {
		return // a child's call is the parent's progress, not a part
	}
	ln.closeText(a, at)
	ln.ensureMessage(a, at)
	p := a.tools[b.CallID]
	if p == nil {
		p = &rouse.Part{ID: rouse.NewID(rouse.PartPrefix, at), SessionID: ln.id, MessageID: a.msg.ID, Kind: rouse.ToolPart, Open: true,
			Tool: &rouse.ToolCall{Name: b.Name, CallID: b.CallID}}
		a.tools[b.CallID] = p
		ln.sink.mark(func(v *rouse.Vitals) { v.Counters.Parts++ })
	}
	tool := *p.Tool // rows in flight keep theirs
	tool.State = b.State
	if b.Name != "" {
		tool.Name = b.Name
	}
	if b.Title != "" {
		tool.Title = b.Title
	}
	if b.Input != nil {
		tool.Input = b.Input
	}
	if b.Metadata != nil {
		tool.Metadata = b.Metadata
	}
	if b.State == rouse.ToolRunning && p.Start.IsZero() {
		p.Start = at
	}
	p.Tool = &tool
	a.put(p)
}

func (ln *lane) toolProgress(a *active, b engine.ToolProgress, at time.Time) {
	p := a.tools[b.CallID]
	if p == nil || b.Title == "" && b.Metadata == nil {
		return
	}
	tool := *p.Tool
	if b.Title != "" {
		tool.Title = b.Title
	}
	if b.Metadata != nil {
		tool.Metadata = b.Metadata
	}
	p.Tool = &tool
	if at.Sub(a.progress[b.CallID]) >= progressEvery {
		a.progress[b.CallID] = at
		a.put(p)
	}
}

func (ln *lane) endTool(a *active, b engine.ToolEnded, at time.Time) {
	p := a.tools[b.CallID]
	if p == nil {
		return
	}
	delete(a.tools, b.CallID)
	delete(a.progress, b.CallID)
	tool := *p.Tool
	tool.State, tool.Output, tool.Error, tool.Attachments = rouse.ToolCompleted, b.Output, b.Error, b.Attachments
	if b.Error != "" {
		tool.State = rouse.ToolFailed
	}
	if b.Title != "" {
		tool.Title = b.Title
	}
	if b.Metadata != nil {
		tool.Metadata = b.Metadata
	}
	if p.Start.IsZero() {
		p.Start = at
	}
	p.Tool, p.Open, p.End = &tool, false, at
	a.put(p)
}

// noteRetry shows the wait; what a broken attempt left behind is closed and
// marked, so that neither reader nor model takes it for the answer.
func (ln *lane) noteRetry(a *active, b engine.Retry, at time.Time) {
	a.retry = &rouse.RetryFact{Attempt: b.Attempt, Next: b.Next, Class: b.Class, Message: b.Message}
	if b.Broken {
		mark := &rouse.Broken{Attempt: b.Attempt, Reason: b.Message}
		if a.text != nil {
			a.text.part.Broken = mark
			ln.closeText(a, at)
		}
		for _, p := range a.attempt { // reasoning before the text, for one
			if p.Broken == nil {
				p.Broken = mark
				a.put(p)
			}
		}
		a.attempt = nil
		for id, p := range a.tools {
			p.Broken = mark
			ln.endTool(a, engine.ToolEnded{CallID: id, Error: "the model's stream broke before the call was complete"}, at)
		}
	}
	a.emit(rouse.TurnRetryEvent, a.retry)
}

// suggestTitle names a session that has no title of its own.
func (ln *lane) suggestTitle(title string) {
	if title == "" {
		return
	}
	ln.answers.Go(func() {
		err := ln.l.Store.Write(context.WithoutCancel(ln.l.ctx), store.Lazy, func(tx *store.Tx) error {
			s, err := tx.Session(ln.id)
			if err != nil || !rouse.IsDefaultTitle(s.Title) {
				return err
			}
			s.Title = rouse.Clip(title, 200)
			return tx.UpdateSession(s)
		})
		if err != nil {
			ln.l.Log.Debug("session.title", "session", ln.id, "err", err)
		}
	})
}
