package wire

import (
	"unicode/utf16"
	"unicode/utf8"
)

// scanner walks one JSON text once. It accepts exactly what encoding/json
// accepts (a fuzzer compares the two), builds nothing that is not asked for,
// and turns bad at the first error: every later call then does nothing.
//
// Each typed reader consumes one value whatever it is; a value of another type
// is skipped and reported as absent, so that a vendor's odd field costs that
// field and not the message.
type scanner struct {
	b     []byte
	i     int
	depth int
	bad   bool
}

// maxDepth is encoding/json's bound.
const maxDepth = 10000

func (s *scanner) fail() { s.bad, s.i = true, len(s.b) }

// peek is the next byte that is no white space; 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// object calls yield after each key, which must consume the value. A value
// that is no object is skipped.
func (s *scanner) object(yield func(key []byte) bool) {
	if s.peek() != '{' {
		s.skip()
		return
	}
	s.enter()
	if s.peek() == '}' {
		s.leave()
		return
	}
	for !s.bad {
		if s.peek() != '"' {
			s.fail()
			return
		}
		key := s.quoted()
		if s.peek() != ':' {
			s.fail()
			return
		}
		s.i++
		if !yield(key) {
			s.fail()
			return
		}
		if s.last('}') {
			return
		}
	}
}

// array calls yield before each element, which must consume it. A value that
// is no array is skipped.
func (s *scanner) array(yield func() bool) {
	if s.peek() != '[' {
		s.skip()
		return
	}
	s.enter()
	if s.peek() == ']' {
		s.leave()
		return
	}
	for !s.bad {
		if !yield() {
			s.fail()
			return
		}
		if s.last(']') {
			return
		}
	}
}

func (s *scanner) enter() {
	s.i++
	if s.depth++; s.depth > maxDepth {
		s.fail()
	}
}

func (s *scanner) leave() { s.i, s.depth = s.i+1, s.depth-1 }

// last consumes a comma or the end of the container, and says which.
func (s *scanner) last(end byte) bool {
	switch s.peek() {
	case ',':
		s.i++
	case end:
		s.leave()
		return true
	default:
		s.fail()
	}
	return false
}

// raw is the next value as it stands in the text.
func (s *scanner) raw() []byte {
	s.peek()
	from := s.i
	s.skip()
	if s.bad {
		return nil
	}
	return s.b[from:s.i:s.i]
}

// text reads a string; anything else is skipped and "".
func (s *scanner) text() string {
	if s.peek() != '"' {
		s.skip()
		return ""
	}
	return interned(s.quoted())
}

// number reads a number; anything else is skipped and 0, as is a number beyond
// float64.
func (s *scanner) number() float64 {
	c := s.peek()
	if c != '-' && (c < '0' || c > '9') {
		s.skip()
		return 0
	}
	return floatOf(s.raw())
}

// skip consumes one value of any type.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '"':
		s.string()
	case c == '{':
		for range s.object {
			s.skip()
		}
	case c == '[':
		for range s.array {
			s.skip()
		}
	case c == '-' || c >= '0' && c <= '9':
		s.digits()
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	default:
		s.fail()
	}
}

func (s *scanner) word(w string) {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		s.fail()
		return
	}
	s.i += len(w)
}

// digits consumes a number by JSON's grammar.
func (s *scanner) digits() {
	if s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if !s.run() {
		return
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.run() {
			return
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		s.run()
	}
}

// run consumes one or more decimal digits.
func (s *scanner) run() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	if s.i == from {
		s.fail()
	}
	return s.i > from
}

// string consumes a string and says whether its bytes stand for themselves:
// no escapes, nothing beyond ASCII.
func (s *scanner) string() (plain bool) {
	plain = true
	for s.i++; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return plain
		case c < 0x20:
			s.fail()
			return false
		case c >= utf8.RuneSelf:
			plain = false
		case c == '\\':
			plain = false
			s.i++
			if s.i >= len(s.b) || !s.escape() {
				s.fail()
				return false
			}
		}
	}
	s.fail()
	return false
}

// escape checks the escape whose letter is the current byte.
func (s *scanner) escape() bool {
	switch s.b[s.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		if len(s.b)-s.i < 5 || hex4(s.b[s.i+1:]) < 0 {
			return false
		}
		s.i += 4
		return true
	}
	return false
}

// quoted consumes a string and gives its decoded bytes: a piece of the text
// itself when nothing in it needs decoding.
func (s *scanner) quoted() []byte {
	from := s.i + 1
	plain := s.string()
	if s.bad {
		return nil
	}
	body := s.b[from : s.i-1]
	if plain {
		return body
	}
	return unquote(body)
}

// unquote decodes the inside of a valid JSON string as encoding/json does:
// broken UTF-8 and lone surrogates become U+FFFD.
func unquote(body []byte) []byte {
	out := make([]byte, 0, len(body)+utf8.UTFMax)
	for i := 0; i < len(body); {
		c := body[i]
		switch {
		case c == '\\' && body[i+1] == 'u':
			r := rune(hex4(body[i+2:]))
			i += 6
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if len(body)-i >= 6 && body[i] == '\\' && body[i+1] == 'u' {
					low = rune(hex4(body[i+2:]))
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		case c == '\\':
			out = append(out, unescaped[body[i+1]])
			i += 2
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, n := utf8.DecodeRune(body[i:])
			out = utf8.AppendRune(out, r)
			i += n
		}
	}
	return out
}

var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 reads four hex digits; -1 if they are none.
func hex4(b []byte) int {
	if len(b) < 4 {
		return -1
	}
	n := 0
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | int(c-'A'+10)
		default:
			return -1
		}
	}
	return n
}
