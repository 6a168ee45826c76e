package acp

import (
	"context"
	"sync"

	"rouse/internal/engine"
)

// The bounds of what an agent may be ahead of its session's lane.
const (
	queueBytes = 64 << 20
	joinBelow  = 16 << 10 // pieces of text are joined up to this size
	updateSize = 256      // of an update beside what it was on the wire
)

// queue is between the reader of a process and one session's sink, so that a
// slow lane never stalls the reader, and with it the other sessions of the
// process. Only when a lane is a whole queueBytes behind does the reader wait.
type queue struct {
	sink engine.Sink

	mu        sync.Mutex
	items     []engine.Update
	bytes     int
	put, done uint64        // updates that came, that the sink took or that were dropped
	room      chan struct{} // closed when there is room; nil while there is
	moved     chan struct{} // closed and replaced when done moves
	bell      chan struct{}
	closed    bool
}

func newQueue(sink engine.Sink) *queue {
	return &queue{sink: sink, moved: make(chan struct{}), bell: make(chan struct{}, 1)}
}

// add takes an update, joining text to what waits.
func (q *queue) add(u engine.Update) {
	q.mu.Lock()
	for q.room != nil && !q.closed {
		room := q.room
		q.mu.Unlock()
		<-room
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if n := len(q.items); n > 0 && joined(&q.items[n-1], &u) {
		q.fill(u.Bytes)
		return
	}
	q.fill(u.Bytes + updateSize)
	q.items = append(q.items, u)
	q.put++
	select {
	case q.bell <- struct{}{}:
	default:
	}
}

// fill counts what waits; whoever comes when it is too much waits, too.
func (q *queue) fill(bytes int) {
	if q.bytes += bytes; q.bytes > queueBytes {
		q.room = make(chan struct{})
	}
}

// joined adds a piece of text to the one that waits before it.
func joined(last, next *engine.Update) bool {
	if last.Generation != next.Generation || last.Genuine != next.Genuine {
		return false
	}
	switch b := next.Body.(type) {
	case engine.Text:
		if t, ok := last.Body.(engine.Text); ok && len(t.Text) < joinBelow {
			last.Body, last.At, last.Bytes = engine.Text{Text: t.Text + b.Text}, next.At, last.Bytes+next.Bytes
			return true
		}
	case engine.Reasoning:
		if t, ok := last.Body.(engine.Reasoning); ok && len(t.Text) < joinBelow {
			last.Body, last.At, last.Bytes = engine.Reasoning{Text: t.Text + b.Text}, next.At, last.Bytes+next.Bytes
			return true
		}
	}
	return false
}

// run gives updates to the sink until ctx ends.
func (q *queue) run(ctx context.Context) {
	for {
		q.mu.Lock()
		items := q.items
		q.items = nil
		q.mu.Unlock()
		for i := range items {
			q.sink.Update(ctx, items[i])
			if ctx.Err() != nil {
				return
			}
			q.took(&items[i])
		}
		if len(items) > 0 {
			continue
		}
		select {
		case <-q.bell:
		case <-ctx.Done():
			return
		}
	}
}

// took notes that an update waits no more.
func (q *queue) took(u *engine.Update) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= u.Bytes + updateSize
	q.advance(1)
}

// advance counts updates as done and wakes whoever waits for that.
func (q *queue) advance(n int) {
	q.done += uint64(n)
	if q.room != nil && q.bytes <= queueBytes {
		close(q.room)
		q.room = nil
	}
	close(q.moved)
	q.moved = make(chan struct{})
}

// flush returns when the sink has taken all that came before, or ctx ends.
func (q *queue) flush(ctx context.Context) {
	q.mu.Lock()
	want := q.put
	for q.done < want && !q.closed {
		moved := q.moved
		q.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
		q.mu.Lock()
	}
	q.mu.Unlock()
}

// drop forgets what the sink has not taken; nobody waits for it.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.items {
		q.bytes -= q.items[i].Bytes + updateSize
	}
	n := len(q.items)
	q.items = nil
	q.advance(n)
}

// close lets go of whoever waits; nothing is taken any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
	close(q.moved)
	q.moved = make(chan struct{})
}
