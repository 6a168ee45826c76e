package session

import (
	"context"
	"time"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/store"
)

var errStoreDown = rouse.Errorf(rouse.Unavailable, "session: commit", "the database cannot be used right now")

// commit writes what the fold staged, in one transaction behind the fence.
// Refused writes stay staged and are tried again.
func (ln *lane) commit() { ln.commitAs(store.Lazy) }

func (ln *lane) commitAs(d store.Durability) error {
	a := ln.turn
	if a == nil || len(a.pending) == 0 {
		return nil
	}
	if ln.down {
		return errStoreDown
	}
	crash.At(crash.FoldBefore)
	err := ln.write(d, func(tx *store.Tx) error {
		s, err := tx.Fence(ln.id, a.turn.ID, ln.l.Boot)
		if err != nil {
			return err
		}
		return applyChanges(tx, s, a.pending)
	})
	if err != nil {
		if k := rouse.KindOf(err); k == rouse.Fenced || k == rouse.NotFound {
			ln.lose(err)
			return err
		}
		ln.storeFailed(err)
		return err
	}
	crash.At(crash.FoldAfter)
	ln.committed(a)
	return nil
}

// applyChanges runs staged writes and keeps the session's counters.
func applyChanges(tx *store.Tx, s *rouse.Session, changes []change) error {
	messages, waiting := s.Messages, s.WaitingFor
	for _, c := range changes {
		if err := c(tx, s); err != nil {
			return err
		}
	}
	if s.Messages != messages || s.WaitingFor != waiting {
		return tx.KeepSession(s)
	}
	return nil
}

// committed follows a commit: parts whose start is known now may be followed
// live, and engines hear the answers that are stored.
func (ln *lane) committed(a *active) {
	a.pending = nil
	for _, t := range a.grown {
		if t == a.text {
			row := *t.part
			row.Text = ""
			t.live = ln.l.Feed.Open(&row, a.session.Directory)
			t.show()
		}
	}
	a.grown = nil
	replies := a.replies
	a.replies = nil
	for _, reply := range replies {
		reply()
	}
}

// lose lets go of a turn that is not this lane's any more: another writer
// settled it, or its session is gone. Nothing is written.
func (ln *lane) lose(cause error) {
	a := ln.turn
	if a == nil {
		return
	}
	ln.l.Log.Warn("session.fenced", "session", ln.id, "turn", a.turn.ID, "err", cause)
	if a.text != nil && a.text.live != nil {
		a.text.live.Close()
	}
	a.end(cause)
	ln.release(a)
}

// release takes the settled (or lost) turn out of the lane's hands; while its
// Prompt has not returned the lane drains.
func (ln *lane) release(a *active) {
	ln.turn = nil
	ln.sink.end()
	ln.flush.Stop()
	ln.enrich.Stop()
	ln.l.waits.wake(a.turn.ID)
	for _, done := range a.cancel.done {
		close(done)
	}
	a.cancel.done = nil
	if a.returned {
		ln.rung.Stop()
		a.end(nil)
		ln.giveBack()
		return
	}
	ln.draining = a
	ln.sink.mark(func(v *rouse.Vitals) { v.Draining = true })
}

// flushText keeps the text that grew since the last time, so that a crash
// loses at most a second of it.
func (ln *lane) flushText() {
	a := ln.turn
	if a == nil {
		return
	}
	ln.flush.Reset(flushEvery)
	t := a.text
	if t == nil || t.live == nil || t.saving || len(t.text) == t.saved || ln.down {
		return
	}
	n, part, upto := ln.l.Store.NewChunk(), t.part.ID, len(t.text)
	piece := string(t.text[t.saved:])
	t.saving = true
	t.chunks = append(t.chunks, n)
	ln.l.Store.Go(context.WithoutCancel(ln.l.ctx), store.Lazy, func(tx *store.Tx) error {
		return tx.AppendChunk(n, part, piece)
	}, func(err error) { ln.box.put(flushed{t, upto, err}) })
}

// textFlushed notes how much of a growing text is stored. What was refused is
// in the next chunk.
func (ln *lane) textFlushed(m flushed) {
	m.text.saving = false
	if m.err == nil {
		m.text.saved = m.upto
		ln.storeWorks()
	} else if ln.turn != nil && ln.turn.text == m.text {
		ln.storeFailed(m.err)
	}
}

// storeFailed notes a refused write: nothing is dispatched until one works. The
// log has the first of a row of them, and how long it lasted.
func (ln *lane) storeFailed(err error) {
	if err == nil || ln.l.ctx.Err() != nil {
		return
	}
	if ln.downSince.IsZero() {
		ln.downSince = time.Now()
		ln.l.Log.Error("session.store_down", "session", ln.id, "err", err)
	}
	ln.down = true
	ln.sink.mark(func(v *rouse.Vitals) { v.StoreDown = true })
	ln.retryAt.Reset(storeRetry)
}

// storeWorks notes a write that was done.
func (ln *lane) storeWorks() {
	if ln.downSince.IsZero() {
		return
	}
	ln.l.Log.Info("session.store_up", "session", ln.id, "after", time.Since(ln.downSince).Round(time.Millisecond))
	ln.downSince = time.Time{}
	ln.sink.mark(func(v *rouse.Vitals) { v.StoreDown = false })
}

// retryStore writes again what could not be written. The store is said to be
// down until a write was done; a turn with nothing to write asks the store.
func (ln *lane) retryStore() {
	ln.down = false
	if ln.turn == nil {
		return // next writes, if there is something to dispatch
	}
	ln.commit()
	ln.settleClaim()
	if ln.turn == nil || ln.down || ln.downSince.IsZero() {
		return
	}
	if t := ln.turn.text; t != nil && t.live != nil && len(t.text) > t.saved {
		ln.flushText()
	} else if !ln.l.Store.Refusing() {
		ln.storeWorks()
		return
	}
	ln.retryAt.Reset(storeRetry)
}

// write commits on a context of the lane's own: a turn that ends with the
// server must still be written.
func (ln *lane) write(d store.Durability, fn func(*store.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeWait)
	defer cancel()
	err := ln.l.Store.Write(ctx, d, fn)
	if err == nil {
		ln.storeWorks()
	}
	return err
}

// Durations of what a lane writes.
const (
	flushEvery = time.Second            // running text goes to the store this often
	storeRetry = 500 * time.Millisecond // after a refused write
	writeWait  = 15 * time.Second       // for one commit
)
