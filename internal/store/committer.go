package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"rouse"
)

// Durability of a write.
type Durability int

const (
	// Lazy survives the death of the process, not of the machine.
	Lazy Durability = iota
	// Promise is on disk when the write returns: accepted prompts, settled
	// turns, whatever is answered 2xx.
	Promise
)

// batchMax bounds how many writes share a commit, promisesMax how many of them
// are waited for: a sync costs less than a handful of them, and what came first
// must not wait for all that came with it.
const (
	batchMax    = 256
	promisesMax = 16
)

type op struct {
	durable Durability
	fn      func(*Tx) error
	done    func(error)
	err     error
	// claimed is taken by the committer that runs fn, or by a caller that gives
	// up before: fn never runs behind the back of a caller that has gone.
	claimed atomic.Bool
}

// Write runs fn inside a transaction and returns when it is committed. fn may
// run once only and must not block; an error from fn undoes its writes alone.
// If ctx ends before fn runs, it never does.
func (s *Store) Write(ctx context.Context, d Durability, fn func(*Tx) error) error {
	done := make(chan error, 1)
	o := &op{durable: d, fn: fn, done: func(err error) { done <- err }}
	if err := s.submit(ctx, o); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if o.claimed.CompareAndSwap(false, true) {
			return rouse.Wrap("store: write", context.Cause(ctx))
		}
	case <-s.done:
		if o.claimed.CompareAndSwap(false, true) {
			return rouse.Errorf(rouse.Unavailable, "store: write", "the server is shutting down")
		}
	}
	return <-done // it runs now
}

// Go is Write without waiting: done, which must not block, hears of the end.
func (s *Store) Go(ctx context.Context, d Durability, fn func(*Tx) error, done func(error)) {
	if err := s.submit(ctx, &op{durable: d, fn: fn, done: done}); err != nil {
		done(err)
	}
}

func (s *Store) submit(ctx context.Context, o *op) error {
	select {
	case s.queue <- o:
		return nil
	case <-ctx.Done():
		return rouse.Wrap("store: write", context.Cause(ctx))
	case <-s.done:
		return rouse.Errorf(rouse.Unavailable, "store: write", "the server is shutting down")
	}
}

// Serve is the committer: it runs until ctx ends and everything submitted
// before is written. It must be running for Write to return.
func (s *Store) Serve(ctx context.Context) error {
	s.mu.Lock()
	if s.closed || s.served {
		s.mu.Unlock()
		return rouse.Errorf(rouse.Internal, "store: serve", "already served or closed")
	}
	s.served = true
	s.mu.Unlock()
	defer close(s.done)

	c, err := newCommitter(s)
	if err != nil {
		return failure("store: serve", err)
	}
	defer c.close()
	batch := make([]*op, 0, batchMax)
	for {
		batch = batch[:0]
		select {
		case o := <-s.queue:
			batch = append(batch, o)
		case <-ctx.Done():
			if batch = drain(s.queue, batch); len(batch) == 0 {
				return nil
			}
		}
		c.run(drain(s.queue, batch))
	}
}

func drain(queue <-chan *op, batch []*op) []*op {
	promises := 0
	for _, o := range batch {
		promises += promised(o)
	}
	for len(batch) < batchMax && promises < promisesMax {
		select {
		case o := <-queue:
			batch = append(batch, o)
			promises += promised(o)
		default:
			return batch
		}
	}
	return batch
}

func promised(o *op) int {
	if o.durable == Promise {
		return 1
	}
	return 0
}

// committer owns the write connection.
type committer struct {
	s     *Store
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	sync  Durability
}

func newCommitter(s *Store) (*committer, error) {
	conn, err := s.write.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	c := &committer{s: s, conn: conn, stmts: map[string]*sql.Stmt{}}
	// What a savepoint would undo is kept in memory: a large batch spills it
	// into a file otherwise, page by page.
	if _, err := conn.ExecContext(context.Background(), "PRAGMA temp_store=MEMORY"); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *committer) close() {
	for _, st := range c.stmts {
		_ = st.Close()
	}
	_ = c.conn.Close()
}

