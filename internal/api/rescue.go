package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"rouse"
	"rouse/internal/recovery"
)

// Rescuer is what the own API asks of the recovery verb.
type Rescuer interface {
	Rescue(ctx context.Context, in recovery.Request) (*rouse.Rescue, error)
}

// RescueInput asks for a rescue.
type RescueInput struct {
	ID   string `path:"id"`
	Body struct {
		Model        string   `json:"model,omitempty" doc:"provider/model to wake with; the session's own when missing"`
		Facts        []string `json:"facts,omitempty" maxItems:"50" doc:"What the caller knows to be true; the server adds its own"`
		Reassignment string   `json:"reassignment,omitempty" maxLength:"8000" doc:"The one thing to do next; missing: go on with the task"`
		Reason       string   `json:"reason,omitempty" maxLength:"500"`
		Force        bool     `json:"force,omitempty" doc:"Also when the running turn makes progress, or a client waits for its answer"`
	}
}

// Rescue is a rescue as it stands.
type Rescue struct {
	ID         string        `json:"id"`
	Session    string        `json:"session"`
	By         string        `json:"by" doc:"user, or the orchestrator's session"`
	Reason     string        `json:"reason"`
	Status     string        `json:"status" enum:"running,done,failed,needs_person"`
	Stages     []RescueStage `json:"stages"`
	Aborted    *string       `json:"aborted" doc:"The turn that was ended"`
	Turn       *string       `json:"turn"`
	Generation uint64        `json:"generation"`
	Model      *Model        `json:"model"`
	Facts      *rouse.Facts  `json:"facts"`
	Clause     string        `json:"clause"`
	CreatedAt  *string       `json:"created_at" format:"date-time"`
	EndedAt    *string       `json:"ended_at" format:"date-time"`
}

// RescueStage is one stage of a rescue.
type RescueStage struct {
	Name   string  `json:"name" enum:"authorized,written,aborted,idle,prompted,generating"`
	At     *string `json:"at" format:"date-time"`
	OK     bool    `json:"ok"`
	Detail string  `json:"detail"`
}

// RescueOutput is an answer with a rescue.
type RescueOutput struct{ Body Rescue }

func renderRescue(r *rouse.Rescue) Rescue {
	out := Rescue{ID: r.ID, Session: r.SessionID, By: r.By, Reason: r.Reason, Status: string(r.Status), Stages: []RescueStage{},
		Aborted: text(r.Aborted), Turn: text(r.TurnID), Generation: r.Generation, Facts: r.Facts, Clause: r.Clause,
		CreatedAt: stamp(r.Created), EndedAt: stamp(r.Ended)}
	for _, s := range r.Stages {
		out.Stages = append(out.Stages, RescueStage{s.Name, stamp(s.At), s.OK, s.Detail})
	}
	if !r.Model.IsZero() {
		out.Model = &Model{r.Model.Provider, r.Model.Model, r.Model.Variant}
	}
	return out
}

// text is nil for what is not known.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (o *own) rescue(ctx context.Context, in *RescueInput) (*RescueOutput, error) {
	req := recovery.Request{SessionID: in.ID, By: recovery.User, Reason: in.Body.Reason, Reassignment: in.Body.Reassignment,
		Facts: in.Body.Facts, Force: in.Body.Force}
	if who := Who(ctx); who.Scope == Agent {
		req.By = who.Session
	}
	if in.Body.Model != "" {
		ref, err := rouse.ParseModelRef(in.Body.Model)
		if err != nil {
			return nil, rouse.FieldError("rescue", "model", "%s", rouse.SafeMessage(err))
		}
		if _, err := o.Config().Resolve(ref); err != nil {
			return nil, err
		}
		req.Model = ref
	}
	r, err := o.Rescuer.Rescue(ctx, req)
	var spent *recovery.BudgetSpent
	if errors.As(err, &spent) {
		return nil, tooManyRescues(spent)
	}
	if err != nil {
		return nil, err
	}
	return &RescueOutput{renderRescue(r)}, nil
}

// tooManyRescues is 429 with the time of the next one.
func tooManyRescues(e *recovery.BudgetSpent) error {
	wait := int(math.Ceil(time.Until(e.Again).Seconds()))
	p := Problem{Name: "NeedsPerson", Data: ProblemData{Message: e.Error() + "; the next rescue is allowed at " + *stamp(e.Again)}}
	return &statusError{status: http.StatusTooManyRequests, body: p, text: p.Data.Message, retryAfter: max(1, wait)}
}

// RescueID names a rescue.
type RescueID struct {
	ID string `path:"id"`
}

func (o *own) getRescue(ctx context.Context, in *RescueID) (*RescueOutput, error) {
	r, err := o.Store.Rescue(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if who := Who(ctx); who.Scope == Agent && r.By != who.Session && r.SessionID != who.Session {
		return nil, rouse.Errorf(rouse.Denied, "rescue", "this token may look at rescues of its own only")
	}
	return &RescueOutput{renderRescue(r)}, nil
}
