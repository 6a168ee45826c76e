package opencode

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// appendJSON appends s as a JSON string. It is encoding/json's result without
// HTML escaping and without reflection; invalid UTF-8 becomes U+FFFD.
func appendJSON(b []byte, s []byte) []byte {
	b = append(b, '"')
	b = appendEscaped(b, s)
	return append(b, '"')
}

func appendEscaped(b []byte, s []byte) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[start:i]...)
				b = append(b, `\ufffd`...)
				i++
				start = i
				continue
			}
			if r == '\u2028' || r == '\u2029' { // line ends in JavaScript
				b = append(b, s[start:i]...)
				b = append(b, `\u202`...)
				b = append(b, hexDigits[r&0xF])
				i += size
				start = i
				continue
			}
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
		}
		i++
		start = i
	}
	return append(b, s[start:]...)
}

// wholeRunes is the length of the longest prefix of s that does not end in
// the middle of a rune. Bytes that can never become a rune are not held back.
func wholeRunes(s []byte) int {
	n := len(s)
	for back := 1; back <= utf8.UTFMax && back <= n; back++ {
		c := s[n-back]
		if c < utf8.RuneSelf {
			return n
		}
		if utf8.RuneStart(c) {
			if utf8.FullRune(s[n-back:]) {
				return n
			}
			return n - back
		}
	}
	return n
}
