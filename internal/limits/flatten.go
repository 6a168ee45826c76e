package limits

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds what is read of one message. Of a longer one the two ends are
// read, half of the bound each: what a tool prints before and after a dump is
// there, and the time spent stays that of one megabyte.
const maxText = 1 << 20

// bounded keeps the ends of an over-long message. The line end between them is
// a border that no rule reads across.
func bounded(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText/2], "") + "\n" + strings.ToValidUTF8(s[len(s)-maxText/2:], "")
}

// flatten makes a message comparable: no escape sequences, plain quotes and dots,
// single spaces, none at its ends.
func flatten(s string) string {
	if flat(s) {
		return s
	}
	b := make([]byte, 0, len(s))
	space := false
	for i := 0; i < len(s); {
		if n := escape(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch r {
		case '‘', '’', '‛', 'ʼ':
			r = '\''
		case '∙', '•':
			r = '·'
		}
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space && len(b) > 0 {
			b = append(b, ' ')
		}
		space = false
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// flat reports a message that flatten would not change: ASCII, single spaces.
func flat(s string) bool {
	last := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf || c < ' ' || c == 0x7f || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return s == "" || last != ' '
}

// escape is the length of a terminal's escape sequence at the start of s, or 0:
// a control sequence (colours), a system command (links, titles), or the choice
// of a character set. One that does not end is none.
func escape(s string) int {
	if len(s) < 3 || s[0] != 0x1b {
		return 0
	}
	i := 2
	switch s[1] {
	case '[':
		for i < len(s) && s[i] >= 0x20 && s[i] < 0x40 {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] < 0x7f {
			return i + 1
		}
	case ']':
		for i < len(s) && s[i] >= ' ' {
			i++
		}
		switch {
		case i < len(s) && s[i] == 0x07:
			return i + 1
		case strings.HasPrefix(s[i:], "\x1b\\"):
			return i + 2
		}
	case '(', ')':
		if s[2] >= 0x30 && s[2] < 0x7f {
			return 3
		}
	}
	return 0
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) || c == '_' || c >= utf8.RuneSelf }

// lower folds ASCII only, so that the folded text has the same indices.
func lower(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if c := b[i]; c >= 'A' && c <= 'Z' {
					b[i] = c + 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// each calls fn with the index behind every occurrence of literal until fn
// says that it has seen enough; it reports whether fn did.
func each(s, literal string, fn func(end int) bool) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], literal)
		if i < 0 {
			return false
		}
		from += i + len(literal)
		if fn(from) {
			return true
		}
	}
}

// word reports that literal stands in s as a word of its own.
func word(s, literal string) bool {
	return each(s, literal, func(end int) bool {
		start := end - len(literal)
		return (start == 0 || !isWord(s[start-1])) && (end == len(s) || !isWord(s[end]))
	})
}

// alone reports that a message says one word and nothing else.
func alone(message, only string) bool {
	return len(message) < len(only)+16 && strings.EqualFold(strings.TrimFunc(message, func(r rune) bool { return !unicode.IsLetter(r) }), only)
}

// afterWords reports that s, with at most n words skipped, goes on with tail.
func afterWords(s string, n int, tail string) bool {
	for ; ; n-- {
		if strings.HasPrefix(s, tail) {
			return true
		}
		i := strings.IndexAny(s[:min(len(s), 64)], " \n")
		if n == 0 || i <= 0 || s[i] == '\n' {
			return false
		}
		s = s[i+1:]
	}
}

// decolour drops a terminal's escape sequences.
func decolour(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if n := escape(s[i:]); n > 0 {
			i += n
			continue
		}
		b = append(b, s[i])
		i++
	}
	return string(b)
}
