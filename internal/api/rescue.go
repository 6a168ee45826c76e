package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

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
		Facts        []string `json:"facts,omitempty" maxItems:"50" doc:"What the caller knows to be true, 4,000 bytes each and 64,000 in all; the server adds its own"`
		Reassignment string   `json:"reassignment,omitempty" maxLength:"8000" doc:"The one thing to do next; missing: go on with the task"`
		Reason       string   `json:"reason,omitempty" maxLength:"500"`
		Force        bool     `json:"force,omitempty" doc:"Also when the running turn makes progress or waits, when a client waits for its answer, or a wall stands before the model"`
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
	if err := o.wakes(ctx, in, &req); err != nil {
		return nil, err
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

// wakes names the model that the session is to be woken with and refuses, before
// a turn is ended for it, one that cannot be used or would run into a wall.
func (o *own) wakes(ctx context.Context, in *RescueInput, req *recovery.Request) (err error) {
	s, err := o.Store.Session(ctx, in.ID)
	if err != nil {
		return err
	}
	if in.Body.Model != "" {
		if req.Model, err = rouse.ParseModelRef(in.Body.Model); err != nil {
			return rouse.FieldError("rescue", "model", "%s", rouse.SafeMessage(err))
		}
	}
	model, err := o.Sessions.WakeModel(s, req.Model)
	if err != nil || in.Body.Force {
		return err
	}
	now := time.Now()
	w, err := o.standing(ctx, model, now)
	if err != nil || w == nil {
		return err
	}
	return refusedByWall(w, now, "nothing was ended. Wake it with another model, or force it.")
}

// Resolve bounds the facts: they go into a prompt.
func (in *RescueInput) Resolve(huma.Context) []error {
	total := 0
	for i, f := range in.Body.Facts {
		if total += len(f); len(f) > rouse.MaxFact {
			return []error{&huma.ErrorDetail{Location: fmt.Sprintf("body.facts[%d]", i), Message: fmt.Sprintf("expected at most %d bytes", rouse.MaxFact)}}
		}
	}
	if total > rouse.MaxFactsText {
		return []error{&huma.ErrorDetail{Location: "body.facts", Message: fmt.Sprintf("expected at most %d bytes in all", rouse.MaxFactsText)}}
	}
	return nil
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
