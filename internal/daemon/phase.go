package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/thejerf/suture/v4"

	"rouse"
	"rouse/internal/config"
	"rouse/internal/store"
)

// running is something that was started in the background.
type running struct {
	cancel context.CancelFunc
	done   chan error
}

func background(serve func(context.Context) error) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- serve(ctx) }()
	return r
}

// stop ends it and waits.
func (r *running) stop() error {
	r.cancel()
	return <-r.done
}

// phase supervises services that start and stop together. A service that
// panics or fails is started again; one that cannot go on ends the daemon
// through failed.
func (s *server) phase(name string, failed chan<- error, services ...suture.Service) *running {
	sup := suture.New(name, suture.Spec{Timeout: lanesStop, EventHook: func(e suture.Event) {
		s.log.Warn("daemon.supervisor", "phase", name, "event", e.String())
	}})
	for _, service := range services {
		sup.Add(service)
	}
	return background(func(ctx context.Context) error {
		err := sup.Serve(ctx)
		if ctx.Err() == nil {
			select {
			case failed <- rouse.Wrap(name, err):
			default:
			}
		}
		return err
	})
}

// leaseKeeper renews this boot's lease and says goodbye at the end.
type leaseKeeper struct {
	store *store.Store
	boot  store.Lease
	log   *slog.Logger
}

const leaseEvery = 2 * time.Second

// Serve renews until ctx ends. The log has the first of a row of failures: the
// store says itself when it works again.
func (k *leaseKeeper) Serve(ctx context.Context) error {
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-tick.C:
			err := k.store.PutLease(ctx, k.boot, false)
			if err != nil && !failed && ctx.Err() == nil {
				k.log.Error("daemon.lease", "err", err)
			}
			failed = err != nil
		case <-ctx.Done():
			bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseEvery)
			defer cancel()
			if err := k.store.PutLease(bye, k.boot, true); err != nil {
				k.log.Error("daemon.lease", "err", err)
			}
			return nil
		}
	}
}

// housekeeper deletes what is past its time.
type housekeeper struct {
	store *store.Store
	cfg   *config.Store
	log   *slog.Logger
}

const pruneEvery = 10 * time.Minute

// Serve prunes now and then until ctx ends.
func (h *housekeeper) Serve(ctx context.Context) error {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			r := h.cfg.Get().Retention
			err := h.store.Prune(ctx, store.Retention{Events: time.Duration(r.EventsDays) * 24 * time.Hour, EventRows: r.EventsMaxRows,
				Keys: time.Duration(r.IdempotencyHours) * time.Hour}, now)
			if err != nil && !errors.Is(err, context.Canceled) {
				h.log.Error("daemon.prune", "err", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}
