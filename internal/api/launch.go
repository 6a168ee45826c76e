package api

import (
	"context"
	"net/http"
	"time"

	"rouse"
	"rouse/internal/feed"
	"rouse/internal/session"
	"rouse/internal/store"
)

const (
	verifyDefault = 60  // seconds until a launch must generate
	verifyMax     = 600 // the longest that may be asked for
)

// LaunchPart is a part of a launch's prompt.
type LaunchPart struct {
	Type     string `json:"type" enum:"text,file"`
	Text     string `json:"text,omitempty"`
	Mime     string `json:"mime,omitempty"`
	Filename string `json:"filename,omitempty"`
	URL      string `json:"url,omitempty" doc:"data:, file: or http(s): URL"`
}

// LaunchInput is a launch: create, prompt, verify.
type LaunchInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"The same key and body give the same session and turn"`
	Body           struct {
		Directory        string       `json:"directory,omitempty" doc:"Absolute; the orchestrator's, else the server's own"`
		Title            string       `json:"title,omitempty"`
		Agent            string       `json:"agent,omitempty"`
		Model            string       `json:"model,omitempty" doc:"provider/model; the orchestrator's, else the default"`
		Prompt           string       `json:"prompt,omitempty" doc:"The prompt's text; or parts"`
		Parts            []LaunchPart `json:"parts,omitempty"`
		Orchestrator     string       `json:"orchestrator,omitempty" doc:"The session that launches and may prompt, cancel and rescue"`
		Force            bool         `json:"force,omitempty" doc:"Launch although a usage limit is known to stand"`
		Attended         bool         `json:"attended,omitempty" doc:"Somebody answers permissions; else what would ask is rejected"`
		Auto             bool         `json:"auto,omitempty" doc:"What would ask is allowed instead of rejected; a user's token only"`
		VerifyTimeoutSec int          `json:"verify_timeout_sec,omitempty" minimum:"0" maximum:"600" doc:"0 is 60"`
	}
}

// FirstEvent is the first progress of a turn.
type FirstEvent struct {
	Kind string  `json:"kind" doc:"text, reasoning, tool, plan, permission, question, or completed"`
	At   *string `json:"at" format:"date-time"`
}

// LaunchOutput is a launch that generates.
type LaunchOutput struct {
	Body struct {
		Session    string      `json:"session"`
		Turn       string      `json:"turn"`
		Generation uint64      `json:"generation"`
		Message    string      `json:"message"`
		Verified   bool        `json:"verified"`
		FirstEvent *FirstEvent `json:"first_event"`
		Model      *Model      `json:"model"`
		Warnings   []string    `json:"warnings"`
	}
}

// launchFailed is the body of a launch that does not generate; its session
// stays.
type launchFailed struct {
	Name string `json:"name"`
	Data struct {
		Message  string         `json:"message"`
		Session  string         `json:"session"`
		Turn     string         `json:"turn"`
		Verdict  *string        `json:"verdict"`
		Failure  *rouse.Failure `json:"failure"`
		Incident *string        `json:"incident"`
	} `json:"data"`
}

func (o *own) launch(ctx context.Context, in *LaunchInput) (*LaunchOutput, error) {
	n, p, err := o.plan(ctx, in)
	if err != nil {
		return nil, err
	}
	if !in.Body.Force {
		if err := o.admitLaunch(ctx, n.Agent, n.Model); err != nil {
			return nil, err
		}
	}
	p.Force = in.Body.Force
	if in.IdempotencyKey != "" {
		raw, err := Marshal(in.Body)
		if err != nil {
			return nil, err
		}
		n.Key, n.BodyHash = "launch:"+Who(ctx).Session+":"+in.IdempotencyKey, BodyHash(string(raw))
		p.Key, p.BodyHash = n.Key+":prompt", n.BodyHash
	}
	s, warning, err := o.Sessions.Create(ctx, n)
	if err != nil {
		return nil, err
	}
	news, err := o.Feed.Subscribe(feed.Filter{Session: s.ID})
	if err != nil {
		return nil, err
	}
	defer news.Close()
	p.SessionID = s.ID
	accepted, err := o.Sessions.Prompt(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &LaunchOutput{}
	b := &out.Body
	b.Session, b.Turn, b.Generation, b.Message, b.Warnings = s.ID, accepted.TurnID, accepted.Generation, accepted.MessageID, []string{}
	if warning != "" {
		b.Warnings = append(b.Warnings, warning)
	}
	limit := verifyDefault
	if in.Body.VerifyTimeoutSec > 0 {
		limit = in.Body.VerifyTimeoutSec
	}
	first, turn, err := o.verify(ctx, s.ID, accepted.TurnID, news, time.Duration(limit)*time.Second)
	if err != nil {
		return nil, err
	}
	if first == nil {
		return nil, o.notGenerating(ctx, s.ID, turn, limit)
	}
	b.Verified, b.FirstEvent = true, first
	if !turn.Model.IsZero() {
		b.Model = &Model{turn.Model.Provider, turn.Model.Model, turn.Model.Variant}
	}
	return out, nil
}

// plan makes session and prompt of what was asked for.
func (o *own) plan(ctx context.Context, in *LaunchInput) (session.NewSession, session.Prompt, error) {
	b := &in.Body
	n := session.NewSession{Title: b.Title, Directory: b.Directory, Agent: b.Agent, Orchestrator: b.Orchestrator,
		// Nobody is there to be asked a question.
		Permission: []rouse.PermissionRule{{Permission: "question", Pattern: "*", Action: rouse.Deny}}}
	p := session.Prompt{Unattended: !b.Attended}
	if b.Model != "" {
		ref, err := rouse.ParseModelRef(b.Model)
		if err != nil {
			return n, p, rouse.FieldError("launch", "model", "%s", rouse.SafeMessage(err))
		}
		n.Model = ref
	}
	who := Who(ctx)
	if who.Scope == Agent {
		n.Orchestrator = who.Session
	}
	if b.Auto {
		if who.Scope == Agent {
			return n, p, rouse.Errorf(rouse.Denied, "launch", "auto allows what a person would be asked for: a session's own token may not give that")
		}
		if a, ok := o.Config().Agent(b.Agent); ok { // an unknown one is refused by Create
			n.Permission = append(a.Allowing(), n.Permission...)
		}
	}
	if n.Orchestrator != "" {
		from, err := o.Store.Session(ctx, n.Orchestrator)
		if err != nil {
			return n, p, rouse.FieldError("launch", "orchestrator", "orchestrator: there is no session %q", rouse.Clip(n.Orchestrator, 80))
		}
		if n.Directory == "" {
			n.Directory = from.Directory
		}
		if n.Model.IsZero() {
			n.Model = from.Model
		}
	}
	if n.Directory == "" {
		n.Directory = o.Directory
	}
	switch {
	case b.Prompt != "" && len(b.Parts) > 0:
		return n, p, rouse.FieldError("launch", "prompt", "prompt and parts: use one of them")
	case b.Prompt != "":
		p.Parts = []rouse.Part{{Kind: rouse.TextPart, Text: b.Prompt}}
	case len(b.Parts) == 0:
		return n, p, rouse.FieldError("launch", "prompt", "prompt: is missing")
	}
	for _, part := range b.Parts {
		if part.Type == "file" {
			p.Parts = append(p.Parts, rouse.Part{Kind: rouse.FilePart, File: &rouse.File{Mime: part.Mime, Filename: part.Filename, URL: part.URL}})
			continue
		}
		p.Parts = append(p.Parts, rouse.Part{Kind: rouse.TextPart, Text: part.Text})
	}
	return n, p, nil
}

// verify waits for the first progress of the turn, or its end. first is nil
// when it ended without a completed answer, or the time is over.
func (o *own) verify(ctx context.Context, sessionID, turnID string, news *feed.Subscription, limit time.Duration) (first *FirstEvent, turn *rouse.Turn, err error) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		if turn, err = o.Store.Turn(ctx, turnID); err != nil {
			return nil, nil, err
		}
		switch {
		case turn.State == rouse.TurnCompleted:
			return &FirstEvent{Kind: "completed", At: stamp(turn.Ended)}, turn, nil
		case turn.State.Settled():
			return nil, turn, nil
		}
		if v, ok := o.Sessions.Vitals(sessionID); ok && v.TurnID == turnID && v.FirstGenuine != "" {
			return &FirstEvent{Kind: v.FirstGenuine, At: stamp(v.LastGenuine)}, turn, nil
		}
		select {
		case <-news.Bell():
		case <-deadline.C:
			return nil, turn, nil
		case <-o.Closing:
			return nil, nil, rouse.Errorf(rouse.Unavailable, "launch", "the server is shutting down; the prompt of session %s is stored", sessionID)
		case <-ctx.Done():
			return nil, nil, rouse.Wrap("launch", ctx.Err())
		}
	}
}

// notGenerating explains a launch that did not start.
func (o *own) notGenerating(ctx context.Context, sessionID string, turn *rouse.Turn, limit int) error {
	body := launchFailed{Name: "LaunchFailed"}
	d := &body.Data
	d.Session, d.Turn, d.Failure = sessionID, turn.ID, turn.Failure
	switch {
	case turn.Failure != nil && turn.Failure.Message != "":
		d.Message = turn.Failure.Message
	case turn.State.Settled():
		d.Message = "the turn ended as " + string(turn.State) + " without an answer"
	case turn.State == rouse.TurnQueued:
		d.Message = "the prompt still waits to be started; it is stored"
	default:
		d.Message = "no sign of generation within " + (time.Duration(limit) * time.Second).String() + "; the turn still runs"
	}
	s, err := o.Store.Session(ctx, sessionID)
	if err != nil {
		return err
	}
	open, err := o.Store.Incidents(ctx, store.IncidentFilter{Session: sessionID, Status: rouse.IncidentOpen, Limit: 1})
	if err != nil {
		return err
	}
	if len(open) > 0 {
		d.Incident = &open[0].ID
	}
	walls, err := o.Store.Walls(ctx)
	if err != nil {
		return err
	}
	l, err := o.lookAt(ctx, s, walls, time.Now())
	if err != nil {
		return err
	}
	d.Verdict = l.code()
	return &statusError{status: http.StatusBadGateway, body: body, text: d.Message}
}
