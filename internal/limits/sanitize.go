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

// rule is an expression and what stands for its matches: "", if it is for
// hideKeys.
type rule struct {
	may  func(s string, t traits) bool
	re   *regexp.Regexp
	with string
}

// in gives s without what the rule hides.
func (r *rule) in(s string) string {
	if r.with == "" {
		return hideKeys(s)
	}
	return r.re.ReplaceAllString(s, r.with)
}

// What must not be shown, and what stands in its place. Order matters: whole
// URLs first, then what may be inside other text. may is a cheap test without
// which the expression cannot match.
var hidden = []rule{
	{hasURL, regexp.MustCompile(`(?i)\b(https?://)[^\s/@]*@`), "${1}"},
	{hasURL, regexp.MustCompile(`(?i)\b(https?://[^\s?#"'<>]+)[?#][^\s"'<>]*`), "${1}"},
	{func(_ string, t traits) bool { return t.run >= 8 && t.named }, regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} [hidden]"},
	{func(_ string, t traits) bool { return t.assigns && t.named }, regexp.MustCompile(`(?i)\b(authorization)(["']?\s*[:=]\s*["']?)(?:bearer|basic|token|digest|apikey|negotiate)\s+[^\s"',;}]{4,}`), "${1}${2}[hidden]"},
	{func(_ string, t traits) bool { return t.assigns && t.named }, regexp.MustCompile(`(?i)\b(api[-_ ]?key|x-api-key|authorization|token|secret|password|access[-_ ]?key)(["']?\s*[:=]\s*["']?)[^\s"',;}]{4,}`), "${1}${2}[hidden]"},
	{func(_ string, t traits) bool { return t.run >= 14 }, keys, ""},
	{func(s string, _ traits) bool { return strings.IndexByte(s, '@') >= 0 }, regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`), "[email]"},
	{func(s string, _ traits) bool { return strings.Contains(s, "/home/") || strings.Contains(s, "/Users/") }, regexp.MustCompile(`(?:/home|/Users)/[^\s/:"',;)]+(?: [^\s/:"',;)]+){1,2}/`), "~/"},
	{func(s string, _ traits) bool { return strings.Contains(s, `:\`) }, regexp.MustCompile(`(?i)\b[a-z]:\\Users\\[^\s\\:"',;)]+(?: [^\s\\:"',;)]+){1,2}\\`), `~\`},
	{func(s string, _ traits) bool { return strings.IndexByte(s, '/') >= 0 }, regexp.MustCompile(`(?:/home|/Users)/[^\s/:"',;)]+|/root\b`), "~"},
	{func(s string, _ traits) bool { return strings.Contains(s, `:\`) }, regexp.MustCompile(`(?i)\b[a-z]:\\Users\\[^\s\\:"',;)]+`), "~"},
	{func(_ string, t traits) bool { return t.run >= 9 && t.joined }, regexp.MustCompile(`\b(?:org|proj|project|user|acct|account|team|wrk|workspace|req|request|ses|msg|prt)[-_][A-Za-z0-9]{6,}\b`), "[id]"},
	{func(_ string, t traits) bool { return t.run >= 36 }, regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "[id]"},
	{func(_ string, t traits) bool { return t.run >= 40 }, regexp.MustCompile(`\b[A-Za-z0-9+/_-]{40,}={0,2}`), "[hidden]"},
}

// keys are told by how they begin. What is not begun so by anything but a key
// needs the separator behind it: "skip-permissions-now" is none.
var keys = regexp.MustCompile(`\b(?:(?:sk|pk|rk|ak|xai|gsk|ghp|gho|ghs|ghu|github_pat|glpat|hf|r8|nvapi|xox[abpr])[-_.]|(?:AIza|AKIA|ya29|eyJ)[-_.]?)[A-Za-z0-9_*.-]{12,}`)

// broken is what may stand between the halves of a key: the end of a line, or
// of a line, a colour or something invisible as JSON writes them, and then a
// word.
var broken = regexp.MustCompile(`^(?: |(?:\\+(?:u[0-9A-Fa-f]{4}(?:\[[0-9;]*m)?|[nrt]))+ *)([A-Za-z0-9_*.+/=-]*[A-Za-z0-9_*+/=-])`)

// hideKeys hides keys, and what was the rest of one before a line was broken.
func hideKeys(s string) string {
	var b strings.Builder
	for {
		m := keys.FindStringIndex(s)
		if m == nil {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:m[0]])
		b.WriteString("[hidden]")
		s = s[m[1]:]
		if rest := broken.FindStringSubmatch(s); rest != nil && random(rest[1]) {
			s = s[len(rest[0]):]
		}
	}
}

// random reports a word of letters and digits mixed, in a run that no name has.
func random(word string) bool {
	run, letters, digits := 0, false, false
	for i := range len(word) {
		switch c := word[i]; {
		case isDigit(c):
			run, digits = run+1, true
		case isLetter(c):
			run, letters = run+1, true
		default:
			run, letters, digits = 0, false, false
		}
		if run >= 10 && letters && digits {
			return true
		}
	}
	return false
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
			s = h.in(s)
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
		if r == utf8.RuneError || unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
