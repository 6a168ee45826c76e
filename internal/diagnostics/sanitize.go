package diagnostics

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"rouse"
)

const (
	// MaxMessage bounds a sanitized message, in bytes.
	MaxMessage = 2048
	// maxText is how much of a foreign text is looked at, in characters.
	maxText = 16384
	// Generic stands for a text of which nothing may be shown.
	Generic = "OpenCode provider error"
)

// Sanitize makes a foreign text safe to show and store: one line without links,
// addresses, keys, ids, paths and control characters, of at most MaxMessage
// bytes of valid UTF-8. It may be empty. Markup is left for the view to escape.
// Sanitizing twice changes nothing.
func Sanitize(text string) string {
	return cut(settle(flat(firstRunes(text, maxText))))
}

// spoken is the whole of an error's text that may be shown, without the name
// of OpenCode's error class in front.
func spoken(text string) string {
	return settle(dropName(flat(firstRunes(text, maxText))))
}

// shown is what a person reads of a spoken text.
func shown(spoken string) string {
	for rest := spoken; ; {
		before, after, found := strings.Cut(rest, "[")
		if strings.ContainsFunc(before, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			return cut(spoken)
		}
		if !found {
			return Generic
		}
		after, _ = strings.CutPrefix(after, "redacted]")
		rest, _ = strings.CutPrefix(after, "path]")
	}
}

// settle hides and tidies until nothing changes: what is taken away may join
// what was harmless apart.
func settle(s string) string {
	for range 8 {
		next := tidy(hide(s))
		if next == s {
			return s
		}
		s = next
	}
	return "" // built to grow a new secret out of each that is hidden
}

// cut bounds a text, at a whole character and marked as cut. A half of
// something may look like something, and what stands for it may be longer.
func cut(s string) string {
	for room := MaxMessage - len("…"); len(s) > MaxMessage; room -= 64 {
		s = settle(strings.TrimRight(rouse.Clip(s, max(room, 0)), " ") + "…")
	}
	return s
}

func firstRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

var csi = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]")

func withoutCSI(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	return csi.ReplaceAllString(s, "")
}

// flat strips colours, deletes what is invisible, and makes every control and
// every kind of space a space.
func flat(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = ' ' <= s[i] && s[i] < 0x7f
	}
	if plain {
		return s
	}
	var last rune
	return strings.Map(func(r rune) rune {
		before := last
		last = r
		switch {
		case r < utf8.RuneSelf && r > ' ' && r != 0x7f:
			return r
		case invisible(r), before < utf8.RuneSelf && unicode.Is(unicode.Variation_Selector, r): // of a letter; an emoji keeps its own
			last = before
			return -1
		case unicode.IsControl(r), unicode.Is(unicode.Z, r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(withoutCSI(s), "\ufffd"))
}

// invisible reports characters of no width and of direction, soft hyphens and
// tags: what a word can be broken with unseen. A few format characters of
// Arabic, Syriac and Kaithi are seen.
func invisible(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case unicode.In(r, unicode.Prepended_Concatenation_Mark):
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point)
}

var errorName = regexp.MustCompile(`^ *AI_\w+: `)

func dropName(s string) string {
	return s[len(errorName.FindString(s)):]
}

var (
	empties     = regexp.MustCompile(`\( *\)|\[ *\]|< *>`)
	manySpaces  = regexp.MustCompile(` {2,}`)
	spaceBefore = regexp.MustCompile(` +([,.;:!?])`)
)

// tidy closes the gaps that deletions leave.
func tidy(s string) string {
	s = flat(s)
	if strings.ContainsAny(s, "([<") {
		s = empties.ReplaceAllString(s, "")
	}
	if strings.Contains(s, "  ") {
		s = manySpaces.ReplaceAllString(s, " ")
	}
	if strings.IndexByte(s, ' ') >= 0 {
		s = spaceBefore.ReplaceAllString(s, "$1")
	}
	return strings.TrimRight(strings.TrimLeft(s, " .,:;-–—)"), " .,:;-–—(")
}
