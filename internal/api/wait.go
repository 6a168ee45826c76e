package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"rouse"
	"rouse/internal/feed"
	"rouse/internal/store"
)

// The conditions of a wait, beside verdict:<code>.
const (
	forSettled = "settled"
	forIdle    = "idle"
	forWall    = "wall"
	forPerson  = "needs_person"
	forVerdict = "verdict:"
)

// waitPoll is how often a wait looks again without being rung: a verdict may
// change by the passing of time alone.
const waitPoll = time.Second

// WaitInput says what is waited for.
type WaitInput struct {
	ID      string `path:"id"`
	For     string `query:"for" default:"settled" doc:"Comma-separated, whichever comes first: settled, idle, verdict:<code>, wall, needs_person"`
	Timeout int    `query:"timeout" default:"60" minimum:"0" maximum:"600" doc:"Seconds"`
}

// Resolve refuses a list that was sent empty: what was left out by mistake is
// not the default.
func (*WaitInput) Resolve(c huma.Context) []error {
	u := c.URL()
	if list, sent := u.Query()["for"]; !sent || strings.TrimSpace(strings.Join(list, "")) != "" {
		return nil
	}
	return []error{&huma.ErrorDetail{Location: "query.for", Message: "name what to wait for: " + accepted()}}
}

// accepted are the conditions in words.
func accepted() string {
	return fmt.Sprintf("settled, idle, wall, needs_person, or verdict: with one of %s", rouse.VerdictCodes())
}

// WaitOutput is what was reached, or how things stand when the time was over.
type WaitOutput struct {
	Body struct {
		Reached     bool               `json:"reached"`
		Matched     *string            `json:"matched" nullable:"true" doc:"The condition that was met first"`
		TimedOut    bool               `json:"timed_out"`
		Session     string             `json:"session"`
		State       rouse.SessionState `json:"state"`
		Turn        *string            `json:"turn" nullable:"true" doc:"The turn that was waited for, or that runs"`
		Generation  uint64             `json:"generation"`
		Outcome     *rouse.TurnState   `json:"outcome" nullable:"true"`
		Verdict     *string            `json:"verdict" nullable:"true"`
		Wall        *HealthWall        `json:"wall"`
		NeedsPerson bool               `json:"needs_person"`
	}
}

// conditions reads the list, in order.
func conditions(list string) ([]string, error) {
	var out []string
	for c := range strings.SplitSeq(list, ",") {
		c = strings.TrimSpace(c)
		code, isVerdict := strings.CutPrefix(c, forVerdict)
		_, known := rouse.VerdictCode(code).Kind()
		switch {
		case c == forSettled, c == forIdle, c == forWall, c == forPerson, isVerdict && known:
			out = append(out, c)
		default:
			return nil, rouse.FieldError("wait", "for", "for: %q is not known; use %s", rouse.Clip(c, 60), accepted())
		}
	}
	return out, nil
}

func (o *own) wait(ctx context.Context, in *WaitInput) (*WaitOutput, error) {
	wanted, err := conditions(in.For)
	if err != nil {
		return nil, err
	}
	target, err := o.waitTarget(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	news, err := o.Feed.Subscribe(feed.Filter{Session: in.ID})
	if err != nil {
		return nil, err
	}
	defer news.Close()
	deadline := time.NewTimer(time.Duration(in.Timeout) * time.Second)
	defer deadline.Stop()
	poll := time.NewTicker(waitPoll)
	defer poll.Stop()
	for {
		out, err := o.howItStands(ctx, in.ID, &target, wanted)
		if err != nil || out.Body.Reached {
			return out, err
		}
		news.Wrote(o.Feed.Head())
		select {
		case <-news.Bell():
		case <-poll.C:
		case <-deadline.C:
			out.Body.TimedOut = true
			return out, nil
		case <-o.Closing:
			return nil, rouse.Errorf(rouse.Unavailable, "wait", "the server is shutting down")
		case <-ctx.Done():
			return nil, rouse.Wrap("wait", ctx.Err())
		}
	}
}

// waitTarget is the turn whose end "settled" means: the one that runs, else
// the next one, else the last one. "" is the next that comes.
func (o *own) waitTarget(ctx context.Context, sessionID string) (string, error) {
	s, err := o.Store.Session(ctx, sessionID)
	if err != nil || s.Running != "" {
		return idOf(s), err
	}
	if s.Queued > 0 {
		turns, err := o.Store.Turns(ctx, sessionID, 0)
		if err != nil {
			return "", err
		}
		for i := range turns {
			if !turns[i].State.Settled() {
				return turns[i].ID, nil
			}
		}
	}
	last, err := o.Store.LastTurn(ctx, s)
	if err != nil || last == nil {
		return "", err
	}
	return last.ID, nil
}

func idOf(s *rouse.Session) string {
	if s == nil {
		return ""
	}
	return s.Running
}

// howItStands says how things stand and which condition is met.
func (o *own) howItStands(ctx context.Context, id string, target *string, wanted []string) (*WaitOutput, error) {
	s, err := o.Store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if *target == "" && (s.Running != "" || s.Queued > 0) { // the first prompt has come
		if *target, err = o.waitTarget(ctx, id); err != nil {
			return nil, err
		}
	}
	walls, err := o.Store.Walls(ctx)
	if err != nil {
		return nil, err
	}
	l, err := o.lookAt(ctx, s, walls, time.Now())
	if err != nil {
		return nil, err
	}
	person, err := o.needsPerson(ctx, &l)
	if err != nil {
		return nil, err
	}
	out := &WaitOutput{}
	b := &out.Body
	b.Session, b.State, b.Turn, b.Generation, b.Verdict, b.NeedsPerson = s.ID, l.state(), l.turn(), l.generation(), l.code(), person
	if s.Outcome != "" && s.Running == "" {
		b.Outcome = &s.Outcome
	}
	if l.wall != nil {
		b.Wall = &HealthWall{l.wall.ID, stamp(l.wall.ResetAt)}
	}
	var settled *rouse.Turn
	if *target != "" {
		t, err := o.Store.Turn(ctx, *target)
		if err != nil {
			return nil, err
		}
		if t.State.Settled() {
			settled = t
		}
	}
	for _, c := range wanted {
		var met bool
		switch c {
		case forSettled:
			if met = settled != nil; met {
				b.Turn, b.Generation, b.Outcome = &settled.ID, settled.Generation, &settled.State
			}
		case forIdle:
			met = s.Running == "" && (s.Queued == 0 || s.Pause)
		case forWall:
			met = l.wall != nil
		case forPerson:
			met = person
		default:
			met = forVerdict+string(l.Verdict.Code) == c
		}
		if met {
			b.Reached, b.Matched = true, &c
			break
		}
	}
	return out, nil
}

// needsPerson says that nothing goes on unless somebody does something: a
// request is open, or an incident that only a person can mend: the rescues are
// used up, or, unless a turn tries it once more, the keys or the bill are at
// fault.
func (o *own) needsPerson(ctx context.Context, l *look) (bool, error) {
	switch l.Verdict.Code {
	case rouse.WaitingPermission, rouse.WaitingQuestion:
		return true, nil
	}
	open, err := o.Store.Incidents(ctx, store.IncidentFilter{Session: l.session.ID, Status: rouse.IncidentOpen})
	return slices.ContainsFunc(open, func(i rouse.Incident) bool {
		return i.Kind == rouse.CodePerson || l.session.Running == "" && (i.Kind == rouse.CodeAuth || i.Kind == rouse.CodeBilling)
	}), err
}
