package opencode

import (
	"context"
	"net/http"
	"time"

	"rouse"
	"rouse/internal/api"
	"rouse/internal/feed"
	"rouse/internal/store"
)

const (
	heartbeat    = 10 * time.Second // as opencode 1.18.33
	writeTimeout = 60 * time.Second // a reader that takes nothing for so long is let go
	readAhead    = 256              // events taken from the log at once
	flushAbove   = 32 << 10         // bytes collected before a write
)

// stream writes the log and the live text to one reader. It runs in the
// request's own goroutine; a slow reader holds up nothing but itself.
type stream struct {
	h      *Handler
	ctx    context.Context
	w      http.ResponseWriter
	rc     *http.ResponseController
	sub    *feed.Subscription
	filter feed.Filter
	global bool // frames are wrapped with directory and project

	log   *api.Log
	buf   []byte
	parts map[string]*sentPart // announced running parts
	fresh map[string]struct{}  // sessions with a part announced since readLive
	ids   eventIDs
}

func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	dir, err := h.directoryFilter(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.follow(w, r, feed.Filter{Directory: dir}, false)
}

func (h *Handler) globalEvents(w http.ResponseWriter, r *http.Request) {
	h.follow(w, r, feed.Filter{}, true)
}

// follow streams events until the client leaves or the server stops.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request, filter feed.Filter, global bool) {
	after, resume, err := api.ResumePoint(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	sub, err := h.deps.Feed.Subscribe(filter)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer sub.Close()
	s := &stream{h: h, ctx: r.Context(), w: w, rc: http.NewResponseController(w), sub: sub, filter: filter, global: global,
		log:   &api.Log{Store: h.deps.Store, Feed: h.deps.Feed, Filter: filter, Cursor: h.deps.Feed.Head()},
		parts: map[string]*sentPart{}, fresh: map[string]struct{}{}}
	api.StreamHeaders(w)
	if r.Method == http.MethodHead {
		return
	}
	if resume {
		s.log.Cursor = after
	}
	if err := s.run(resume); err != nil && s.ctx.Err() == nil {
		h.deps.Log.Debug("event stream ended", "error", err)
	}
}

func (s *stream) run(resume bool) error {
	if err := s.plain("server.connected"); err != nil {
		return err
	}
	if resume {
		if err := s.readLog(); err != nil {
			return err
		}
	}
	if err := s.announceRunning(); err != nil {
		return err
	}
	s.readLive()
	if err := s.flush(); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-s.sub.Bell():
			if err := s.readLog(); err != nil {
				return err
			}
			s.readLive()
		case <-beat.C:
			// A bell is only a hint: what is there is looked at anyway.
			for _, p := range s.parts {
				s.fresh[p.session] = struct{}{}
			}
			if err := s.readLog(); err != nil {
				return err
			}
			s.readLive()
			if err := s.plain("server.heartbeat"); err != nil {
				return err
			}
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-s.h.deps.Closing:
			return nil
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
}

// plain sends a frame that is no event of the log.
func (s *stream) plain(kind string) (err error) {
	var wrap []byte
	if s.global {
		wrap = []byte(`{"payload":`)
	}
	s.buf, err = appendFrame(s.buf, 0, wrap, s.ids.next(time.Now()), frame{kind, fact{}})
	return err
}