// run commits one batch and tells everybody in it what became of it.
func (c *committer) run(batch []*op) {
	if batch = claimed(batch, 0); len(batch) == 0 {
		return
	}
	tx := &Tx{c: c, now: time.Now().UTC().Truncate(time.Millisecond), seq: c.s.seq.Load(), partN: c.s.parts}
	batch, err := c.commit(tx, batch)
	c.s.noteRefusal(len(batch), err)
	if err != nil {
		c.exec("ROLLBACK") // nothing to undo if BEGIN failed: the error is the same
		for _, o := range batch {
			if o.err == nil {
				o.err = failure("store: commit", err)
			}
		}
	} else {
		c.s.parts = tx.partN
		c.s.seq.Store(tx.seq)
		if c.s.committed != nil && len(tx.events) > 0 {
			c.s.committed(tx.events)
		}
	}
	for _, o := range batch {
		o.done(o.err)
	}
}

// noteRefusal logs the first of a row of refused commits, and how long it lasted.
func (s *Store) noteRefusal(writes int, err error) {
	switch was := s.refusing.Swap(err != nil); {
	case err != nil && !was:
		s.refused = time.Now()
		s.log.Error("store.commit", "writes", writes, "err", err)
	case err == nil && was:
		s.log.Info("store.works", "after", time.Since(s.refused).Round(time.Millisecond))
	}
}

// commit writes a batch, and what comes while it does: the sync at the end is
// the dear part. It gives the batch as it became.
func (c *committer) commit(tx *Tx, batch []*op) ([]*op, error) {
	if err := c.begin(batch); err != nil {
		return batch, err
	}
	done := 0
	if len(batch) == 1 { // no savepoint: its error is the batch's
		o := batch[0]
		if o.err = guarded(tx, o.fn); o.err != nil {
			tx.seq, tx.partN, tx.events = c.s.seq.Load(), c.s.parts, nil
			return batch, c.exec("ROLLBACK")
		}
		done = 1
	}
	for {
		for _, o := range batch[done:] {
			if err := c.member(tx, o); err != nil {
				return batch, err
			}
		}
		done = len(batch)
		if c.sync != Promise {
			break
		}
		if batch = claimed(drain(c.s.queue, batch), done); len(batch) == done {
			break
		}
	}
	return batch, c.exec("COMMIT")
}

// begin opens the batch's transaction, as durable as its most durable member.
func (c *committer) begin(batch []*op) error {
	want := Lazy
	for _, o := range batch {
		want = max(want, o.durable)
	}
	if want != c.sync {
		// Not prepared: this pragma acts when it is compiled.
		level := map[Durability]string{Lazy: "NORMAL", Promise: "FULL"}[want]
		if _, err := c.conn.ExecContext(context.Background(), "PRAGMA synchronous="+level); err != nil {
			return err
		}
		c.sync = want
	}
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if c.s.fault != nil {
		return c.s.fault()
	}
	return nil
}

// claimed takes the members from an index on for this committer; whose caller
// has given up is left out.
func claimed(batch []*op, from int) []*op {
	mine := slices.DeleteFunc(batch[from:], func(o *op) bool { return !o.claimed.CompareAndSwap(false, true) })
	return batch[:from+len(mine)]
}

// member runs one write in a savepoint of its own, so that its error is its
// own. The error returned here is the batch's.
func (c *committer) member(tx *Tx, o *op) error {
	if err := c.exec("SAVEPOINT member"); err != nil {
		return err
	}
	seq, part, events := tx.seq, tx.partN, len(tx.events)
	if o.err = guarded(tx, o.fn); o.err != nil {
		tx.seq, tx.partN, tx.events = seq, part, tx.events[:events]
		if err := c.exec("ROLLBACK TO member"); err != nil {
			return err
		}
	}
	return c.exec("RELEASE member")
}

// guarded keeps a panic in one write from taking the committer down.
func guarded(tx *Tx, fn func(*Tx) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &rouse.Error{Kind: rouse.Internal, Op: "store: write", Err: fmt.Errorf("panic: %v", r)}
		}
	}()
	err = fn(tx)
	if err != nil && !errors.As(err, new(*rouse.Error)) {
		err = failure("store: write", err)
	}
	return err
}

func (c *committer) exec(text string) error {
	_, err := c.do(text)
	return err
}

func (c *committer) prepare(text string) (*sql.Stmt, error) {
	if st := c.stmts[text]; st != nil {
		return st, nil
	}
	st, err := c.conn.PrepareContext(context.Background(), text)
	if err == nil {
		c.stmts[text] = st
	}
	return st, err
}

func (c *committer) do(text string, args ...any) (sql.Result, error) {
	st, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	return st.Exec(args...)
}
