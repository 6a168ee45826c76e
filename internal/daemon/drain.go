package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"rouse/internal/session"
)

// drainer lets running turns end and then stops the server. Prompts that come
// meanwhile are stored and run after the next start.
type drainer struct {
	lanes *session.Lanes
	log   *slog.Logger

	once sync.Once
	ask  chan time.Duration
	done chan struct{} // closed when the server should stop
}

func newDrainer(lanes *session.Lanes, log *slog.Logger) *drainer {
	return &drainer{lanes: lanes, log: log, ask: make(chan time.Duration, 1), done: make(chan struct{})}
}

// start begins to drain; a second call only says how many turns run.
func (d *drainer) start(wait time.Duration) (running int) {
	running = d.lanes.Hold()
	d.once.Do(func() { d.ask <- wait })
	return running
}

// Serve waits for a drain, and then for its end.
func (d *drainer) Serve(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case wait := <-d.ask:
		d.log.Info("daemon.drain", "running", d.lanes.Running(), "wait", wait)
		bounded, cancel := context.WithTimeout(ctx, wait)
		err := d.lanes.Quiet(bounded)
		cancel()
		if err != nil && ctx.Err() == nil {
			d.log.Warn("daemon.drain", "interrupting", d.lanes.Running())
		}
		close(d.done)
		<-ctx.Done()
		return nil
	}
}
