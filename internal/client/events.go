package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"rouse"
)

// Event is one frame of the stream.
type Event struct {
	Seq       int64 // of the log; 0 for frames that carry none (text deltas)
	Type      string
	SessionID string // "" for frames about no session
	// Properties are the frame's facts; see the types in wire.go.
	Properties json.RawMessage
}

// Into decodes the properties.
func (e *Event) Into(v any) error {
	if err := json.Unmarshal(e.Properties, v); err != nil {
		return &rouse.Error{Kind: rouse.Upstream, Op: "client: event " + e.Type, Err: err}
	}
	return nil
}

// Stream says what to follow.
type Stream struct {
	// Directory whose sessions are meant; "" is all of the server.
	Directory string
	// After resumes behind this sequence number; 0 begins now.
	After int64
	// Open is called at each (re)connection once the server counts the
	// subscription: what is prompted from then on is seen.
	Open func()
	// Lost is called when the connection broke, once, before it is tried again.
	Lost func(error)
}

const (
	maxFrame  = 64 << 20
	silence   = 35 * time.Second // three heartbeats of 10 s and some more
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
)

// Resync is the type of the frame that says that events are missing before it:
// the rows have to be read again.
const Resync = "rouse.resync"

// ErrStop, returned by a handler, ends Follow without an error.
var ErrStop = errors.New("stop following")

// Follow calls handle for each event until it returns an error (ErrStop for a
// good end) or ctx ends. A broken connection is resumed where it was, without
// a gap and without an event twice; text deltas may be repeated as a whole
// part. The first connection must succeed, later ones are tried until ctx ends
// or the server refuses.
func (c *Client) Follow(ctx context.Context, s Stream, handle func(Event) error) error {
	after, wait, connected := s.After, firstWait, false
	for {
		opened, err := c.once(ctx, s, &after, handle)
		if connected = connected || opened; opened {
			wait = firstWait
		}
		var done *handled
		if errors.As(err, &done) {
			if errors.Is(done.err, ErrStop) {
				return nil
			}
			return done.err
		}
		_, refused := RefusalOf(err)
		if ctx.Err() != nil {
			return rouse.Wrap("client: follow", context.Cause(ctx))
		}
		if !connected || refused {
			return err
		}
		if opened && s.Lost != nil {
			s.Lost(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, lastWait)
	}
}

// handled carries the handler's own error through the stream's.
type handled struct{ err error }

func (h *handled) Error() string { return h.err.Error() }

// once follows one connection to its end.
func (c *Client) once(caller context.Context, s Stream, after *int64, handle func(Event) error) (opened bool, err error) {
	ctx, cancel := context.WithCancel(caller)
	defer cancel()
	k := call{method: http.MethodGet, path: "/event", query: inDirectory(s.Directory), header: http.Header{"Accept": {"text/event-stream"}}}
	if s.Directory == "" {
		k.path = "/global/event"
	}
	if *after > 0 {
		k.header.Set("Last-Event-ID", strconv.FormatInt(*after, 10))
	}
	req, err := c.request(ctx, k)
	if err != nil {
		return false, err
	}
	// A connection that is silent for longer than the heartbeats allow is
	// dead, whatever TCP believes.
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	resp, err := c.http.Do(req)
	if err != nil {
		return false, c.unreachable(caller, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, refusal(resp)
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(make([]byte, 0, 64<<10), maxFrame)
	var f frame
	for in.Scan() {
		watchdog.Reset(silence)
		if !f.line(in.Bytes()) {
			continue
		}
		e, ok := f.event(after)
		if ok && !opened {
			opened = true
			if s.Open != nil {
				s.Open()
			}
		}
		if ok {
			if err := handle(e); err != nil {
				return opened, &handled{err}
			}
		}
		f.reset()
	}
	if err = in.Err(); err == nil {
		err = errors.New("the stream ended")
	}
	return opened, c.unreachable(caller, err)
}

// frame collects the lines of one server-sent event.
type frame struct {
	id   string
	data []byte
}

func (f *frame) reset() { f.id, f.data = "", f.data[:0] }

// line takes a line without its end; true when the frame is complete.
func (f *frame) line(b []byte) bool {
	b = bytes.TrimSuffix(b, []byte("\r"))
	if len(b) == 0 {
		return len(f.data) > 0 || f.id != ""
	}
	name, value, _ := bytes.Cut(b, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		f.id = string(value)
	case "data":
		if len(f.data) > 0 {
			f.data = append(f.data, '\n')
		}
		f.data = append(f.data, value...)
	}
	return false
}

// event reads the frame's envelope and moves the cursor. false is a frame
// without content.
func (f *frame) event(after *int64) (Event, bool) {
	seq, err := strconv.ParseInt(f.id, 10, 64)
	if err == nil && seq > *after {
		*after = seq
	}
	var env envelope
	if len(f.data) == 0 || json.Unmarshal(f.data, &env) != nil {
		return Event{}, false
	}
	if env.Payload != nil {
		env = *env.Payload
	}
	var who owner
	_ = json.Unmarshal(env.Properties, &who) // other types carry no session
	if env.Type == Resync && err == nil {
		*after = seq // behind what was asked for, where that is not known
	}
	e := Event{Seq: seq, Type: env.Type, Properties: bytes.Clone(env.Properties)}
	e.SessionID = firstOf(who.SessionID, who.Part.SessionID, who.Info.SessionID)
	if e.SessionID == "" && (env.Type == "session.created" || env.Type == "session.updated" || env.Type == "session.deleted") {
		e.SessionID = who.Info.ID
	}
	return e, true
}
