// Package daemon builds the whole from its configuration, in order, and takes
// it down in reverse: the store stands outside; lanes run on it; doors open
// last and close first. A second process on the same data folder is refused.
package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"rouse"
	"rouse/internal/config"
	"rouse/internal/drill"
	"rouse/internal/feed"
	"rouse/internal/proc"
	"rouse/internal/recovery"
	"rouse/internal/routing"
	"rouse/internal/session"
	"rouse/internal/store"
	"rouse/internal/watch"
)

// Options of Run. What is left out comes from the configuration.
type Options struct {
	// Paths of the configuration.
	Paths config.Paths
	Host  string
	// Port to bind; negative is the configuration's, 0 lets the system choose.
	Port   int
	Data   string
	NoAuth bool
	// Drill adds the simulated provider and its engine.
	Drill bool
	// DrillSpeed divides the durations of the watch, the cancel ladder and
	// the enrichment of errors; up to 1 changes nothing. Only with Drill.
	DrillSpeed float64
	// HoldOrphans keeps the turns of dead servers running in the store until
	// POST /rouse/v1/drill/release, so that a drill can look at them. Refused
	// without Drill.
	HoldOrphans bool
	// Logger is used instead of the configured one; nil makes one on LogTo.
	Logger *slog.Logger
	LogTo  io.Writer // default os.Stderr
	// Ready is called once, when requests are accepted and not before.
	Ready func(Ready)
}

// Ready describes a server that accepts requests.
type Ready struct {
	URL       string
	PID       int
	Data      string
	TokenFile string
	Token     string // empty without authentication
	NoAuth    bool
	// NewToken says that the token was made in this start: show it once.
	NewToken bool
	// Warnings of the configuration.
	Warnings []string
	// Reload reads the configuration again; on an error the old one stays.
	Reload func() error `json:"-"`
	// Sweep ends what was started for sessions, within two seconds: for who
	// ends the program without an orderly stop.
	Sweep func() `json:"-"`
}

// The time that each phase has to stop.
const (
	doorsStop = 3 * time.Second
	lanesStop = 20 * time.Second

	// stalledAfter is the idle timeout of the drill model "stalled".
	stalledAfter = 2 * time.Second
)

// server is what Run builds.
type server struct {
	programs *programs
	opt      Options
	cfg      *config.Store
	log      *slog.Logger
	data     *dataFolder
	store    *store.Store
	feed     *feed.Feed
	lanes    *session.Lanes
	gate     *routing.Gate
	listen   net.Listener
	url      string
	boot     store.Lease
	drain    *drainer
	medic    *recovery.Medic
	watch    *watch.Watch
	holding  atomic.Bool    // a drill keeps the turns of dead servers
	close    []func() error // in the order in which things were opened
}

// Run serves until ctx ends and everything has stopped. Errors before that are
// Invalid (configuration, port, host), Conflict (another server has the data
// folder) or Unavailable (the folder or database cannot be used), each with a
// message for a person.
func Run(ctx context.Context, opt Options) (err error) {
	s := &server{opt: opt}
	defer func() {
		for i := len(s.close) - 1; i >= 0; i-- {
			err = errors.Join(err, s.close[i]())
		}
	}()
	if err := s.build(ctx); err != nil {
		return rouse.Wrap("daemon", err)
	}
	return rouse.Wrap("daemon", s.serve(ctx))
}

// build opens everything but the doors.
func (s *server) build(ctx context.Context) error {
	if err := s.configure(); err != nil {
		return err
	}
	cfg := s.cfg.Get()
	if err := s.checkBind(); err != nil {
		return err
	}
	if s.opt.HoldOrphans && !s.opt.Drill {
		return rouse.FieldError("configure", "--hold-orphans", "--hold-orphans is for drills only: add --drill")
	}
	if s.opt.DrillSpeed != 0 && !s.opt.Drill {
		return rouse.FieldError("drill", "--drill-speed", "--drill-speed is for simulations only: use it with --drill")
	}
	var err error
	if s.data, err = openData(s.dataDir(), s.opt.NoAuth); err != nil {
		return err
	}
	s.close = append(s.close, s.data.Close)
	s.store, err = store.Open(ctx, s.data.database(), store.Options{Logger: s.log, Committed: func(e []rouse.Event) { s.feed.Publish(e) }})
	if err != nil {
		return err
	}
	s.close = append(s.close, s.store.Close)
	s.feed = feed.New(cfg.Limits.SSERing, s.store.Head(), cfg.Limits.SSESubscribers)
	return nil
}

// configure loads the configuration, with the drill provider when asked for.
func (s *server) configure() error {
	if s.opt.Drill {
		base, stop, err := drill.Start(drill.Options{})
		if err != nil {
			return err
		}
		s.close = append(s.close, func() error { stop(); return nil })
		s.opt.Paths.Extra = append(s.opt.Paths.Extra, config.DrillProvider(base, drill.Models()),
			config.DrillEngineProvider(base, slices.Sorted(maps.Keys(drill.EngineModes))))
	}
	var err error
	if s.cfg, err = config.NewStore(func() (*config.Config, error) { return config.Load(s.opt.Paths) }); err != nil {
		return err
	}
	if s.opt.Paths.Accounts == nil { // they are in the data folder, which the configuration may name
		s.opt.Paths.Accounts = config.OpenAccounts(s.dataDir(), s.opt.Paths.Getenv)
		if err := s.cfg.Reload(); err != nil {
			return err
		}
	}
	s.log = s.opt.Logger
	if s.log == nil {
		s.log = newLogger(s.opt.LogTo, s.cfg.Get().Log)
	}
	return nil
}

