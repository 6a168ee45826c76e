package limits

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"rouse"
)

// MaxMessage bounds a sanitized message, in bytes.
const MaxMessage = 2000

// What must not be shown, and what stands in its place. Order matters: whole
// URLs first, then what may be inside other text.
var hidden = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?i)\b(https?://)[^\s/@]*@`), "${1}"},
	{regexp.MustCompile(`(?i)\b(https?://[^\s?#"'<>]+)[?#][^\s"'<>]*`), "${1}"},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} [hidden]"},
	{regexp.MustCompile(`(?i)\b(api[-_ ]?key|x-api-key|authorization|token|secret|password|access[-_ ]?key)(["']?\s*[:=]\s*["']?)[^\s"',;}]{4,}`), "${1}${2}[hidden]"},
	{regexp.MustCompile(`\b(?:sk|pk|rk|ak|xai|gsk|ghp|gho|ghs|ghu|github_pat|glpat|hf|r8|nvapi|AIza|AKIA|xox[abpr]|ya29|eyJ)[-_.]?[A-Za-z0-9_*.-]{12,}`), "[hidden]"},
	{regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`), "[email]"},
	{regexp.MustCompile(`(?:/home|/Users)/[^\s/:"',;)]+|/root\b`), "~"},
	{regexp.MustCompile(`(?i)\b[a-z]:\\Users\\[^\s\\:"',;)]+`), "~"},
	{regexp.MustCompile(`\b(?:org|proj|project|user|acct|account|team|wrk|workspace|req|request|ses|msg|prt)[-_][A-Za-z0-9]{6,}\b`), "[id]"},
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "[id]"},
	{regexp.MustCompile(`\b[A-Za-z0-9+/_-]{40,}={0,2}`), "[hidden]"},
}

// Sanitize makes a foreign message safe to show and store: no keys, no tokens
// in URLs, no e-mail addresses, no home folders, no ids, no control characters,
// one line, at most MaxMessage bytes of whole runes.
func Sanitize(s string) string {
	if len(s) > 4*MaxMessage { // a secret that the cut goes through is hidden by the margin
		s = rouse.Clip(s, 4*MaxMessage)
	}
	s = strings.ToValidUTF8(ansi.ReplaceAllString(s, ""), "\ufffd")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		if r == utf8.RuneError || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	for _, h := range hidden {
		s = h.re.ReplaceAllString(s, h.with)
	}
	return rouse.Clip(s, MaxMessage)
}
