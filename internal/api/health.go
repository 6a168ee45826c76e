package api

import (
	"context"
	"time"

	"rouse"
	"rouse/internal/store"
	"rouse/internal/watch"
)

// Watcher is what the own API asks of the watch.
type Watcher interface {
	// Look judges a session now, from its row, the turn that ended last (may be
	// nil) and the walls that stand.
	Look(now time.Time, s *rouse.Session, last *rouse.Turn, walls []rouse.Wall) watch.Look
}

// look is a session as the watch sees it, with what that rests on.
type look struct {
	watch.Look
	session   *rouse.Session
	last      *rouse.Turn // the turn that ended last; nil when none, or while one runs
	elsewhere *rouse.Turn // the turn that runs, but not here
	wall      *rouse.Wall // that the last turn ran into and that still stands
}

// lookAt gathers what a judgement needs.
func (o *own) lookAt(ctx context.Context, s *rouse.Session, walls []rouse.Wall, now time.Time) (look, error) {
	l := look{session: s}
	var err error
	if s.Running == "" && s.Outcome != "" {
		if l.last, err = o.Store.LastTurn(ctx, s); err != nil {
			return l, err
		}
	}
	l.Look = o.Watch.Look(now, s, l.last, walls)
	if s.Running != "" && l.Vitals == nil {
		if l.elsewhere, err = o.Store.Turn(ctx, s.Running); err != nil && rouse.KindOf(err) != rouse.NotFound { // deleted since
			return l, err
		}
	}
	l.wall = watch.Met(now, l.last, walls)
	return l, nil
}

// generation is the one that the look is about.
func (l *look) generation() uint64 {
	switch {
	case l.Vitals != nil:
		return l.Vitals.Generation
	case l.elsewhere != nil:
		return l.elsewhere.Generation
	case l.last != nil:
		return l.last.Generation
	}
	return l.session.Generation
}

// turn is the one that runs, or ran last.
func (l *look) turn() *string {
	if l.session.Running == "" && l.last != nil {
		return &l.last.ID
	}
	return some(l.session.Running)
}

// state is the session's; the vitals know of an open request a moment before
// the row does.
func (l *look) state() rouse.SessionState {
	if c := l.Verdict.Code; c == rouse.WaitingPermission || c == rouse.WaitingQuestion {
		return rouse.Waiting
	}
	return l.session.State()
}

// code is the verdict's, or nil.
func (l *look) code() *string { return some(string(l.Verdict.Code)) }

// HealthVerdict is what the watch makes of a session.
type HealthVerdict struct {
	Code       string             `json:"code" doc:"working, quiet, quiet_tool, hung, never_started, retrying, waiting_permission, waiting_question, waiting_quota, unresponsive, orphaned, settled:<outcome>"`
	Severity   string             `json:"severity" enum:"none,notice,action,failed"`
	Since      *string            `json:"since" nullable:"true" format:"date-time"`
	Until      *string            `json:"until" nullable:"true" format:"date-time" doc:"When it ends by itself; null when nobody knows"`
	Confidence string             `json:"confidence" enum:"certain,likely"`
	Why        string             `json:"why" doc:"One sentence in English; code and facts are for other languages"`
	Facts      rouse.VerdictFacts `json:"facts"`
	Next       []string           `json:"next" doc:"What may follow: wait, answer, cancel, rescue, interrupt, fail, continue_with"`
}

func verdictRow(v *rouse.Verdict) *HealthVerdict {
	k, ok := v.Code.Kind()
	if !ok {
		return nil
	}
	return &HealthVerdict{Code: string(v.Code), Severity: string(k.Severity), Since: stamp(v.Since), Until: stamp(v.Until), Confidence: v.Confidence,
		Why: v.Why(), Facts: v.Facts, Next: append([]string{}, v.Next...)}
}

// HealthSample is what a turn showed at a moment.
type HealthSample struct {
	At       *string            `json:"at" format:"date-time"`
	State    rouse.SessionState `json:"state"`
	Counters rouse.Counters     `json:"counters"`
}

