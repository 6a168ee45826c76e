package api

import (
	"context"

	"rouse"
	"rouse/internal/recovery"
)

// ActionInput asks for an action of an incident.
type ActionInput struct {
	ID   string `path:"id"`
	Body struct {
		Action string `json:"action" enum:"resume,fresh_start,continue_with,dismiss"`
		Model  string `json:"model,omitempty" doc:"continue_with: provider/model"`
	}
}

// ActionOutput is what came of it.
type ActionOutput struct {
	Body struct {
		Incident string  `json:"incident"`
		Status   string  `json:"status" enum:"open,resolved,superseded" doc:"Of the incident; a resumed one is resolved when its turn completes"`
		Session  *string `json:"session" nullable:"true" doc:"Where the prompt went"`
		Turn     *string `json:"turn" nullable:"true"`
	}
}

func (o *own) act(ctx context.Context, in *ActionInput) (*ActionOutput, error) {
	var model rouse.ModelRef
	if in.Body.Model != "" {
		var err error
		if model, err = rouse.ParseModelRef(in.Body.Model); err != nil {
			return nil, rouse.FieldError("action", "model", "%s", rouse.SafeMessage(err))
		}
	}
	done, err := recovery.Act(ctx, o.Store, o.Prompts, in.ID, in.Body.Action, model)
	if err != nil {
		return nil, err
	}
	out := &ActionOutput{}
	out.Body.Incident, out.Body.Status = done.Incident.ID, done.Incident.Status
	out.Body.Session, out.Body.Turn = text(done.SessionID), text(done.TurnID)
	return out, nil
}
