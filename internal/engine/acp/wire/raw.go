package wire

import "encoding/json"

// At is the value under a path of keys inside raw, as it stands; nil when it
// is not there. Of a key that comes twice the last counts.
func At(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		if len(raw) == 0 {
			return nil
		}
		s := scanner{b: raw}
		raw = nil
		for key := range s.object {
			if string(key) == name {
				raw = s.raw()
			} else {
				s.skip()
			}
		}
		if s.bad {
			return nil
		}
	}
	return raw
}

// Text is raw as a string; "" when it is none.
func Text(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	s := scanner{b: raw}
	return s.text()
}

// Positive reports whether raw is, or anywhere holds, a number above zero.
func Positive(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return false
	}
	s := scanner{b: raw}
	return s.positive()
}

func (s *scanner) positive() (found bool) {
	switch c := s.peek(); {
	case c == '{':
		for range s.object {
			found = s.positive() || found
		}
	case c == '[':
		for range s.array {
			found = s.positive() || found
		}
	default:
		return s.number() > 0
	}
	return found
}

// Words calls yield with every key and every string inside raw, in order.
func Words(raw json.RawMessage, yield func(string)) {
	if len(raw) > 0 {
		s := scanner{b: raw}
		s.words(yield)
	}
}

func (s *scanner) words(yield func(string)) {
	switch s.peek() {
	case '{':
		for key := range s.object {
			yield(string(key))
			s.words(yield)
		}
	case '[':
		for range s.array {
			s.words(yield)
		}
	case '"':
		yield(string(s.quoted()))
	default:
		s.skip()
	}
}
