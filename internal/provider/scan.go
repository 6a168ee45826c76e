package provider

import "unicode/utf8"

// scanner walks JSON text without building it. It accepts a strict subset of
// what encoding/json accepts and says no to the rest; whoever uses it then
// falls back to encoding/json, which stays the definition of what a chunk
// means (a fuzzer compares the two).
type scanner struct {
	b       []byte
	i       int
	scratch []byte
}

const maxDepth = 32

func (s *scanner) ws() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// eat consumes c after white space.
func (s *scanner) eat(c byte) bool {
	s.ws()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) peek() byte {
	s.ws()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// literal consumes a word such as null.
func (s *scanner) literal(w string) bool {
	s.ws()
	if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
		s.i += len(w)
		return true
	}
	return false
}

// key reads an object key and its colon. Keys with escapes, capitals or bytes
// beyond ASCII are refused: encoding/json would match them without regard to
// case.
func (s *scanner) key() (string, bool) {
	if !s.eat('"') {
		return "", false
	}
	from := s.i
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c == '"' {
			k := s.b[from:s.i]
			s.i++
			if !s.eat(':') {
				return "", false
			}
			return interned(k), true
		}
		if c < 0x20 || c == '\\' || c >= 0x80 || c >= 'A' && c <= 'Z' {
			return "", false
		}
		s.i++
	}
	return "", false
}

// raw reads a string and gives its decoded bytes, valid until the next call.
func (s *scanner) raw() ([]byte, bool) {
	if !s.eat('"') {
		return nil, false
	}
	from := s.i
	high := byte(0)
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c == '"' {
			v := s.b[from:s.i]
			s.i++
			return v, high < 0x80 || utf8.Valid(v)
		}
		if c == '\\' {
			return s.escaped(from)
		}
		if c < 0x20 {
			return nil, false
		}
		high |= c
		s.i++
	}
	return nil, false
}

// escaped decodes a string with escapes into scratch.
func (s *scanner) escaped(from int) ([]byte, bool) {
	out := append(s.scratch[:0], s.b[from:s.i]...)
	for s.i < len(s.b) {
		c := s.b[s.i]
		switch {
		case c == '"':
			s.i++
			s.scratch = out
			return out, utf8.Valid(out)
		case c < 0x20:
			return nil, false
		case c != '\\':
			out = append(out, c)
			s.i++
		default:
			if s.i+1 >= len(s.b) {
				return nil, false
			}
			e := s.b[s.i+1]
			s.i += 2
			switch e {
			case '"', '\\', '/':
				out = append(out, e)
			case 'n':
				out = append(out, '\n')
			case 't':
				out = append(out, '\t')
			case 'r':
				out = append(out, '\r')
			case 'b':
				out = append(out, '\b')
			case 'f':
				out = append(out, '\f')
			case 'u':
				r, ok := s.hex4()
				if !ok {
					return nil, false
				}
				if r >= 0xD800 && r < 0xE000 { // a surrogate: only a whole pair is taken here
					if r >= 0xDC00 || s.i+1 >= len(s.b) || s.b[s.i] != '\\' || s.b[s.i+1] != 'u' {
						return nil, false
					}
					s.i += 2
					low, ok := s.hex4()
					if !ok || low < 0xDC00 || low > 0xDFFF {
						return nil, false
					}
					r = (r-0xD800)<<10 | (low - 0xDC00) + 0x10000
				}
				out = utf8.AppendRune(out, r)
			default:
				return nil, false
			}
		}
	}
	return nil, false
}

func (s *scanner) hex4() (rune, bool) {
	if s.i+4 > len(s.b) {
		return 0, false
	}
	var r rune
	for _, c := range s.b[s.i : s.i+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	s.i += 4
	return r, true
}

// skip validates a value of any kind and goes past it.
func (s *scanner) skip(depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch c := s.peek(); {
	case c == '"':
		_, ok := s.raw()
		return ok
	case c == '{':
		s.i++
		if s.eat('}') {
			return true
		}
		for {
			if _, ok := s.raw(); !ok || !s.eat(':') || !s.skip(depth+1) {
				return false
			}
			if s.eat(',') {
				continue
			}
			return s.eat('}')
		}
	case c == '[':
		s.i++
		if s.eat(']') {
			return true
		}
		for {
			if !s.skip(depth + 1) {
				return false
			}
			if s.eat(',') {
				continue
			}
			return s.eat(']')
		}
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

// number goes past a JSON number.
func (s *scanner) number() bool {
	digits := func() bool {
		from := s.i
		for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
			s.i++
		}
		return s.i > from
	}
	at := func(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }
	if at('-') {
		s.i++
	}
	if at('0') {
		s.i++
	} else if !digits() {
		return false
	}
	if at('.') {
		s.i++
		if !digits() {
			return false
		}
	}
	if at('e') || at('E') {
		s.i++
		if at('+') || at('-') {
			s.i++
		}
		return digits()
	}
	return true
}

// end reports that nothing but white space is left.
func (s *scanner) end() bool {
	s.ws()
	return s.i == len(s.b)
}

// interned gives the key as a string: without allocation for those that the
// decoders look at, and "" for all others.
func interned(k []byte) string {
	switch string(k) {
	case "choices":
		return "choices"
	case "delta":
		return "delta"
	case "content":
		return "content"
	case "reasoning_content":
		return "reasoning_content"
	case "reasoning":
		return "reasoning"
	case "reasoning_text":
		return "reasoning_text"
	case "finish_reason":
		return "finish_reason"
	case "usage":
		return "usage"
	case "error":
		return "error"
	case "message":
		return "message"
	case "index":
		return "index"
	case "tool_calls":
		return "tool_calls"
	case "function_call":
		return "function_call"
	case "type":
		return "type"
	case "text":
		return "text"
	case "thinking":
		return "thinking"
	case "content_block":
		return "content_block"
	case "signature":
		return "signature"
	case "partial_json":
		return "partial_json"
	case "stop_reason":
		return "stop_reason"
	}
	return ""
}
