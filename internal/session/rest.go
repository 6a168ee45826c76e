package session

import (
	"cmp"
	"slices"

	"rouse"
	"rouse/internal/store"
)

// rest is what of a turn is still open when it ends. The lane that runs the
// turn knows it; after a crash it is read. Whoever gets one may change it.
type rest struct {
	message  *rouse.Message  // the assistant message in flight, or nil
	answered bool            // the turn has an assistant message, in flight or not
	parts    []rouse.Part    // open, in the order in which they were begun
	requests []rouse.Request // not answered
}

// rest is what stays open once all that is pending is written and the growing
// text is closed.
func (a *active) rest() rest {
	r := rest{answered: a.answered}
	if a.msg != nil {
		m := *a.msg
		r.message = &m
	}
	for _, p := range a.tools {
		row, tool := *p, *p.Tool
		row.Tool = &tool
		r.parts = append(r.parts, row)
	}
	slices.SortFunc(r.parts, func(a, b rouse.Part) int { return cmp.Compare(a.ID, b.ID) })
	for _, q := range a.requests {
		r.requests = append(r.requests, q)
	}
	slices.SortFunc(r.requests, func(a, b rouse.Request) int { return cmp.Compare(a.ID, b.ID) })
	return r
}

// storedRest reads what a server that is gone left open. Text that was flushed
// but not folded is taken from its chunks.
func storedRest(tx *store.Tx, s *rouse.Session, t *rouse.Turn) (r rest, err error) {
	entries, err := tx.TurnEntries(s.ID, t.Generation)
	if err != nil {
		return r, err
	}
	var growing []string
	for i := range entries {
		e := &entries[i]
		if e.Message.Role != rouse.Assistant {
			continue
		}
		r.answered = true
		if e.Message.Completed.IsZero() {
			r.message = &e.Message
		}
		for _, p := range e.Parts {
			if !p.Open {
				continue
			}
			r.parts = append(r.parts, p)
			if p.Tool == nil {
				growing = append(growing, p.ID)
			}
		}
	}
	chunks, err := tx.TakeChunks(growing)
	if err != nil {
		return r, err
	}
	for i := range r.parts {
		r.parts[i].Text += chunks[r.parts[i].ID]
	}
	r.requests, err = tx.Requests(s.ID)
	return r, err
}
