package watch

import (
	"time"

	"rouse"
)

// ringSize is how many samples are kept of a running turn.
const ringSize = 16

// watched is what is kept of a turn that runs here.
type watched struct {
	turn       string
	generation uint64
	seen       uint64 // the pass that saw it last

	ring [ringSize]rouse.Sample
	n    int // samples taken; the newest is at (n-1) % ringSize

	code rouse.VerdictCode // stored last
	// told is the time of the stored notice; shown says that it is visible.
	told  time.Time
	shown bool

	clock time.Time     // of the vitals, when it moved last
	lost  time.Duration // what the watch had lost by then
}

// take looks at the turn's vitals: another turn begins anew.
func (s *watched) take(v *rouse.Vitals, g *gaps) {
	if s.turn != v.TurnID || s.generation != v.Generation {
		*s = watched{turn: v.TurnID, generation: v.Generation}
	}
	if !s.clock.Equal(v.Clock) {
		s.clock, s.lost = v.Clock, g.before(v.Clock)
	}
}

// sample keeps what the turn shows now, unless it was just done.
func (s *watched) sample(now time.Time, v *rouse.Vitals, every time.Duration) {
	if s.n > 0 && now.Sub(s.ring[(s.n-1)%ringSize].At) < every/2 {
		return
	}
	s.ring[s.n%ringSize] = sampleOf(now, v)
	s.n++
}

func sampleOf(now time.Time, v *rouse.Vitals) rouse.Sample {
	state := rouse.Generating
	if v.Waiting != nil {
		state = rouse.Waiting
	}
	return rouse.Sample{At: now, State: state, Counters: v.Counters}
}

// before is the newest sample at least apart old; nil when there is none.
func (s *watched) before(now time.Time, apart time.Duration) *rouse.Sample {
	for i := s.n - 1; i >= 0 && i >= s.n-ringSize; i-- {
		if p := &s.ring[i%ringSize]; now.Sub(p.At) >= apart {
			return p
		}
	}
	return nil
}

// oldest is the oldest sample kept; nil when there is none.
func (s *watched) oldest() *rouse.Sample {
	if s.n == 0 {
		return nil
	}
	return &s.ring[max(0, s.n-ringSize)%ringSize]
}

// facts are what a running turn is judged by.
func (s *watched) facts(now time.Time, v *rouse.Vitals, l *Limits, g *gaps, late bool) Facts {
	return Facts{Running: true, Live: true, Vitals: v, Before: s.before(now, l.FrozenApart), Lost: g.total - s.lost, Late: late, Was: s.code}
}

// gaps is the time in which the watch did not run although it should have: the
// machine was suspended, or the process starved or was stopped. Silence in it
// is nobody's.
type gaps struct {
	last  Reading
	total time.Duration
	// The newest gap: when it ended and how much it was.
	end  time.Time
	size time.Duration
	late bool // a tick is owed a rest
}

// woke notes that the watch runs at r, now, and should have run every so often.
// It says whether it came more than two ticks late.
func (g *gaps) woke(r Reading, now time.Time, every, tick time.Duration) bool {
	last := g.last
	g.last = r
	if last.Wall.IsZero() {
		return false
	}
	mono := r.Mono - last.Mono - every
	wall := r.Wall.Sub(last.Wall) - every
	if max(mono, wall) <= 2*tick {
		return false
	}
	g.late = true
	if mono > 0 { // vitals carry monotonic times: a suspension is not in them
		g.total += mono
		g.end, g.size = now, mono
	}
	return true
}

// before is the time that was lost until t.
func (g *gaps) before(t time.Time) time.Duration {
	if t.Before(g.end) {
		return g.total - g.size
	}
	return g.total
}
