package api

import (
	"context"
	"time"
)

type drainInput struct {
	Body struct {
		TimeoutSec int `json:"timeout_sec,omitempty" minimum:"0" maximum:"86400" doc:"How long running turns may take; then they are interrupted. Default 600."`
	}
}

type drainOutput struct {
	Body struct {
		Running    int `json:"running" doc:"Turns that run now and are waited for."`
		TimeoutSec int `json:"timeout_sec"`
	}
}

// defaultDrain is how long turns may take to end when nothing is said.
const defaultDrain = 10 * time.Minute

// drain stops dispatching, lets running turns end, and stops the server.
func (o *own) drain(_ context.Context, in *drainInput) (*drainOutput, error) {
	wait := time.Duration(in.Body.TimeoutSec) * time.Second
	if wait == 0 {
		wait = defaultDrain
	}
	out := &drainOutput{}
	out.Body.Running, out.Body.TimeoutSec = o.Drain(wait), int(wait/time.Second)
	return out, nil
}
