package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/recovery"
	"rouse/internal/session"
	"rouse/internal/store"
	"rouse/internal/watch"
)

type models struct{}

func (models) CheckModel(rouse.ModelRef) error { return nil }
func (models) DefaultModel() rouse.ModelRef    { return rouse.ModelRef{Provider: "drill", Model: "echo"} }

type agents struct{}

func (agents) FindAgent(string) (session.Agent, error) {
	return session.Agent{Name: "builder", Primary: true}, nil
}

// world is one life of a server on a database.
type world struct {
	dir   string
	boot  int
	store *store.Store
	lanes *session.Lanes
	medic *recovery.Medic
	watch *watch.Watch
	slept atomic.Int64 // how long the machine was suspended in this life, ns
	full  atomic.Bool  // the disk refuses
	stops []func() error
}

// start begins a life.
func start(dir string, boot int, engines *witness) (*world, error) {
	w := &world{dir: dir, boot: boot}
	var f *feed.Feed
	var err error
	log := slog.New(slog.DiscardHandler)
	w.store, err = store.Open(context.Background(), filepath.Join(dir, "rouse.db"), store.Options{Logger: log, Readers: 1,
		Committed: func(e []rouse.Event) { f.Publish(e) },
		Fault: func() error {
			if w.full.Load() {
				return errors.New("the disk refuses")
			}
			return nil
		}})
	if err != nil {
		return nil, err
	}
	f = feed.New(1024, w.store.Head(), 0)
	w.serve(w.store.Serve)
	w.lanes = session.New(session.Deps{Store: w.store, Feed: f, Models: models{}, Agents: agents{}, Boot: fmt.Sprintf("boo_%d", boot), Judge: watch.Settled, Log: log,
		MaxQueued: 8, Engine: func(string) (engine.Engine, error) { return engines, nil }})
	if _, err := w.lanes.Recover(context.Background()); err != nil {
		return nil, err
	}
	w.medic = recovery.NewMedic(w.store, w.lanes, log, 0)
	began := time.Now()
	w.watch = watch.New(watch.Config{Store: w.store, Lanes: w.lanes, Boot: fmt.Sprintf("boo_%d", boot), Log: log, Clock: func() watch.Reading {
		return watch.Reading{Mono: time.Since(began), Wall: time.Now().Round(0).Add(time.Duration(w.slept.Load()))}
	}})
	w.serve(w.lanes.Serve)
	w.serve(w.watch.Serve)
	w.serve(w.medic.Serve)
	return w, nil
}

func (w *world) serve(fn func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fn(ctx) }()
	w.stops = append(w.stops, func() error { cancel(); return <-done })
}

// stop ends a life in order; what it wrote stays.
func (w *world) stop() error {
	w.full.Store(false)
	var err error
	for i := len(w.stops) - 1; i >= 0; i-- {
		err = errors.Join(err, w.stops[i]())
	}
	w.stops = nil // a life ends once
	return errors.Join(err, w.store.Close())
}

// crash ends a life as kill -9 does: the next one finds what was committed at
// this moment and nothing that the dying one writes afterwards.
func (w *world) crash(t *testing.T) (dir string, err error) {
	dir, err = os.MkdirTemp(t.TempDir(), "life-")
	if err != nil {
		return "", err
	}
	if err := store.Copy(context.Background(), w.store.Path(), filepath.Join(dir, "rouse.db")); err != nil {
		return "", err
	}
	return dir, w.stop()
}
