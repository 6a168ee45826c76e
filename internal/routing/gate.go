package routing

import (
	"context"
	"log/slog"
	"time"

	"rouse"
)

// Walls is where the walls are kept.
type Walls interface {
	// Walls lists those that are not closed.
	Walls(ctx context.Context) ([]rouse.Wall, error)
	// HalfOpenWalls marks the open walls whose time has come and says how many
	// there were.
	HalfOpenWalls(ctx context.Context, now time.Time) (int, error)
}

// Gate is what the lanes ask, and the clock of the walls.
type Gate struct {
	Walls Walls
	// Kick makes sessions with waiting prompts look again.
	Kick func()
	Log  *slog.Logger

	bell chan struct{}
}

// New makes a gate; Serve must run for walls to half-open by themselves.
func New(walls Walls, kick func(), log *slog.Logger) *Gate {
	return &Gate{Walls: walls, Kick: kick, Log: log, bell: make(chan struct{}, 1)}
}

// Admit decides a bid.
func (g *Gate) Admit(now time.Time, b rouse.Bid, walls []rouse.Wall) rouse.Admission {
	return Decide(now, b, walls)
}

// Park decides when a refused wall may be tried.
func (g *Gate) Park(now time.Time, w rouse.Wall) rouse.Wall { return Park(now, w) }

// Changed says that a wall was written: its time may be the next one.
func (g *Gate) Changed() {
	select {
	case g.bell <- struct{}{}:
	default:
	}
}

const (
	lookEvery = 10 * time.Minute // also without a word: the wall clock may be set
	storeWait = 5 * time.Second  // after a database that refused
)

// Serve half-opens walls when their time has come, until ctx ends.
func (g *Gate) Serve(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-g.bell:
		case <-ctx.Done():
			return nil
		}
		next, err := g.look(ctx, time.Now())
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			g.Log.Warn("routing.walls", "err", err)
			next = storeWait
		}
		timer.Reset(next)
	}
}

// look half-opens what is due and says how long the next one has to wait.
func (g *Gate) look(ctx context.Context, now time.Time) (time.Duration, error) {
	n, err := g.Walls.HalfOpenWalls(ctx, now)
	if err != nil {
		return 0, err
	}
	if n > 0 {
		g.Kick()
	}
	walls, err := g.Walls.Walls(ctx)
	next := lookEvery
	for i := range walls {
		if w := &walls[i]; w.State == rouse.WallIsOpen && !w.ProbeAt.IsZero() {
			next = min(next, max(w.ProbeAt.Sub(now), time.Millisecond))
		}
	}
	return next, err
}
