package diagnostics

import (
	"bytes"
	"strings"
)

// Lines is Sanitize for a text of several lines, which it leaves apart unless
// something that must not be shown lies across them.
func Lines(text string) string {
	if !strings.Contains(text, "\n") {
		return Sanitize(text)
	}
	text = firstRunes(text, maxText)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Sanitize(line)
	}
	if whole := settle(flat(text)); bones(whole) != bones(strings.Join(lines, " ")) {
		return cut(whole)
	}
	return strings.Join(lines, "\n")
}

// bones are a text without what is trimmed at the ends of a line.
func bones(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" .,:;-–—()[]<>", r) {
			return -1
		}
		return r
	}, s)
}

// KeyBlock follows the lines of a stream through private keys, of which each
// line alone looks harmless. The zero KeyBlock is outside of one.
type KeyBlock struct{ open bool }

var privateKey, keyBegin, keyEnd = []byte("PRIVATE KEY"), []byte("BEGIN "), []byte("END ")

// Holds takes the next line and reports whether it is one of a private key.
func (b *KeyBlock) Holds(line []byte) bool {
	inside := b.open
	if bytes.Contains(line, privateKey) {
		inside = true
		b.open = bytes.LastIndex(line, keyBegin) > bytes.LastIndex(line, keyEnd)
	}
	return inside
}
