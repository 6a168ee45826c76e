package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"rouse"
	"rouse/internal/feed"
)

const (
	ownHeartbeat = 10 * time.Second
	ownWrite     = 60 * time.Second // a reader that takes nothing for so long is let go
	ownPage      = 256
)

// ownEvent is an event of Rouse's own streams. What Data holds depends on the
// type: rouse.turn.* the state with its facts, rouse.cancel.stage the stage, and
// rouse.verdict, notice.*, rescue.stage, incident.* and wall.* the row as this
// API gives it.
type ownEvent struct {
	Seq        int64           `json:"seq"`
	Type       string          `json:"type"`
	At         *string         `json:"at"`
	Session    string          `json:"session,omitempty"`
	Directory  string          `json:"directory,omitempty"`
	Turn       string          `json:"turn,omitempty"`
	Generation uint64          `json:"generation,omitempty"`
	State      string          `json:"state,omitempty"`
	Outcome    rouse.TurnState `json:"outcome,omitempty"`
	WaitingFor string          `json:"waiting_for,omitempty"`
	// Paused: nothing else is started, also while a turn still runs.
	Paused   bool            `json:"paused,omitempty"`
	Incident *IncidentRow    `json:"incident,omitempty"` // the session's open one
	Verdict  string          `json:"verdict,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// ResumePoint reads Last-Event-ID, or ?after= which a browser can set.
func ResumePoint(r *http.Request) (after int64, resume bool, err error) {
	name, v := "Last-Event-ID", r.Header.Get("Last-Event-ID")
	if q := r.URL.Query().Get("after"); q != "" {
		name, v = "after", q
	}
	if v == "" {
		return 0, false, nil
	}
	after, perr := strconv.ParseInt(v, 10, 64)
	if perr != nil || after < 0 {
		hint := ""
		if strings.HasPrefix(v, "evt_") {
			hint = "; evt_ ids name events, not positions"
		}
		return 0, false, rouse.FieldError("events", name, "%s: expected a position, which is the number in the id line of an event, got %q%s", name, rouse.Clip(v, 40), hint)
	}
	return after, true, nil
}

// StreamHeaders begins an event stream.
func StreamHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
}

func (o *own) events(w http.ResponseWriter, r *http.Request) {
	o.follow(w, r, feed.Filter{Directory: r.URL.Query().Get("directory")})
}

func (o *own) sessionEvents(w http.ResponseWriter, r *http.Request) {
	s, err := o.Store.Session(r.Context(), r.PathValue("id"))
	if err != nil {
		Fail(w, r, o.Log, err)
		return
	}
	o.follow(w, r, feed.Filter{Session: s.ID})
}

// follow streams from now, or from where the reader was.
func (o *own) follow(w http.ResponseWriter, r *http.Request, filter feed.Filter) {
	after, resume, err := ResumePoint(r)
	if err != nil {
		Fail(w, r, o.Log, err)
		return
	}
	sub, err := o.Feed.Subscribe(filter)
	if err != nil {
		Fail(w, r, o.Log, err)
		return
	}
	defer sub.Close()
	log := &Log{Store: o.Store, Feed: o.Feed, Filter: filter, Cursor: o.Feed.Head()}
	if resume {
		log.Cursor = after
	}
	StreamHeaders(w)
	if r.Method == http.MethodHead {
		return
	}
	s := &ownStream{w: w, rc: http.NewResponseController(w), log: log}
	if err := s.run(r, o, sub); err != nil && r.Context().Err() == nil {
		o.Log.Debug("event stream ended", "error", err)
	}
}

type ownStream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	log *Log
	buf []byte
}

func (s *ownStream) run(r *http.Request, o *own, sub *feed.Subscription) error {
	beat := time.NewTicker(ownHeartbeat)
	defer beat.Stop()
	s.buf = append(s.buf, ": connected\n\n"...)
	for {
		if err := s.pending(r); err != nil {
			return err
		}
		if err := s.flush(); err != nil {
			return err
		}
		sub.Wrote(s.log.Cursor)
		select {
		case <-sub.Bell():
		case <-beat.C:
			s.buf = append(s.buf, ": still here\n\n"...)
		case <-o.Closing:
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

func (s *ownStream) pending(r *http.Request) error {
	for {
		events, more, gap, err := s.log.Next(r.Context(), ownPage)
		if err != nil {
			return err
		}
		if gap != nil {
			raw, err := Marshal(gap)
			if err != nil {
				return err
			}
			if err := s.add(ownEvent{Seq: gap.Head, Type: "rouse.resync", At: stamp(time.Now()), Data: raw}, true); err != nil {
				return err
			}
		}
		for i := range events {
			list := ownEvents(&events[i])
			for j := range list {
				if err := s.add(list[j], j == len(list)-1); err != nil {
					return err
				}
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

// add appends a frame; the last one of an event carries the id.
func (s *ownStream) add(e ownEvent, last bool) error {
	raw, err := Marshal(e)
	if err != nil {
		return err
	}
	if last {
		s.buf = fmt.Appendf(s.buf, "id: %d\n", e.Seq)
	}
	s.buf = fmt.Appendf(s.buf, "data: %s\n\n", raw)
	return nil
}

func (s *ownStream) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(ownWrite)) // not every writer has deadlines
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	if err == nil {
		err = s.rc.Flush()
	}
	return rouse.Wrap("write events", err)
}
