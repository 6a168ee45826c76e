package opencode

import (
	"strconv"
	"strings"
	"time"

	"rouse"
)

// sentPart is what this reader has of a running part.
type sentPart struct {
	session, message string
	n                int    // bytes of text sent
	head             []byte // the delta frame up to its text, without the event's id
}

// readLive sends what has been added to announced parts. A part that is not
// announced yet is left alone: its start is in the log and rings again, and
// its session is then fresh, so that text which came before is not forgotten.
func (s *stream) readLive() {
	for _, id := range s.sub.Dirty() {
		delete(s.fresh, id)
		s.readText(id)
	}
	for id := range s.fresh {
		delete(s.fresh, id)
		s.readText(id)
	}
}

func (s *stream) readText(sessionID string) {
	for _, live := range s.h.deps.Feed.Live(sessionID) {
		known := s.parts[live.Part.ID]
		if known == nil {
			continue
		}
		if n := wholeRunes(live.Text); n > known.n {
			s.delta(known, live.Text[known.n:n])
			known.n = n
		}
	}
}

// delta appends a message.part.delta frame. It is the hot path of the server:
// no reflection, no allocation once the buffer has grown.
func (s *stream) delta(p *sentPart, text []byte) {
	b := append(s.buf, "data: "...)
	b = append(b, p.head...)
	b = appendEscaped(b, text)
	b = append(b, `"},"id":"`...)
	b = s.ids.append(b, time.Now())
	b = append(b, `"}`...)
	if s.global {
		b = append(b, '}')
	}
	s.buf = append(b, "\n\n"...)
}

// sent prepares the frames of a running part's deltas.
func (s *stream) sent(p *rouse.Part, n int, directory string) *sentPart {
	head := append([]byte(nil), s.wrap(directory)...)
	head = append(head, `{"type":"message.part.delta","properties":{"sessionID":`...)
	head = appendJSON(head, []byte(p.SessionID))
	head = append(head, `,"messageID":`...)
	head = appendJSON(head, []byte(p.MessageID))
	head = append(head, `,"partID":`...)
	head = appendJSON(head, []byte(p.ID))
	head = append(head, `,"field":"text","delta":"`...) // reasoning grows in "text" too
	return &sentPart{session: p.SessionID, message: p.MessageID, n: n, head: head}
}

// eventIDs makes the ids of frames that are no event of the log: ascending in
// time and unique within the stream.
type eventIDs struct {
	stamp uint64
}

func (c *eventIDs) append(b []byte, now time.Time) []byte {
	c.stamp = max(c.stamp+1, uint64(now.UnixMilli())<<12)
	b = append(b, "evt_"...)
	for shift := 44; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[c.stamp>>shift&0xF])
	}
	return append(b, "00000000000000"...)
}

func (c *eventIDs) next(now time.Time) string { return string(c.append(nil, now)) }

// logID is the id of a log event's i-th frame, the same for every reader.
func logID(e *rouse.Event, i int) string {
	stamp := uint64(e.At.UnixMilli()) << 12
	tail := strconv.FormatInt(e.Seq*10+int64(i), 10)
	b := (&eventIDs{stamp: stamp - 1}).append(nil, e.At)
	return string(b[:4+12]) + strings.Repeat("0", max(0, 14-len(tail))) + tail
}
