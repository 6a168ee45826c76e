// Package feed carries news inside the process: a bounded ring of committed
// events, bells that say "look again", and the live text of running parts.
// The log in the store is the truth; whoever falls out of the ring reads it
// there, and nothing depends on having been called.
package feed

import (
	"context"
	"sync"

	"rouse"
)

// DefaultRing is the number of events kept in memory.
const DefaultRing = 16384

// Feed is safe for concurrent use.
type Feed struct {
	mu   sync.RWMutex
	ring []rouse.Event // seq s is at s % len
	head int64         // newest seq
	tail int64         // oldest seq in the ring; head+1 when empty

	subs  sync.RWMutex
	all   map[*Subscription]struct{}
	byDir map[string]map[*Subscription]struct{}
	bySes map[string]map[*Subscription]struct{}
	bound int
	count int

	live *liveTexts
}

// New makes a feed that keeps ring events (0: DefaultRing), starts after the
// event with sequence number head, and admits at most subscribers of them
// (0: no bound).
func New(ring int, head int64, subscribers int) *Feed {
	if ring <= 0 {
		ring = DefaultRing
	}
	return &Feed{
		ring: make([]rouse.Event, ring), head: head, tail: head + 1, bound: subscribers,
		all: map[*Subscription]struct{}{}, byDir: map[string]map[*Subscription]struct{}{}, bySes: map[string]map[*Subscription]struct{}{},
		live: newLiveTexts(),
	}
}

// Publish takes committed events in order of their sequence. The committer is
// its only caller.
func (f *Feed) Publish(events []rouse.Event) {
	if len(events) == 0 {
		return
	}
	for i := range events {
		if p, ok := events[i].Body.(*rouse.Part); ok && !p.Open {
			if t, running := f.live.parts.Load(p.ID); running {
				t.(*Text).Close()
			}
		}
	}
	f.mu.Lock()
	for _, e := range events {
		f.ring[e.Seq%int64(len(f.ring))] = e
		f.head = e.Seq
	}
	f.tail = max(f.tail, f.head-int64(len(f.ring))+1)
	f.mu.Unlock()
	f.ringFor(events)
}

// Head is the newest sequence number.
func (f *Feed) Head() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.head
}

// Since gives at most max matching events after a sequence number, and the
// cursor to go on from, which also covers what did not match. ok is false when
// after is older than the ring: read the store. match must be quick.
func (f *Feed) Since(after int64, match func(*rouse.Event) bool, max int) (events []rouse.Event, cursor int64, ok bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if after < f.tail-1 {
		return nil, after, false
	}
	for seq := after + 1; seq <= f.head; seq++ {
		e := &f.ring[seq%int64(len(f.ring))]
		if match(e) {
			if len(events) == max {
				return events, seq - 1, true
			}
			events = append(events, *e)
		}
		after = seq
	}
	return events, after, true
}

// Filter chooses what a subscription hears of; both empty is everything.
type Filter struct{ Session, Directory string }

// Match reports whether an event concerns the filter.
func (fl Filter) Match(e *rouse.Event) bool {
	return (fl.Session == "" || fl.Session == e.SessionID) && (fl.Directory == "" || fl.Directory == e.Directory)
}

// Subscription is one reader's bell.
type Subscription struct {
	f      *Feed
	filter Filter
	bell   chan struct{}

	mu    sync.Mutex
	dirty map[string]struct{}
	wrote int64
	moved chan struct{} // closed and replaced when wrote advances
}

// Subscribe rings for what filter chooses until Close. Full when the bound of
// subscribers is reached.
func (f *Feed) Subscribe(filter Filter) (*Subscription, error) {
	s := &Subscription{f: f, filter: filter, bell: make(chan struct{}, 1), dirty: map[string]struct{}{}, moved: make(chan struct{})}
	f.subs.Lock()
	defer f.subs.Unlock()
	if f.bound > 0 && f.count >= f.bound {
		return nil, rouse.Errorf(rouse.Full, "feed: subscribe", "too many event streams are open (%d); close some or try again later", f.count)
	}
	f.count++
	set := f.room(filter)
	set[s] = struct{}{}
	return s, nil
}

// room is the set a filter's subscriptions are in; made when missing.
func (f *Feed) room(filter Filter) map[*Subscription]struct{} {
	index, key := f.byDir, filter.Directory
	switch {
	case filter.Session != "":
		index, key = f.bySes, filter.Session
	case filter.Directory == "":
		return f.all
	}
	if index[key] == nil {
		index[key] = map[*Subscription]struct{}{}
	}
	return index[key]
}

// Close ends the subscription; a second call does nothing.
func (s *Subscription) Close() {
	f := s.f
	f.subs.Lock()
	defer f.subs.Unlock()
	set := f.room(s.filter)
	if _, ok := set[s]; ok {
		delete(set, s)
		f.count--
		s.Wrote(1<<63 - 1) // nobody waits for a reader that is gone
	}
	if len(set) == 0 && s.filter.Session != "" {
		delete(f.bySes, s.filter.Session)
	} else if len(set) == 0 && s.filter.Directory != "" {
		delete(f.byDir, s.filter.Directory)
	}
}

// Bell is rung, at most once ahead, after news.
func (s *Subscription) Bell() <-chan struct{} { return s.bell }

// Dirty lists the sessions with new live text since the last call.
func (s *Subscription) Dirty() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dirty) == 0 {
		return nil
	}
	out := make([]string, 0, len(s.dirty))
	for id := range s.dirty {
		out = append(out, id)
	}
	clear(s.dirty)
	return out
}

// Wrote says that everything up to seq has been written to the reader.
func (s *Subscription) Wrote(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq > s.wrote {
		s.wrote = seq
		close(s.moved)
		s.moved = make(chan struct{})
	}
}

func (s *Subscription) awaitWritten(ctx context.Context, seq int64) {
	for {
		s.mu.Lock()
		done, moved := s.wrote >= seq, s.moved
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// AwaitWritten returns when every subscription that hears of the session has
// written past seq, or ctx ends.
func (f *Feed) AwaitWritten(ctx context.Context, sessionID, directory string, seq int64) {
	for _, s := range f.concerned(sessionID, directory) {
		s.awaitWritten(ctx, seq)
	}
}

func (f *Feed) concerned(sessionID, directory string) (out []*Subscription) {
	f.subs.RLock()
	defer f.subs.RUnlock()
	for _, set := range []map[*Subscription]struct{}{f.all, f.bySes[sessionID], f.byDir[directory]} {
		for s := range set {
			if s.filter.Directory == "" || s.filter.Directory == directory {
				out = append(out, s)
			}
		}
	}
	return out
}

func (f *Feed) ringFor(events []rouse.Event) {
	f.subs.RLock()
	defer f.subs.RUnlock()
	for s := range f.all {
		s.ring()
	}
	var session, directory string
	for i := range events {
		e := &events[i]
		if i > 0 && e.SessionID == session && e.Directory == directory {
			continue
		}
		session, directory = e.SessionID, e.Directory
		for s := range f.bySes[session] {
			s.ring()
		}
		for s := range f.byDir[directory] {
			s.ring()
		}
	}
}

func (s *Subscription) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// touched marks a session's live text as new and rings.
func (f *Feed) touched(sessionID, directory string) {
	f.subs.RLock()
	defer f.subs.RUnlock()
	for _, set := range [...]map[*Subscription]struct{}{f.all, f.bySes[sessionID], f.byDir[directory]} {
		for s := range set {
			s.mu.Lock()
			s.dirty[sessionID] = struct{}{}
			s.mu.Unlock()
			s.ring()
		}
	}
}
