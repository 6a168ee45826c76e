package api

import (
	"context"
	"fmt"
	"time"

	"rouse"
	"rouse/internal/store"
)

// Row is a session as `rouse ps` shows it.
type Row struct {
	ID           string             `json:"id"`
	Title        string             `json:"title"`
	Directory    string             `json:"directory"`
	Agent        string             `json:"agent"`
	Engine       string             `json:"engine"`
	Model        *Model             `json:"model"`
	State        rouse.SessionState `json:"state" enum:"idle,generating,waiting,paused"`
	WaitingFor   *string            `json:"waiting_for" nullable:"true"`
	Outcome      *rouse.TurnState   `json:"outcome" nullable:"true"`
	Verdict      *string            `json:"verdict" nullable:"true"`
	Evidence     []string           `json:"evidence"`
	Until        *string            `json:"until" nullable:"true" format:"date-time"`
	Turn         *string            `json:"turn" nullable:"true"`
	Generation   uint64             `json:"generation"`
	Queued       int                `json:"queued"`
	Messages     int                `json:"messages"`
	PID          *int               `json:"pid" nullable:"true"`
	RSSBytes     *int64             `json:"rss_bytes" nullable:"true"`
	Parent       *string            `json:"parent" nullable:"true"`
	Orchestrator *string            `json:"orchestrator" nullable:"true"`
	CreatedAt    *string            `json:"created_at" format:"date-time"`
	UpdatedAt    *string            `json:"updated_at" format:"date-time"`
}

// Model names a model in this API.
type Model struct {
	Provider string `json:"provider_id"`
	Model    string `json:"model_id"`
	Variant  string `json:"variant,omitempty"`
}

func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// row describes a session at now, with what the watch makes of it.
func (o *own) row(ctx context.Context, s *rouse.Session, walls []rouse.Wall, now time.Time) (Row, error) {
	r := Row{ID: s.ID, Title: s.Title, Directory: s.Directory, Agent: s.Agent, Engine: s.Engine, State: s.State(),
		Evidence: []string{}, Turn: some(s.Running), Generation: s.Generation, Queued: s.Queued, Messages: s.Messages,
		Parent: some(s.ParentID), Orchestrator: some(s.Orchestrator), CreatedAt: stamp(s.Created), UpdatedAt: stamp(s.Updated)}
	if !s.Model.IsZero() {
		r.Model = &Model{s.Model.Provider, s.Model.Model, s.Model.Variant}
	}
	if s.Outcome != "" {
		r.Outcome = &s.Outcome
	}
	if s.Running != "" {
		r.WaitingFor = some(s.WaitingFor)
	}
	l, err := o.lookAt(ctx, s, walls, now)
	if err != nil {
		return r, err
	}
	r.Verdict, r.Until, r.Generation = l.code(), stamp(l.Verdict.Until), l.generation()
	if pid := o.Sessions.Process(s.ID); pid != 0 {
		if alive, rss := o.Process(pid); alive {
			r.PID = &pid
			if rss > 0 {
				r.RSSBytes = &rss
			}
		}
	}
	v := l.Vitals
	if v == nil {
		if l.last != nil {
			r.Evidence = lastWords(l.last)
		}
		return r, nil
	}
	r.Evidence = evidence(v, &l.Verdict, now)
	return r, nil
}

// evidence says in sentences what is known of a running turn.
func evidence(v *rouse.Vitals, found *rouse.Verdict, now time.Time) []string {
	out := []string{"no sign of progress yet"}
	if !v.LastGenuine.IsZero() {
		out[0] = fmt.Sprintf("last progress %s ago (%d in all, %d bytes of text)", ago(now, v.LastGenuine), v.Counters.Genuine, v.Counters.TextBytes)
	}
	if v.StoreDown {
		out = append([]string{"the database refuses writes"}, out...)
	}
	if found.Facts.Frozen {
		out = append(out, "two samples show the same progress")
	}
	if w := v.Waiting; w != nil {
		out = append(out, fmt.Sprintf("a %s is open for %s", w.For, ago(now, w.Since)))
	}
	if t := v.OpenTool; t != nil {
		name := t.Title
		if name == "" {
			name = t.Name
		}
		out = append(out, fmt.Sprintf("tool %q runs for %s", rouse.Clip(name, 80), ago(now, t.Since)))
	}
	if r := v.Retry; r != nil {
		out = append(out, fmt.Sprintf("attempt %d failed (%s): next at %s", r.Attempt, r.Class, *stamp(r.Next)))
	}
	out = append(out, fmt.Sprintf("turn %d runs for %s", v.Generation, ago(now, v.Started)))
	if v.Draining {
		out = append(out, "the engine has not answered the end of its turn yet")
	}
	return out
}

