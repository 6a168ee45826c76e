package api

import (
	"sync"
	"time"
)

// bucket is a token bucket: it holds up to burst and gains rate per second.
type bucket struct {
	level float64
	at    time.Time
}

// rates limits how often each principal may knock.
type rates struct {
	mu      sync.Mutex
	buckets map[Principal]*bucket
	limit   func(Principal) (rate, burst float64)
}

// maxBuckets bounds the memory of rates; above it full buckets are forgotten,
// which changes nothing for their owners.
const maxBuckets = 4096

// take spends one token; false means too often, and how long to wait.
func (l *rates) take(p Principal, now time.Time) (ok bool, wait time.Duration) {
	rate, burst := l.limit(p)
	if rate <= 0 {
		return true, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[p]
	if b == nil {
		if len(l.buckets) >= maxBuckets {
			l.forget(now)
		}
		b = &bucket{level: burst, at: now}
		l.buckets[p] = b
	}
	b.level = min(burst, b.level+now.Sub(b.at).Seconds()*rate)
	b.at = now
	if b.level < 1 {
		return false, time.Duration((1 - b.level) / rate * float64(time.Second))
	}
	b.level--
	return true, 0
}

func (l *rates) forget(now time.Time) {
	for p, b := range l.buckets {
		rate, burst := l.limit(p)
		if b.level+now.Sub(b.at).Seconds()*rate >= burst {
			delete(l.buckets, p)
		}
	}
}
