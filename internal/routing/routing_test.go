package routing

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 3, 3, 10, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	model := rouse.ModelRef{Provider: "acme", Model: "claude-opus-4"}
	open := rouse.Wall{ID: "w", Provider: "acme", State: rouse.WallIsOpen, ProbeAt: now.Add(time.Hour)}
	due := open
	due.ProbeAt = now
	half := open
	half.State = rouse.WallIsHalf
	tried := half
	tried.ProbeTurn = "other"
	billing := rouse.Wall{ID: "w", Provider: "acme", State: rouse.WallIsOpen, Class: rouse.ClassBilling}
	closed := open
	closed.State = rouse.WallIsClosed
	elsewhere := open
	elsewhere.Provider = "other"
	family, sibling := open, open
	family.Model, sibling.Model = "opus", "sonnet"
	mine := half
	mine.ProbeTurn = "t"
	person, behind, launch := rouse.Bid{TurnID: "t"}, rouse.Bid{TurnID: "t", Behind: true}, rouse.Bid{TurnID: "t", Unattended: true}
	forced, within := rouse.Bid{TurnID: "t", Unattended: true, Force: true}, rouse.Bid{TurnID: "t", Unattended: true, Within: true}
	for name, c := range map[string]struct {
		bid    rouse.Bid
		walls  []rouse.Wall
		want   rouse.AdmissionVerdict
		probes int
	}{
		"no wall":                      {launch, nil, rouse.Admit, 0},
		"a closed one":                 {launch, []rouse.Wall{closed}, rouse.Admit, 0},
		"another provider's":           {launch, []rouse.Wall{elsewhere}, rouse.Admit, 0},
		"the family":                   {launch, []rouse.Wall{family}, rouse.Refuse, 0},
		"another family":               {launch, []rouse.Wall{sibling}, rouse.Admit, 0},
		"person, open":                 {person, []rouse.Wall{open}, rouse.Admit, 1},
		"person, half-open":            {person, []rouse.Wall{half}, rouse.Admit, 1},
		"person, tried":                {person, []rouse.Wall{tried}, rouse.Refuse, 0},
		"person, billing":              {person, []rouse.Wall{billing}, rouse.Admit, 1},
		"behind, open":                 {behind, []rouse.Wall{open}, rouse.Hold, 0},
		"behind, due":                  {behind, []rouse.Wall{due}, rouse.Admit, 1},
		"behind, tried":                {behind, []rouse.Wall{tried}, rouse.Hold, 0},
		"behind, billing":              {behind, []rouse.Wall{billing}, rouse.Hold, 0},
		"launch, open":                 {launch, []rouse.Wall{open}, rouse.Refuse, 0},
		"launch, due":                  {launch, []rouse.Wall{due}, rouse.Admit, 1},
		"launch, tried":                {launch, []rouse.Wall{tried}, rouse.Refuse, 0},
		"launch, its own try":          {launch, []rouse.Wall{mine}, rouse.Admit, 1},
		"forced, open":                 {forced, []rouse.Wall{open}, rouse.Admit, 1},
		"forced, tried":                {forced, []rouse.Wall{tried}, rouse.Admit, 0},
		"inside a turn":                {within, []rouse.Wall{tried}, rouse.Admit, 0},
		"two: one holds":               {behind, []rouse.Wall{half, open}, rouse.Hold, 0},
		"two: one refuses":             {launch, []rouse.Wall{half, tried}, rouse.Refuse, 0},
		"two half-open are both tried": {launch, []rouse.Wall{half, due}, rouse.Admit, 2},
	} {
		c.bid.Model = model
		for i := range c.walls {
			c.walls[i].ID = string(rune('a' + i))
		}
		got := Decide(now, c.bid, c.walls)
		if got.Verdict != c.want || len(got.Probes) != c.probes || (got.Wall == nil) != (c.want == rouse.Admit) {
			t.Errorf("%s: %+v, want %s and %d probes", name, got, c.want, c.probes)
		}
	}
}

func TestPark(t *testing.T) {
	for name, c := range map[string]struct {
		wall      rouse.Wall
		from, end time.Duration // bounds of ProbeAt after now
	}{
		"a known reset":        {rouse.Wall{ResetAt: now.Add(70 * time.Second)}, 70 * time.Second, 74 * time.Second},
		"five hours":           {rouse.Wall{ResetAt: now.Add(5 * time.Hour)}, 5 * time.Hour, 5*time.Hour + 3*time.Second},
		"a reset that is past": {rouse.Wall{ResetAt: now.Add(-time.Second), Refusals: 1}, 30 * time.Second, 33 * time.Second},
		"unknown":              {rouse.Wall{Refusals: 1}, 5 * time.Minute, 330 * time.Second},
		"unknown, again":       {rouse.Wall{Refusals: 3}, 20 * time.Minute, 22 * time.Minute},
		"at most an hour":      {rouse.Wall{Refusals: 1000}, time.Hour, 66 * time.Minute},
	} {
		c.wall.ID = "wal_" + name
		w := Park(now, c.wall)
		if wait := w.ProbeAt.Sub(now); w.State != rouse.WallIsOpen || wait < c.from || wait > c.end || !w.ResetAt.Equal(c.wall.ResetAt) {
			t.Errorf("%s: after %v, %+v", name, wait, w)
		}
	}
	if w := Park(now, rouse.Wall{Class: rouse.ClassBilling, ResetAt: now.Add(time.Hour)}); !w.ProbeAt.IsZero() {
		t.Errorf("billing mends itself: %+v", w)
	}
}

// shelf is a set of walls in memory.
type shelf struct {
	mu    sync.Mutex
	walls []rouse.Wall
	fails int
	looks int
}

func (s *shelf) Walls(context.Context) ([]rouse.Wall, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]rouse.Wall{}, s.walls...), nil
}

func (s *shelf) HalfOpenWalls(_ context.Context, now time.Time) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.fails > 0 {
		s.fails--
		return 0, errors.New("the database is gone")
	}
	for i := range s.walls {
		if state := s.walls[i].StateAt(now); state != s.walls[i].State {
			s.walls[i].State = state
			n++
		}
	}
	return n, nil
}

// The gate half-opens each wall at its time, looks again when told of a new
// one, and outlives a database that refuses.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &shelf{fails: 1, walls: []rouse.Wall{
			{ID: "a", State: rouse.WallIsOpen, ProbeAt: start.Add(time.Hour)}, {ID: "b", State: rouse.WallIsOpen}}}
		var kicked []time.Duration
		g := New(s, func() { kicked = append(kicked, time.Since(start)) }, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- g.Serve(ctx) }()
		<-time.After(time.Minute)
		s.mu.Lock()
		s.walls = append(s.walls, rouse.Wall{ID: "c", State: rouse.WallIsOpen, ProbeAt: start.Add(2 * time.Minute)})
		s.mu.Unlock()
		g.Changed()
		g.Changed() // a second word waits for nobody
		<-time.After(3 * time.Hour)
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(kicked) != 2 || kicked[0] != 2*time.Minute || kicked[1] != time.Hour {
			t.Errorf("kicked after %v", kicked)
		}
		if s.walls[0].State != rouse.WallIsHalf || s.walls[1].State != rouse.WallIsOpen || s.walls[2].State != rouse.WallIsHalf {
			t.Errorf("%+v", s.walls)
		}
		if s.looks > 40 {
			t.Errorf("looked %d times", s.looks)
		}
	})
}