// HealthTool is the top-level tool call that runs.
type HealthTool struct {
	ID    string  `json:"id"`
	Title string  `json:"title" doc:"Its title or name, never its arguments"`
	Name  string  `json:"name"`
	Since *string `json:"since" format:"date-time"`
}

// HealthProcess is the process behind the turn.
type HealthProcess struct {
	PID          int     `json:"pid"`
	Alive        bool    `json:"alive"`
	RSSBytes     *int64  `json:"rss_bytes" nullable:"true"`
	LastAnswerAt *string `json:"last_answer_at" nullable:"true" format:"date-time"`
}

// HealthWaiting is the person or limit that is waited for.
type HealthWaiting struct {
	For   string  `json:"for" enum:"permission,question,quota"`
	ID    string  `json:"id"`
	Since *string `json:"since" format:"date-time"`
}

// HealthRetry is a retry in progress.
type HealthRetry struct {
	Attempt int         `json:"attempt"`
	NextAt  *string     `json:"next_at" format:"date-time"`
	Class   rouse.Class `json:"class"`
	Message string      `json:"message"`
}

// HealthWall is the limit that the last turn ran into.
type HealthWall struct {
	ID      string  `json:"id"`
	ResetAt *string `json:"reset_at" nullable:"true" format:"date-time"`
}

// HealthLease says which server runs the turn.
type HealthLease struct {
	Boot      string  `json:"boot"`
	Live      bool    `json:"live"`
	Here      bool    `json:"here" doc:"This server runs it"`
	RenewedAt *string `json:"renewed_at" nullable:"true" format:"date-time"`
}

// HealthStderr is what the engine's diagnostics brought.
type HealthStderr struct {
	Supported bool           `json:"supported"`
	LastClass *string        `json:"last_class" nullable:"true"`
	Ignored   map[string]int `json:"ignored" doc:"Lines left out, by reason"`
}

// HealthEvidence is what a verdict rests on.
type HealthEvidence struct {
	Samples       []HealthSample `json:"samples" doc:"At most two, older first, 30 s to 60 s apart once the turn is that old"`
	ProgressAgeMS *int64         `json:"progress_age_ms" nullable:"true" doc:"Since the last progress, or the start while there was none"`
	SilenceMS     *int64         `json:"silence_ms" nullable:"true" doc:"The same without waiting for people and known retries: what is judged"`
	OpenTool      *HealthTool    `json:"open_tool"`
	Process       *HealthProcess `json:"process"`
	Waiting       *HealthWaiting `json:"waiting"`
	Retry         *HealthRetry   `json:"retry"`
	Wall          *HealthWall    `json:"wall"`
	Lease         *HealthLease   `json:"lease"`
	Stderr        HealthStderr   `json:"stderr"`
	// ModelConfirmed: an agent may take any model's name and use another.
	ModelConfirmed *string `json:"model_confirmed" nullable:"true" enum:"true,false,unknown" doc:"Whether the engine really uses the turn's model"`
}

// HealthNotice is the notice of the generation.
type HealthNotice struct {
	Generation uint64  `json:"generation"`
	Code       string  `json:"code"`
	Tool       *string `json:"tool" nullable:"true"`
	At         *string `json:"at" format:"date-time"`
	Visible    bool    `json:"visible"`
}

// HealthOutput is a session's state with its evidence.
type HealthOutput struct {
	Body struct {
		Session    string             `json:"session"`
		Turn       *string            `json:"turn" nullable:"true" doc:"The one that runs, or ran last"`
		Generation uint64             `json:"generation"`
		State      rouse.SessionState `json:"state"`
		Outcome    *rouse.TurnState   `json:"outcome" nullable:"true"`
		Queued     int                `json:"queued"`
		Verdict    *HealthVerdict     `json:"verdict" doc:"null before the first turn"`
		Evidence   HealthEvidence     `json:"evidence"`
		Notice     *HealthNotice      `json:"notice"`
		Incident   *IncidentRow       `json:"incident" doc:"The open one"`
	}
}

