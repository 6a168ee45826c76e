package session

import (
	"context"
	"sync"

	"rouse"
)

// hold is whether anything is dispatched, and how many turns run.
type hold struct {
	mu      sync.Mutex
	held    bool
	running int
	changed chan struct{} // closed and replaced when running changes
}

// take counts a turn in; false while nothing may be dispatched.
func (h *hold) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held {
		return false
	}
	h.running++
	return true
}

func (h *hold) give() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *hold) state() (held bool, running int, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held, h.running, h.changed
}

// Hold stops dispatching: from now on prompts are stored and held (they run
// after the next start), running turns go on. It says how many run.
func (l *Lanes) Hold() (running int) {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	l.hold.held = true
	return l.hold.running
}

// Running is how many turns run now.
func (l *Lanes) Running() int {
	_, n, _ := l.hold.state()
	return n
}

// Quiet returns when no turn runs any more; after Hold none will. The error is
// ctx's.
func (l *Lanes) Quiet(ctx context.Context) error {
	for {
		_, running, changed := l.hold.state()
		if running == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return rouse.Wrap("session: quiet", context.Cause(ctx))
		}
	}
}
