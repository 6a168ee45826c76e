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
// URLs first, then what may be inside other text. may is a cheap test without
// which the expression cannot match.
var hidden = []struct {
	may  func(s string, t traits) bool
	re   *regexp.Regexp
	with string
}{
	{hasURL, regexp.MustCompile(`(?i)\b(https?://)[^\s/@]*@`), "${1}"},
	{hasURL, regexp.MustCompile(`(?i)\b(https?://[^\s?#"'<>]+)[?#][^\s"'<>]*`), "${1}"},
	{func(_ string, t traits) bool { return t.run >= 8 && t.named }, regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} [hidden]"},
	{func(_ string, t traits) bool { return t.assigns && t.named }, regexp.MustCompile(`(?i)\b(authorization)(["']?\s*[:=]\s*["']?)(?:bearer|basic|token|digest|apikey|negotiate)\s+[^\s"',;}]{4,}`), "${1}${2}[hidden]"},
	{func(_ string, t traits) bool { return t.assigns && t.named }, regexp.MustCompile(`(?i)\b(api[-_ ]?key|x-api-key|authorization|token|secret|password|access[-_ ]?key)(["']?\s*[:=]\s*["']?)[^\s"',;}]{4,}`), "${1}${2}[hidden]"},
	{func(_ string, t traits) bool { return t.run >= 14 }, regexp.MustCompile(`\b(?:sk|pk|rk|ak|xai|gsk|ghp|gho|ghs|ghu|github_pat|glpat|hf|r8|nvapi|AIza|AKIA|xox[abpr]|ya29|eyJ)[-_.]?[A-Za-z0-9_*.-]{12,}`), "[hidden]"},
	{func(s string, _ traits) bool { return strings.IndexByte(s, '@') >= 0 }, regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`), "[email]"},
	{func(s string, _ traits) bool { return strings.Contains(s, "/home/") || strings.Contains(s, "/Users/") }, regexp.MustCompile(`(?:/home|/Users)/[^\s/:"',;)]+(?: [^\s/:"',;)]+){1,2}/`), "~/"},
	{func(s string, _ traits) bool { return strings.Contains(s, `:\`) }, regexp.MustCompile(`(?i)\b[a-z]:\\Users\\[^\s\\:"',;)]+(?: [^\s\\:"',;)]+){1,2}\\`), `~\`},
	{func(s string, _ traits) bool { return strings.IndexByte(s, '/') >= 0 }, regexp.MustCompile(`(?:/home|/Users)/[^\s/:"',;)]+|/root\b`), "~"},
	{func(s string, _ traits) bool { return strings.Contains(s, `:\`) }, regexp.MustCompile(`(?i)\b[a-z]:\\Users\\[^\s\\:"',;)]+`), "~"},
	{func(_ string, t traits) bool { return t.run >= 9 && t.joined }, regexp.MustCompile(`\b(?:org|proj|project|user|acct|account|team|wrk|workspace|req|request|ses|msg|prt)[-_][A-Za-z0-9]{6,}\b`), "[id]"},
	{func(_ string, t traits) bool { return t.run >= 36 }, regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "[id]"},
	{func(_ string, t traits) bool { return t.run >= 40 }, regexp.MustCompile(`\b[A-Za-z0-9+/_-]{40,}={0,2}`), "[hidden]"},
}

func hasURL(s string, _ traits) bool { return strings.Contains(s, "://") }

// traits of a message that most secrets have and most messages do not.
type traits struct {
	run     int  // the longest run of characters that keys are made of
	joined  bool // a dash or underscore inside such a run
	assigns bool // a colon or an equals sign
	named   bool // a word that introduces a secret
}

func traitsOf(s string) (t traits) {
	run := 0
	for i := range len(s) {
		switch c := s[i]; {
		case isLetter(c), isDigit(c), c == '+', c == '/', c == '.', c == '*', c == '~', c == '=':
			t.assigns = t.assigns || c == '='
		case c == '-', c == '_':
			t.joined = t.joined || run > 0
		default:
			t.assigns = t.assigns || c == ':'
			run = -1
		}
		run++
		t.run = max(t.run, run)
	}
	folded := lower(s)
	for _, w := range [...]string{"bearer", "basic", "key", "authorization", "token", "secret", "password"} {
		if strings.Contains(folded, w) {
			t.named = true
			break
		}
	}
	return t
}

// Sanitize makes a foreign message safe to show and store: no keys, no tokens
// in URLs, no e-mail addresses, no home folders, no ids, no control characters,
// one line, at most MaxMessage bytes of whole runes.
func Sanitize(s string) string {
	if len(s) > 4*MaxMessage { // a secret that the cut goes through is hidden by the margin
		s = rouse.Clip(s, 4*MaxMessage)
	}
	if !flat(s) {
		s = oneLine(s)
	}
	t := traitsOf(s)
	for _, h := range hidden {
		if h.may(s, t) {
			s = h.re.ReplaceAllString(s, h.with)
		}
	}
	return rouse.Clip(s, MaxMessage)
}

// oneLine drops what a terminal or a page would obey, and joins lines.
func oneLine(s string) string {
	s = strings.ToValidUTF8(decolour(s), "\ufffd")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		if r == utf8.RuneError || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