func newLogger(to io.Writer, cfg config.Log) *slog.Logger {
	if to == nil {
		to = os.Stderr
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level)) // checked by config
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, opts))
	}
	return slog.New(slog.NewTextHandler(to, opts))
}

// dataDir is --data, else the configuration's, else the usual place.
func (s *server) dataDir() string {
	dir := s.opt.Data
	if dir == "" && s.cfg != nil {
		dir = s.cfg.Get().Server.Data
	}
	if dir == "" {
		dir = config.DefaultData(s.opt.Paths.Getenv)
	}
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// serve starts the phases and stops them in reverse.
func (s *server) serve(ctx context.Context) error {
	storeDone := background(s.store.Serve)
	defer storeDone.stop()
	if err := s.startLanes(ctx); err != nil {
		return err
	}
	if err := s.bind(); err != nil {
		return err
	}
	failed := make(chan error, 1)
	s.drain = newDrainer(s.lanes, s.log)
	lanes := s.phase("lanes", failed, s.lanes, s.gate, s.drain, &leaseKeeper{s.store, s.boot, s.log}, &housekeeper{s.store, s.cfg, s.log})
	defer lanes.stop()
	s.medic = recovery.NewMedic(s.store, s.lanes, s.log, s.opt.DrillSpeed)
	s.watch = watch.New(watch.Config{Store: s.store, Lanes: s.lanes, Boot: s.boot.ID, Limits: watch.Default.Faster(s.opt.DrillSpeed), Hold: s.holding.Load, Log: s.log})
	judges := s.phase("judges", failed, s.medic, s.watch)
	defer judges.stop()
	door, err := s.newDoor()
	if err != nil {
		return err
	}
	doors := s.phase("doors", failed, door)
	defer doors.stop()
	select {
	case <-door.accepting:
	case err := <-failed:
		return err
	}
	if err := s.data.announce(s.url, s.opt.NoAuth); err != nil {
		return err
	}
	s.log.Info("daemon.ready", "url", s.url, "pid", os.Getpid())
	if s.opt.Ready != nil {
		s.opt.Ready(Ready{URL: s.url, PID: os.Getpid(), Data: s.data.dir, TokenFile: s.data.tokenFile(), Token: s.data.token,
			NoAuth: s.opt.NoAuth, NewToken: s.data.newToken, Warnings: s.cfg.Get().Warnings, Reload: s.reload,
			Sweep: func() { proc.Sweep(context.Background(), bootMark(s.boot.ID)) }})
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.drain.done:
		return nil
	case err := <-failed:
		return err
	}
}

func (s *server) reload() error {
	if err := s.cfg.Reload(); err != nil {
		s.log.Error("daemon.reload", "err", rouse.SafeMessage(err))
		return err
	}
	s.log.Info("daemon.reload", "providers", len(s.cfg.Get().Providers))
	return nil
}

// startLanes records this boot, ends what dead ones left and makes the lanes.
func (s *server) startLanes(ctx context.Context) error {
	now := time.Now()
	s.boot = store.Lease{ID: rouse.NewID(rouse.BootPrefix, now), PID: os.Getpid(), Started: now}
	if err := s.store.PutLease(ctx, s.boot, false); err != nil {
		return err
	}
	s.gate = routing.New(s.store, func() { s.lanes.KickQueued() }, s.log)
	s.lanes = session.New(session.Deps{
		Store: s.store, Feed: s.feed, Gate: s.gate, Log: s.log, Boot: s.boot.ID,
		Models: models{s.cfg}, Agents: agents{s.cfg},
		Engine: s.engines(), EngineOf: engineOf, DefaultEngine: "native", Env: s.environment, Pace: session.DefaultPace.Faster(s.opt.DrillSpeed), Judge: watch.Settled,
		MaxQueued: s.cfg.Get().Limits.HoldQueue, MaxRunning: s.cfg.Get().Limits.RunningTurns,
	})
	if err := s.sweepDead(ctx); err != nil {
		return err
	}
	if s.opt.HoldOrphans {
		s.holding.Store(true)
		return nil
	}
	n, err := s.lanes.Recover(ctx)
	if n > 0 {
		s.log.Warn("daemon.interrupted", "turns", n)
	}
	return err
}

// sweepDead ends the processes that servers left which were killed, and notes
// that those servers are gone. The folder's lock is ours, so none of them lives.
func (s *server) sweepDead(ctx context.Context) error {
	leases, err := s.store.Leases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if l.ID == s.boot.ID {
			continue
		}
		if n := proc.Sweep(ctx, bootMark(l.ID)); n > 0 {
			s.log.Warn("daemon.swept", "boot", l.ID, "processes", n)
		}
		if err := s.store.PutLease(ctx, l, true); err != nil {
			return err
		}
	}
	return nil
}
