package provider

import (
	"context"
	"errors"
	"io"
	"time"
)

// The reasons for which a call's own clock ends it.
var (
	errStalled = errors.New("no byte for the idle timeout")
	errTimeout = errors.New("the call took longer than the provider's timeout")
	errGrace   = errors.New("the grace period is over")
)

// idle ends a call when no byte came for a while. Without a timeout it watches
// nothing until grace is asked for. It belongs to one call and one goroutine.
type idle struct {
	r       io.Reader // the body, once there is one
	timeout time.Duration
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	fixed   bool // grace runs: bytes do not prolong it
}

// watch starts the clock; it runs while the request waits for its answer too.
func (w *idle) watch() {
	if w.timeout > 0 {
		w.timer = time.AfterFunc(w.timeout, func() { w.cancel(errStalled) })
	}
}

// grace gives the call d from now on, whatever arrives: what matters is there
// already, and only courtesy waits for the rest.
func (w *idle) grace(d time.Duration) {
	w.stop()
	w.fixed = true
	w.timer = time.AfterFunc(d, func() { w.cancel(errGrace) })
}

func (w *idle) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Read reads the body and winds the clock.
func (w *idle) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 && w.timer != nil && !w.fixed {
		w.timer.Reset(w.timeout)
	}
	return n, err
}
