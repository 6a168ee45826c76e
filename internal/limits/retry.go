package limits

import (
	"time"
)

// Bounds of retrying one model call.
const (
	MaxAttempts = 5                // calls in all
	MaxElapsed  = 10 * time.Minute // from the first call on
	MaxWait     = 60 * time.Second // a reset further ahead ends the turn

	firstWait = 2 * time.Second
	longWait  = 30 * time.Second
)

// Retry decides whether a failed call is made again, and after what wait. This
// is the only place that does. attempt counts the calls made so far, elapsed
// the time since the first; jitter in [0,1) spreads the back-off by up to a
// quarter.
func Retry(f Finding, attempt int, elapsed time.Duration, now time.Time, jitter float64) (wait time.Duration, again bool) {
	if !f.Retryable() || attempt >= MaxAttempts {
		return 0, false
	}
	if f.ResetAt.IsZero() {
		wait = firstWait << max(0, attempt-1)
		wait = min(wait+time.Duration(jitter*float64(wait)/4), longWait)
	} else if wait = max(0, f.ResetAt.Sub(now)); wait > MaxWait {
		return 0, false
	}
	if elapsed+wait > MaxElapsed {
		return 0, false
	}
	return wait, true
}
