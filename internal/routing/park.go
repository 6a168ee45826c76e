package routing

import (
	"hash/fnv"
	"time"

	"rouse"
)

// Bounds of the time until a wall may be tried.
const (
	maxSpread    = 3 * time.Second // behind a known reset, so that not everybody asks at once
	firstBackOff = 5 * time.Minute // where the reset is unknown
	maxBackOff   = time.Hour
)

// Park decides when a refused wall may be tried next: shortly after its reset,
// or, where the provider names none, after a back-off that doubles with every
// refusal up to an hour. Billing mends itself at no time. That time is ours
// and is never shown as the reset.
func Park(now time.Time, w rouse.Wall) rouse.Wall {
	w.State = rouse.WallIsOpen
	w.ProbeAt = time.Time{}
	switch {
	case w.Class == rouse.ClassBilling:
	case !w.ResetAt.IsZero():
		w.ProbeAt = w.ResetAt
		if !w.ProbeAt.After(now) { // refused at the very reset, or after it
			w.ProbeAt = now.Add(backOff(w.Refusals) / 10)
		}
		w.ProbeAt = w.ProbeAt.Add(spread(w.ID, min(maxSpread, w.ProbeAt.Sub(now)/20)))
	default:
		wait := backOff(w.Refusals)
		w.ProbeAt = now.Add(wait + spread(w.ID, wait/10))
	}
	return w
}

func backOff(refusals int) time.Duration {
	wait := firstBackOff
	for ; refusals > 1 && wait < maxBackOff; refusals-- {
		wait *= 2
	}
	return min(wait, maxBackOff)
}

// spread is a part of limit that differs from wall to wall and not from call
// to call.
func spread(id string, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // a hash takes anything
	return time.Duration(h.Sum64() % uint64(limit))
}