// readLog renders all committed events behind the cursor. Where the store has
// forgotten some of them, one rouse.resync tells the reader to read the rows
// again, and the stream goes on from now.
func (s *stream) readLog() error {
	for {
		events, more, gap, err := s.log.Next(s.ctx, readAhead)
		if err != nil {
			return err
		}
		if gap != nil {
			if err := s.resync(gap); err != nil {
				return err
			}
		}
		for i := range events {
			if err := s.event(&events[i]); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
}

func (s *stream) resync(gap *api.Gap) (err error) {
	var wrap []byte
	if s.global {
		wrap = []byte(`{"payload":`)
	}
	clear(s.parts)
	if s.buf, err = appendFrame(s.buf, gap.Head, wrap, s.ids.next(time.Now()), frame{"rouse.resync", gap}); err != nil {
		return err
	}
	return s.announceRunning()
}

// event renders one event of the log.
func (s *stream) event(e *rouse.Event) error {
	var frames []frame
	var err error
	if e.Type == rouse.PartUpdated {
		frames, err = s.partFrames(e)
	} else {
		frames, err = s.h.frames(s.ctx, e)
		s.forget(e)
	}
	if err != nil || len(frames) == 0 {
		return err
	}
	wrap := s.wrap(e.Directory)
	for i, f := range frames {
		seq := int64(0)
		if i == len(frames)-1 {
			seq = e.Seq
		}
		if s.buf, err = appendFrame(s.buf, seq, wrap, logID(e, i), f); err != nil {
			return err
		}
	}
	if len(s.buf) > flushAbove {
		return s.write()
	}
	return nil
}

// partFrames renders the start, a transition or the end of a part. The text
// that the reader has not seen as deltas comes before the end, so that the
// deltas of an announced part always sum up to its text.
func (s *stream) partFrames(e *rouse.Event) ([]frame, error) {
	p, err := s.h.partOf(s.ctx, e)
	if p == nil || err != nil {
		return nil, err
	}
	known := s.parts[p.ID]
	if growing(p) {
		if known == nil {
			start := *p
			start.Text = ""
			s.parts[p.ID] = s.sent(p, 0, e.Directory)
			s.fresh[p.SessionID] = struct{}{}
			return []frame{partFrame(&start, e.At)}, nil
		}
		return nil, nil
	}
	if known != nil {
		delete(s.parts, p.ID)
		if len(p.Text) > known.n {
			s.delta(known, []byte(p.Text[known.n:]))
		}
	}
	return []frame{partFrame(p, e.At)}, nil
}

// growing parts have text that is still being streamed.
func growing(p *rouse.Part) bool {
	return p.Open && (p.Kind == rouse.TextPart || p.Kind == rouse.ReasoningPart)
}

func partFrame(p *rouse.Part, at time.Time) frame {
	return frame{"message.part.updated", fact{"sessionID": p.SessionID, "part": renderPart(p), "time": at.UnixMilli()}}
}

// forget drops what no delta will follow any more.
func (s *stream) forget(e *rouse.Event) {
	switch e.Type {
	case rouse.PartRemoved:
		delete(s.parts, e.PartID)
	case rouse.MessageRemoved, rouse.SessionDeleted:
		for id, p := range s.parts {
			if p.message == e.MessageID || e.Type == rouse.SessionDeleted && p.session == e.SessionID {
				delete(s.parts, id)
			}
		}
	}
}

// announceRunning sends every running part of the reader's sessions whole.
func (s *stream) announceRunning() error {
	page, err := s.h.deps.Store.Sessions(s.ctx, store.SessionFilter{Directory: s.filter.Directory, Busy: true})
	if err != nil {
		return err
	}
	for i := range page.Sessions {
		row := &page.Sessions[i]
		if s.filter.Session != "" && s.filter.Session != row.ID {
			continue
		}
		for _, live := range s.h.deps.Feed.Live(row.ID) {
			if !growing(live.Part) || s.parts[live.Part.ID] != nil {
				continue
			}
			whole := *live.Part
			n := wholeRunes(live.Text)
			whole.Text = string(live.Text[:n])
			s.parts[whole.ID] = s.sent(&whole, n, row.Directory)
			if s.buf, err = appendFrame(s.buf, 0, s.wrap(row.Directory), s.ids.next(time.Now()), partFrame(&whole, time.Now())); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrap is what stands before the payload on /global/event.
func (s *stream) wrap(directory string) []byte {
	if !s.global {
		return nil
	}
	b := append([]byte(`{"directory":`), appendJSON(nil, []byte(directory))...)
	b = append(b, `,"project":`...)
	b = appendJSON(b, []byte(s.h.deps.Sessions.ProjectOf(directory).ID))
	return append(b, `,"payload":`...)
}

// flush writes what is collected, in one piece, and says how far the reader is.
func (s *stream) flush() error {
	if len(s.buf) > 0 {
		if err := s.write(); err != nil {
			return err
		}
		if err := s.rc.Flush(); err != nil {
			return rouse.Wrap("opencode: write events", err)
		}
	}
	s.sub.Wrote(s.log.Cursor)
	return nil
}

func (s *stream) write() error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has deadlines
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	if cap(s.buf) > 4*flushAbove {
		s.buf = nil
	}
	return rouse.Wrap("opencode: write events", err)
}
