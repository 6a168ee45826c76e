package session

import (
	"sync"
)

// mailbox is an unbounded queue with a bell. What is posted is small and
// bounded by who posts: text comes through the sink, which is bounded.
type mailbox struct {
	mu   sync.Mutex
	msgs []any
	bell chan struct{}
}

func (b *mailbox) put(m any) {
	b.mu.Lock()
	b.msgs = append(b.msgs, m)
	b.mu.Unlock()
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

func (b *mailbox) take() []any {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.msgs
	b.msgs = nil
	return m
}

func (b *mailbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.msgs) == 0
}

// waits wakes whoever waits for a turn's end.
type waits struct {
	mu sync.Mutex
	of map[string][]chan struct{}
}

func (w *waits) add(turnID string) (ch chan struct{}, forget func()) {
	ch = make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[turnID] = append(w.of[turnID], ch)
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		list := w.of[turnID]
		for i := range list {
			if list[i] == ch {
				w.of[turnID] = append(list[:i:i], list[i+1:]...)
			}
		}
		if len(w.of[turnID]) == 0 {
			delete(w.of, turnID)
		}
	}
}

func (w *waits) wake(turnID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.of[turnID] {
		close(ch)
	}
	delete(w.of, turnID)
}

// slots bounds the turns that run at once, first come first served.
type slots struct {
	mu      sync.Mutex
	bounded bool
	free    int
	line    []*lane
}

// take gives a slot, or puts the lane in line: it is kicked when one is free.
func (s *slots) take(ln *lane) bool {
	if !s.bounded {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		return true
	}
	for _, other := range s.line {
		if other == ln {
			return false
		}
	}
	s.line = append(s.line, ln)
	return false
}

func (s *slots) give() {
	if !s.bounded {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if len(s.line) > 0 {
		next := s.line[0]
		s.line = s.line[1:]
		next.box.put(kick{})
	}
}
