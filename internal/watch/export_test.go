package watch

import "time"

// Suspend moves the watch's wall clock ahead of its monotonic one, as a
// machine does that slept.
func (w *Watch) Suspend(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read := w.clock
	w.clock = func() reading {
		r := read()
		r.wall = r.wall.Add(d)
		return r
	}
}
