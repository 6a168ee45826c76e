package session

import (
	"cmp"
	"time"

	"rouse"
)

// Pace is how long a lane is patient with an engine that does not do what it
// is told.
type Pace struct {
	// Ask is how long a cancelled prompt may take to end by itself; then force.
	Ask time.Duration
	// Force is how long after force the turn is settled without the engine.
	Force time.Duration
	// Enrich is how long an error without a class waits for richer evidence.
	Enrich time.Duration
	// RetryGrace is how long after its time a known retry is believed in.
	RetryGrace time.Duration
	// Probe is how long an engine may take to answer its protocol.
	Probe time.Duration
}

// DefaultPace is what is used outside drills.
var DefaultPace = Pace{Ask: 3 * time.Second, Force: 7 * time.Second, Enrich: 500 * time.Millisecond,
	RetryGrace: rouse.RetryGrace, Probe: 30 * time.Second}

func (p Pace) orDefault() Pace {
	d := &DefaultPace
	return Pace{cmp.Or(p.Ask, d.Ask), cmp.Or(p.Force, d.Force), cmp.Or(p.Enrich, d.Enrich),
		cmp.Or(p.RetryGrace, d.RetryGrace), cmp.Or(p.Probe, d.Probe)}
}

// Faster divides every patience by n, for drills; n below 1 changes nothing.
func (p Pace) Faster(n float64) Pace {
	if n <= 1 {
		return p
	}
	p = p.orDefault()
	div := func(d time.Duration) time.Duration { return max(time.Millisecond, time.Duration(float64(d)/n)) }
	return Pace{div(p.Ask), div(p.Force), div(p.Enrich), div(p.RetryGrace), div(p.Probe)}
}
