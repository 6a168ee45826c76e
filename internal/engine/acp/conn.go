package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"rouse"
	"rouse/internal/engine/acp/wire"
)

// The bounds of the connection.
const (
	lineBound = 64 << 20         // bytes of a line; a longer one is skipped and counted
	writeWait = 10 * time.Second // for an agent that does not read its input
)

// conn is a JSON-RPC connection of one JSON object per line, on a process's
// pipes. It is our own because the protocol's Go SDK closes its connection when
// 1,024 notifications wait and gives unknown updates a known one's label
// (measured with v0.13.0). Answers go to whoever asked, in the order of the
// reader; the rest goes to serve.
type conn struct {
	out *os.File
	now func() time.Time

	writing  sync.Mutex
	patience time.Duration  // with an agent that does not read
	writers  sync.WaitGroup // of later

	mu      sync.Mutex
	next    int64
	waiting map[int64]func(time.Time, *wire.Message) // by request id
	ended   error                                    // set when the reader is done
	stuck   error                                    // set when a line could not be written whole: no other may follow it
	outbox  [][]byte                                 // lines that nobody waits for
	posting bool                                     // somebody writes the outbox

	skipped skipped
}

// skipped counts lines that were no messages, by reason.
type skipped struct{ tooLong, broken int64 }

func newConn(out *os.File, now func() time.Time) *conn {
	return &conn{out: out, now: now, patience: writeWait, waiting: map[int64]func(time.Time, *wire.Message){}}
}

// read takes lines until in ends, and then answers everybody who still waits.
// serve gets requests and notifications; size is the line's in bytes. handled
// hears each line once it was dealt with.
func (c *conn) read(in io.Reader, serve func(at time.Time, m *wire.Message, size int), handled func([]byte)) {
	lines(in, lineBound, func(line []byte, whole bool) {
		defer handled(line)
		if !whole {
			c.count(func(s *skipped) { s.tooLong++ })
			return
		}
		at := c.now()
		m, err := wire.Parse(line)
		switch {
		case err != nil:
			c.count(func(s *skipped) { s.broken++ })
		case m.IsAnswer():
			if answer := c.asked(m); answer != nil {
				answer(at, m)
			}
		default:
			serve(at, m, len(line))
		}
	})
	c.mu.Lock()
	c.ended = errGone
	waiting := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, answer := range waiting {
		answer(c.now(), nil)
	}
}

// errGone says that the agent's output ended.
var errGone = rouse.Errorf(rouse.Upstream, "acp: read", "the agent's process ended")

func (c *conn) count(change func(*skipped)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.skipped)
}

// asked finds who waits for an answer, once.
func (c *conn) asked(m *wire.Message) func(time.Time, *wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, answer := range c.waiting {
		if wire.SameID(m.ID, idOf(id)) {
			delete(c.waiting, id)
			return answer
		}
	}
	return nil
}

// ask sends a request; answer gets the answer on the reader's goroutine, or nil
// if the connection ends first.
func (c *conn) ask(build func(id int64) []byte, answer func(time.Time, *wire.Message)) (id int64, err error) {
	c.mu.Lock()
	c.next++
	id = c.next
	c.mu.Unlock()
	line := build(id)
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return 0, c.ended
	}
	c.waiting[id] = answer // not before the line is: who guesses its number has no answer to it
	c.mu.Unlock()
	if err := c.send(line); err != nil {
		c.forget(id)
		return 0, err
	}
	return id, nil
}

func idOf(id int64) json.RawMessage { return strconv.AppendInt(nil, id, 10) }

// forget stops waiting for an answer.
func (c *conn) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// call asks and waits. An error answer is a *wire.Error inside the error.
func (c *conn) call(ctx context.Context, method string, build func(id int64) []byte) (*wire.Message, error) {
	return c.callThen(ctx, method, build, func(*wire.Message) {})
}

// callThen is call; then gets the result on the reader's goroutine, before
// what the agent wrote behind it is dealt with.
func (c *conn) callThen(ctx context.Context, method string, build func(id int64) []byte, then func(*wire.Message)) (*wire.Message, error) {
	got := make(chan *wire.Message, 1)
	id, err := c.ask(build, func(_ time.Time, m *wire.Message) {
		if m != nil && m.Error == nil {
			then(m)
		}
		got <- m
	})
	if err != nil {
		return nil, err
	}
	select {
	case m := <-got:
		switch {
		case m == nil:
			return nil, errGone
		case m.Error != nil:
			return nil, &refusal{method: method, err: m.Error}
		}
		return m, nil
	case <-ctx.Done():
		c.forget(id)
		return nil, context.Cause(ctx)
	}
}

// refusal is an agent's error answer to a request of ours.
type refusal struct {
	method string
	err    *wire.Error
}

func (r *refusal) Error() string { return "acp: " + r.method + " was refused" }

// refused gives the agent's error, if err is one.
func refused(err error) (*wire.Error, bool) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return nil, false
	}
	return r.err, true
}

// send writes a line, for as long as its patience lasts.
func (c *conn) send(line []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.broken(); err != nil {
		return err
	}
	_ = c.out.SetWriteDeadline(time.Now().Add(c.patience)) // an end without deadlines just blocks
	if _, err := c.out.Write(line); err != nil {
		err = &rouse.Error{Kind: rouse.Upstream, Op: "acp: write", Msg: "the agent does not read its input", Err: err}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stuck = err
		return err
	}
	return nil
}

// later writes a line besides: the reader must not wait for an agent that
// writes and does not read.
func (c *conn) later(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stuck != nil {
		return
	}
	c.outbox = append(c.outbox, line)
	if !c.posting {
		c.posting = true
		c.writers.Go(c.post)
	}
}

// post empties the outbox.
func (c *conn) post() {
	for {
		c.mu.Lock()
		lines := c.outbox
		c.outbox = nil
		if len(lines) == 0 {
			c.posting = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		for _, line := range lines {
			if c.send(line) != nil { // whoever asks next is told
				break
			}
		}
	}
}

// broken says why nothing can be written any more; nil while it can.
func (c *conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stuck
}

// usable reports that both directions work, as far as is known.
func (c *conn) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended == nil && c.stuck == nil
}

// lines splits a stream. A line longer than bound is told as not whole, without
// its text; so is nothing else: the rest after the last newline is a line too.
func lines(in io.Reader, bound int, each func(line []byte, whole bool)) {
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	long := false
	for {
		piece, err := r.ReadSlice('\n')
		switch {
		case long:
		case len(line)+len(piece) > bound:
			long, line = true, nil
		default:
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if line = trimmed(line); long || len(line) > 0 {
			each(line, !long)
		}
		line, long = nil, false // what was parsed keeps pieces of it
		if err != nil {
			return
		}
	}
}

// trimmed drops the newline.
func trimmed(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}
