package diagnostics

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	escaped  = regexp.MustCompile(`[^\s"'<>]*%[0-9A-Fa-f]{2}[^\s"'<>]*`)
	encoded  = regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}={0,2}`)
	unpadded = base64.RawStdEncoding
	urlSafe  = strings.NewReplacer("-", "+", "_", "/")
)

// jsonEscape is a control, a space or any character in a string of JSON that an
// error quotes. It would be taken for the first letters of what follows it.
var jsonEscape = regexp.MustCompile(`\\+(?:u[0-9A-Fa-f]{4}|[nrtbf])`)

// asRead is a line with these as the characters that they stand for.
func asRead(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return flat(jsonEscape.ReplaceAllStringFunc(s, func(e string) string {
		code := strings.TrimLeft(e, `\`)
		if code[0] != 'u' {
			return " "
		}
		n, err := strconv.ParseUint(code[1:], 16, 16)
		if err != nil {
			return " "
		}
		return string(rune(n))
	}))
}

// deepest is how often something may be wrapped.
const deepest = 3

// unescaped hides a word whose percent encoding keeps something that would be
// hidden.
func unescaped(s string, m []int) (string, int, bool) {
	word := s[m[0]:m[1]]
	for range deepest {
		plain, err := url.PathUnescape(word)
		if err != nil || plain == word {
			break
		}
		if secret(plain) || secret(strings.ReplaceAll(plain, "+", " ")) { // a form's space
			return redacted, m[1], true
		}
		word = plain
	}
	return "", m[1], false
}

// decoded hides base64 of a text that would be hidden.
func decoded(s string, m []int) (string, int, bool) {
	word := urlSafe.Replace(strings.TrimRight(s[m[0]:m[1]], "="))
	if len(word)%4 == 1 {
		word = word[:len(word)-1]
	}
	plain, err := unpadded.DecodeString(word)
	if err != nil || !utf8.Valid(plain) {
		return "", m[1], false
	}
	text := string(plain)
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return "", m[1], false
	}
	return redacted, m[1], secret(text)
}

// secret reports a text of which something is hidden.
func secret(text string) bool {
	line := flat(text)
	t := traitsOf(line)
	for i := range hidden {
		if h := &hidden[i]; h.may(line, &t) && rewrite(line, h.re, h.with) != line {
			return true
		}
	}
	return false
}
