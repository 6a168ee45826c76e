package api

import (
	"context"

	"rouse"
)

// CancelInput names the turn to end.
type CancelInput struct {
	ID   string `path:"id"`
	Body *struct {
		Generation uint64 `json:"generation,omitempty" doc:"Only if this generation runs; missing: whichever runs"`
	}
}

// CancelOutput is a cancel that is on its way; rouse.cancel.stage events tell
// what follows.
type CancelOutput struct {
	Body struct {
		Session    string             `json:"session"`
		Turn       *string            `json:"turn" nullable:"true" doc:"The turn that ends; null when none runs"`
		Generation uint64             `json:"generation"`
		State      rouse.SessionState `json:"state"`
	}
}

func (o *own) cancel(ctx context.Context, in *CancelInput) (*CancelOutput, error) {
	s, err := o.Store.Session(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	var generation uint64
	if in.Body != nil {
		generation = in.Body.Generation
	}
	v, running, err := o.Sessions.Cancel(ctx, s.ID, generation)
	if err == nil && !running { // it may have been a dead server's
		s, err = o.Store.Session(ctx, in.ID)
	}
	if err != nil {
		return nil, err
	}
	out := &CancelOutput{}
	out.Body.Session, out.Body.Generation, out.Body.State = s.ID, s.Generation-uint64(s.Queued), s.State()
	if running {
		out.Body.Turn, out.Body.Generation = &v.TurnID, v.Generation
	}
	return out, nil
}