func (o *own) health(ctx context.Context, in *SessionInput) (*HealthOutput, error) {
	s, err := o.Store.Session(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	walls, err := o.Store.Walls(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	l, err := o.lookAt(ctx, s, walls, now)
	if err != nil {
		return nil, err
	}
	out := &HealthOutput{}
	b := &out.Body
	b.Session, b.Turn, b.Generation, b.State, b.Queued = s.ID, l.turn(), l.generation(), l.state(), s.Queued
	if s.Outcome != "" {
		b.Outcome = &s.Outcome
	}
	b.Verdict, b.Evidence = verdictRow(&l.Verdict), o.healthEvidence(&l, now)
	if b.Evidence.Lease, err = o.lease(ctx, &l); err != nil {
		return nil, err
	}
	n, err := o.Store.Notice(ctx, s.ID, l.generation())
	if err != nil {
		return nil, err
	}
	if n != nil {
		visible := l.Vitals != nil && n.Shown(s.Running, l.Vitals.LastGenuine)
		b.Notice = &HealthNotice{n.Generation, n.Code, some(n.Tool), stamp(n.At), visible}
	}
	open, err := o.Store.Incidents(ctx, store.IncidentFilter{Session: s.ID, Status: "open", Limit: 1})
	if err == nil && len(open) > 0 {
		row := incidentRow(&open[0])
		b.Incident = &row
	}
	return out, err
}

// healthEvidence is all that is known beside the verdict.
func (o *own) healthEvidence(l *look, now time.Time) HealthEvidence {
	e := HealthEvidence{Samples: []HealthSample{}, Stderr: HealthStderr{Ignored: map[string]int{}}}
	if w := l.wall; w != nil {
		e.Wall = &HealthWall{w.ID, stamp(w.ResetAt)}
		e.Waiting = &HealthWaiting{"quota", w.ID, stamp(w.OpenedAt)}
	}
	v := l.Vitals
	if v == nil {
		return e
	}
	for _, s := range l.Samples {
		e.Samples = append(e.Samples, HealthSample{stamp(s.At), s.State, s.Counters})
	}
	e.ModelConfirmed = some(v.ModelConfirmed)
	age := max(0, now.Sub(v.Clock)).Milliseconds()
	e.ProgressAgeMS, e.SilenceMS = &age, &l.Verdict.Facts.SilenceMS
	if t := v.OpenTool; t != nil {
		title := t.Title
		if title == "" {
			title = t.Name
		}
		e.OpenTool = &HealthTool{t.ID, rouse.Clip(title, 200), t.Name, stamp(t.Since)}
	}
	if v.PID != 0 {
		p := &HealthProcess{PID: v.PID, LastAnswerAt: stamp(v.LastByte)}
		var rss int64
		if p.Alive, rss = o.Process(v.PID); rss > 0 {
			p.RSSBytes = &rss
		}
		e.Process = p
	}
	if w := v.Waiting; w != nil {
		e.Waiting = &HealthWaiting{w.For, w.ID, stamp(w.Since)}
	}
	if r := v.Retry; r != nil {
		e.Retry = &HealthRetry{r.Attempt, stamp(r.Next), r.Class, r.Message}
	}
	if d := v.Stderr; d != nil {
		e.Stderr.Supported, e.Stderr.LastClass = d.Supported == "supported", some(string(d.LastClass))
		if d.Ignored != nil {
			e.Stderr.Ignored = d.Ignored
		}
	}
	return e
}

// lease says which server runs the turn; nil when none runs.
func (o *own) lease(ctx context.Context, l *look) (*HealthLease, error) {
	boot := l.session.RunningBoot
	if boot == "" {
		return nil, nil
	}
	out := &HealthLease{Boot: boot, Here: l.Vitals != nil}
	leases, err := o.Store.Leases(ctx)
	for i := range leases {
		if leases[i].ID == boot {
			out.Live, out.RenewedAt = time.Since(leases[i].Renewed) < store.LeaseTerm, stamp(leases[i].Renewed)
		}
	}
	return out, err
}
