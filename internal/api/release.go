package api

import "context"

type releaseOutput struct {
	Body struct {
		Interrupted int `json:"interrupted" doc:"Orphaned turns that were ended"`
	}
}

// release ends the orphaned turns that --hold-orphans kept, and runs what
// waits behind them.
func (o *own) release(ctx context.Context, _ *struct{}) (*releaseOutput, error) {
	n, err := o.Release(ctx)
	out := &releaseOutput{}
	out.Body.Interrupted = n
	return out, err
}
