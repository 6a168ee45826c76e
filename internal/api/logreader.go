package api

import (
	"context"
	"fmt"

	"rouse"
	"rouse/internal/feed"
	"rouse/internal/store"
)

// Log reads committed events from a cursor: from the ring, or from the store
// when the reader has fallen out of it. Both surfaces stream from it.
type Log struct {
	Store  *store.Store
	Feed   *feed.Feed
	Filter feed.Filter
	// Cursor is the last sequence number that was read or skipped.
	Cursor int64
}

// Gap says that the store has forgotten events between After and Oldest, or
// never had one numbered After; the reader has to look at the rows again. Head
// is where it goes on.
type Gap struct {
	After   int64  `json:"after"`
	Oldest  int64  `json:"oldest"`
	Head    int64  `json:"head"`
	Reason  string `json:"reason"`  // forgotten or unknown
	Message string `json:"message"` // for people
}

func gapOf(after, oldest, head int64) *Gap {
	g := &Gap{After: after, Oldest: oldest, Head: head, Reason: "forgotten",
		Message: fmt.Sprintf("The events behind %d are not kept any more; the oldest is %d. Read the rows again: the stream goes on behind %d.", after, oldest, head)}
	if after > head {
		g.Reason = "unknown"
		g.Message = fmt.Sprintf("There is no event %d: the newest is %d. The position is of another database, or from before a restore. Read the rows again: the stream goes on behind %d.", after, head, head)
	}
	return g
}

// Next gives at most limit events after Cursor and moves it. more asks to be
// called again at once. After a gap the cursor stands at the head.
func (l *Log) Next(ctx context.Context, limit int) (events []rouse.Event, more bool, gap *Gap, err error) {
	unknown := l.Cursor > l.Feed.Head() // of another database, or from before a restore
	if !unknown {
		events, cursor, ok := l.Feed.Since(l.Cursor, l.Filter.Match, limit)
		if ok {
			l.Cursor = cursor
			return events, len(events) == limit, nil, nil
		}
	}
	oldest, err := l.Store.Oldest(ctx)
	if err != nil {
		return nil, false, nil, rouse.Wrap("read log", err)
	}
	if unknown || oldest > l.Cursor+1 {
		gap := gapOf(l.Cursor, oldest, l.Feed.Head())
		l.Cursor = gap.Head
		return nil, true, gap, nil
	}
	events, cursor, err := l.Store.Events(ctx, l.Cursor, store.EventFilter{Session: l.Filter.Session, Directory: l.Filter.Directory}, limit)
	if err != nil {
		return nil, false, nil, rouse.Wrap("read log", err)
	}
	l.Cursor = cursor
	return events, true, nil, nil
}
