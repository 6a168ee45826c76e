package provider

import (
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one event of a stream.
const maxEvent = 16 << 20

var errEventTooLong = errors.New("event longer than 16 MiB")

// event is one server-sent event. Both slices are valid until the next call of
// next. Torn marks one that the end of the stream cut off: it is given out
// because some servers forget the closing blank line.
type event struct {
	name []byte
	data []byte
	size int // bytes on the wire
	torn bool
}

// sseReader reads events from a stream: lines end with LF, CR or CRLF,
// comments and unknown fields are skipped, several data lines are joined with
// LF. It allocates only to grow its buffer.
type sseReader struct {
	r          io.Reader
	buf        []byte
	start, end int
	err        error // of the reader, once it gave one
	skipLF     bool  // the last line ended with CR: an LF that follows belongs to it
	began      bool  // the byte order mark was looked for
	name       []byte
	joined     []byte // data of an event with several data lines
}

func newSSEReader(r io.Reader) *sseReader {
	return &sseReader{r: r, buf: make([]byte, 4096)}
}

// peek gives the first bytes that are not white space without consuming them;
// fewer than n at the end of the stream.
func (s *sseReader) peek(n int) []byte {
	for {
		b := bytes.TrimLeft(s.buf[s.start:s.end], " \t\r\n\ufeff")
		if len(b) >= n {
			return b[:n]
		}
		if !s.fill() {
			return b
		}
	}
}

// fill reads more; false at the end or on an error, which err then holds.
func (s *sseReader) fill() bool {
	if s.err != nil {
		return false
	}
	if s.start > 0 {
		copy(s.buf, s.buf[s.start:s.end])
		s.end -= s.start
		s.start = 0
	}
	if s.end == len(s.buf) {
		if len(s.buf) >= maxEvent {
			s.err = errEventTooLong
			return false
		}
		grown := make([]byte, 2*len(s.buf))
		copy(grown, s.buf[:s.end])
		s.buf = grown
	}
	for range 100 { // a reader may give nothing without an error, but not for ever
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if err != nil {
			s.err = err
		}
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// line gives the next line without its end. The slice lives until the next
// fill. last: the stream ended without a line end; !ok: it ended.
func (s *sseReader) line() (b []byte, last, ok bool) {
	from := 0
	for {
		w := s.buf[s.start:s.end]
		if s.skipLF && len(w) > 0 {
			s.skipLF = false
			if w[0] == '\n' {
				s.start++
				continue
			}
		}
		if i := lineEnd(w[from:]); i >= 0 {
			i += from
			s.start += i + 1
			s.skipLF = w[i] == '\r'
			return w[:i], false, true
		}
		from = len(w)
		if !s.fill() {
			if s.start == s.end || s.err == errEventTooLong {
				return nil, false, false
			}
			b = s.buf[s.start:s.end]
			s.start = s.end
			return b, true, true
		}
	}
}

// lineEnd finds the first CR or LF.
func lineEnd(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	head := b
	if i >= 0 {
		head = b[:i]
	}
	if j := bytes.IndexByte(head, '\r'); j >= 0 {
		return j
	}
	return i
}

// next gives the next event that has data. At the end of the stream ok is false
// and err says how it ended: io.EOF, or what the reader gave.
func (s *sseReader) next() (ev event, ok bool) {
	if !s.began {
		s.began = true
		for s.end-s.start < 3 && s.fill() {
		}
		if bytes.HasPrefix(s.buf[s.start:s.end], []byte("\xef\xbb\xbf")) {
			s.start += 3
		}
	}
	s.name, s.joined = s.name[:0], s.joined[:0]
	lines := 0
	for {
		b, last, more := s.line()
		if !more {
			if lines == 0 || s.err == errEventTooLong {
				return event{}, false
			}
			return event{name: s.name, data: s.joined, size: ev.size, torn: true}, true
		}
		ev.size += len(b) + 1
		if len(b) == 0 {
			if lines == 0 {
				s.name = s.name[:0]
				continue
			}
			return event{name: s.name, data: s.joined, size: ev.size}, true
		}
		field, value, _ := bytes.Cut(b, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if lines > 0 {
				s.joined = append(s.joined, '\n')
			}
			if len(s.joined)+len(value) > maxEvent {
				s.err = errEventTooLong
				return event{}, false
			}
			s.joined = append(s.joined, value...)
			lines++
		case "event":
			s.name = append(s.name[:0], value...)
		}
		if last && lines > 0 {
			return event{name: s.name, data: s.joined, size: ev.size, torn: true}, true
		}
	}
}

// drain reads on until the stream ends or n bytes are there.
func (s *sseReader) drain(n int) {
	for s.end-s.start < n && s.fill() {
	}
}

// rest gives what was read and not consumed, without a byte order mark.
func (s *sseReader) rest() []byte {
	return bytes.TrimPrefix(s.buf[s.start:s.end], []byte("\xef\xbb\xbf"))
}