func ago(now, t time.Time) time.Duration { return max(0, now.Sub(t)).Truncate(100 * time.Millisecond) }

// lastWords says how the last turn ended.
func lastWords(t *rouse.Turn) []string {
	out := []string{}
	if f := t.Failure; f != nil {
		out = append(out, fmt.Sprintf("%s: %s", f.Code, rouse.Clip(f.Message, 200)))
		if !f.ResetAt.IsZero() {
			out = append(out, "capacity returns at "+*stamp(f.ResetAt))
		}
	}
	if !t.Ended.IsZero() && !t.Started.IsZero() {
		out = append(out, fmt.Sprintf("turn %d took %s", t.Generation, ago(t.Ended, t.Started)))
	}
	return out
}

// ListInput selects sessions.
type ListInput struct {
	Directory string `query:"directory" doc:"Only sessions of this directory"`
	State     string `query:"state" enum:"idle,generating,waiting,paused" doc:"Only sessions in this state; without cursor"`
	Search    string `query:"search" doc:"Part of the title"`
	Limit     int    `query:"limit" minimum:"0" maximum:"10000" doc:"0 is all"`
	Cursor    string `query:"cursor" doc:"next of the page before"`
}

// ListOutput is a page of sessions, most recently updated first.
type ListOutput struct {
	Body struct {
		Sessions []Row   `json:"sessions"`
		Total    int     `json:"total"`
		HasMore  bool    `json:"has_more"`
		Next     *string `json:"next" nullable:"true"`
	}
}

func (o *own) listSessions(ctx context.Context, in *ListInput) (*ListOutput, error) {
	f := store.SessionFilter{Directory: in.Directory, Search: in.Search, Limit: in.Limit, Cursor: in.Cursor}
	state := rouse.SessionState(in.State)
	if state != "" { // a derived fact: the store cannot page by it
		f.Limit, f.Cursor, f.Busy = 0, "", state == rouse.Generating || state == rouse.Waiting
	}
	page, err := o.Store.Sessions(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &ListOutput{}
	out.Body.Sessions, out.Body.Total, out.Body.HasMore, out.Body.Next = []Row{}, page.Total, page.HasMore, some(page.Next)
	if state != "" {
		out.Body.Total = 0
	}
	walls, err := o.Store.Walls(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i := range page.Sessions {
		s := &page.Sessions[i]
		if state != "" {
			if s.State() != state {
				continue
			}
			if out.Body.Total++; in.Limit > 0 && out.Body.Total > in.Limit {
				out.Body.HasMore = true
				continue
			}
		}
		row, err := o.row(ctx, s, walls, now)
		if err != nil {
			return nil, err
		}
		out.Body.Sessions = append(out.Body.Sessions, row)
	}
	return out, nil
}

// SessionInput names a session.
type SessionInput struct {
	ID string `path:"id"`
}

// RowOutput is one session.
type RowOutput struct{ Body Row }

func (o *own) getSession(ctx context.Context, in *SessionInput) (*RowOutput, error) {
	s, err := o.Store.Session(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	walls, err := o.Store.Walls(ctx)
	if err != nil {
		return nil, err
	}
	row, err := o.row(ctx, s, walls, time.Now())
	return &RowOutput{row}, err
}

// IdentityOutput is who a session is, from the durable record: what a session
// that suspects itself to be stale reads. Fields that no record fills are null.
type IdentityOutput struct {
	Body struct {
		Session      string  `json:"session"`
		Role         string  `json:"role" enum:"primary,worker,subagent"`
		Orchestrator *string `json:"orchestrator" nullable:"true"`
		Parent       *string `json:"parent" nullable:"true"`
		Owner        *string `json:"owner" nullable:"true"`
		Generation   uint64  `json:"generation"`
		Claim        *string `json:"claim" nullable:"true"`
		LastReport   *string `json:"last_report" nullable:"true"`
		SupersededBy *string `json:"superseded_by" nullable:"true"`
	}
}

func (o *own) identity(ctx context.Context, in *SessionInput) (*IdentityOutput, error) {
	s, err := o.Store.Session(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := &IdentityOutput{}
	b := &out.Body
	b.Session, b.Generation, b.Role = s.ID, s.Generation, "primary"
	b.Orchestrator, b.Parent = some(s.Orchestrator), some(s.ParentID)
	switch {
	case s.ParentID != "":
		b.Role = "subagent"
	case s.Orchestrator != "":
		b.Role = "worker"
	}
	return out, nil
}
