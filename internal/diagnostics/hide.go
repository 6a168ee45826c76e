package diagnostics

import (
	"regexp"
	"strings"
)

const (
	redacted = "[redacted]"
	path     = "[path]"
	// closing may stand behind something that is hidden and is no part of it.
	closing = `)]}>"'.,;:!?`
)

// What must not be shown, in the order in which it is looked for. may is a
// cheap test without which the expression cannot match; with says what stands
// for s[m[0]:end], or that a match is harmless and the search goes on at end.
var hidden = []struct {
	may  func(s string, t *traits) bool
	re   *regexp.Regexp
	with func(s string, m []int) (to string, end int, hide bool)
}{
	{func(s string, t *traits) bool {
		return t.colon && (strings.Contains(s, "://") || t.says("mailto:", "script:", "blob:", "file:", "data:")) || t.slash && t.dot
	}, regexp.MustCompile(`(?i)[a-z0-9+.-]*://\S*` +
		`|(\b(?:mailto|javascript|vbscript|blob):\S+|\bfile:/\S*|\bdata:[a-z0-9.+-]+/\S*)` +
		`|(?:[a-z0-9._%+-]+@)?(?:[a-z0-9-]+\.)+(?:[a-z]{2,}|xn--[a-z0-9-]+)(?::\d+)?/\S*`), link},
	{func(s string, t *traits) bool { return strings.Contains(s, "PRIVATE KEY") },
		regexp.MustCompile(`-*BEGIN [A-Z0-9 ]*PRIVATE KEY.*?(?:END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-*|$)`), whole},
	{func(s string, t *traits) bool { return strings.Contains(s, "PRIVATE KEY") }, regexp.MustCompile(`^.*END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-*`), whole}, // its begin was cut off
	{func(s string, t *traits) bool { return t.at }, regexp.MustCompile(`[\p{Latin}0-9._%+-]+@[\p{Latin}0-9-]+(?:\.[\p{Latin}0-9-]+)+`), whole},
	{func(s string, t *traits) bool { return t.says("authorization") },
		regexp.MustCompile(`(?i)(?:\bauthorization\\*["']?\s*[:=]\s*[\[({]*\\*["']?)+(?:[a-z]+\s+["']?)?([^\s"']+)`), credentials},
	{func(s string, t *traits) bool { return t.says("key provided:") }, regexp.MustCompile(`(?i)((?:\bapi[ _-]?key provided:\s*)+)(?:(?:bearer|basic)\s+)?\S+`), provided},
	{func(s string, t *traits) bool {
		return (t.colon || t.equals) && t.says("key", "token", "secret", "passw", "cookie")
	}, regexp.MustCompile(`(?i)((?:\b|_)(?:x-api-key|api[ _-]?key|(?:access|refresh|auth|id|session)[ _-]?token|client[ _-]?secret|secret|password|passwd|(?:set-)?cookie))` +
		`\\*["']?\s*([:=])\s*\\*["']?(?:(?:bearer|basic)\s+)?([^\s"']*[^\s"';](?:; [^\s"';=]+=[^\s"';]*)*)`), labelled},
	{func(s string, t *traits) bool { return t.digit && t.says("bearer", "basic") },
		regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+[^\s"',;]{8,}`), withDigit},
	{func(s string, t *traits) bool { return t.run >= 8 && anyOf(s, keyStarts) },
		regexp.MustCompile(`(?:\b|_)(?:sk-[\w*-]{8,}|[srp]k_(?:live|test)_\w{4,}|gh[a-z]_\w{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}|xox[a-z]-[\w-]{8,}|` +
			`AIza[\w-]{8,}|ya29\.[\w.-]{8,}|A(?:KIA|SIA)[A-Z0-9]{8,}|(?:gsk|hf|r8|npm)_\w{8,}|(?:xai|pplx|nvapi)-[\w-]{8,}|` +
			`eyJ[\w-]{2,}\.[\w-]{2,}(?:\.[\w-]*)*)`), torn},
	{func(s string, t *traits) bool { return t.under || strings.Contains(s, "org-") || t.run >= 36 },
		regexp.MustCompile(`\b(?:wrk|ses|run|msg|prt|per|usr|key|org|req|acct)_[\p{L}\p{N}_-]*|\borg-[A-Za-z0-9]{8,}|` +
			`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`), whole},
	{func(s string, t *traits) bool {
		return (t.slash || t.back) && strings.IndexByte(s, ' ') >= 0 && t.says("users", "home")
	}, // a name of two words
		regexp.MustCompile(`(?i)((?:/(?:users|home)/|\b[a-z]:[\\/]+users[\\/]+)[^\s\\/"<>]+(?: [^\s\\/"<>]+){1,2}[\\/][^\s"<>]*)`), home},
	{func(s string, t *traits) bool { return t.slash || t.back },
		regexp.MustCompile(`(^|[^\w/])/[^\s/"<>]+/[^\s"<>]+|(^|\W)(?:~[\w.-]*/[^\s"<>]+|[A-Za-z]:\\[^\s"<>]*|\\\\[^\s\\"<>]+\\[^\s"<>]+)`), place},
	{func(s string, t *traits) bool { return t.run >= 32 && t.digit }, regexp.MustCompile(`[A-Za-z0-9_+]{32,}`), mixed},
	{func(s string, t *traits) bool { return t.equals && strings.ContainsAny(s, "?&") }, regexp.MustCompile(`[?&][\w.-]+=[^\s"'<>]+`), whole},
	{func(s string, t *traits) bool { return t.equals && t.says("user", "logname") }, regexp.MustCompile(`\b(?:USER|USERNAME|LOGNAME)=[^\s"']+`), whole},
	{func(s string, t *traits) bool { return t.run >= shortest && t.digit && t.says(names...) }, named, value},
	{func(s string, t *traits) bool { return t.run >= shortest && t.digit && anyOf(s, begins) }, unnamed, begun},
	{func(s string, t *traits) bool {
		return t.colon && strings.IndexByte(s, '"') >= 0 && t.says("content", "text", "prompt", "input", "system", "arg", "instr")
	}, quotedText, request},
}

// wrapped are what may hold one of them in another form.
var wrapped = []struct {
	may  func(s string, t *traits) bool
	re   *regexp.Regexp
	with func(s string, m []int) (string, int, bool)
}{
	{func(s string, t *traits) bool { return strings.IndexByte(s, '%') >= 0 }, escaped, unescaped},
	{func(s string, t *traits) bool { return t.run >= 16 }, encoded, decoded},
}

// keyStarts are how vendors' keys begin.
var keyStarts = []string{"sk-", "k_live_", "k_test_", "gh", "github_pat_", "glpat-", "xox", "AIza", "ya29.", "AKIA", "ASIA", "gsk_", "hf_", "r8_", "npm_", "xai-", "pplx-",
	"nvapi-", "eyJ"}

// hide takes out of one line what must not be shown.
func hide(s string) string {
	plain := asRead(s)
	if plain == s {
		return hideAsIs(s)
	}
	out := hideAsIs(s) // what looks like an escape may be of a path
	if read := hideAsIs(plain); visible(read) < visible(asRead(out)) {
		return read
	}
	plain = asRead(out)
	if less := hideAsIs(plain); less != plain {
		return less
	}
	return out
}

// visible is how much of a text is left.
func visible(s string) int {
	return len(s) - strings.Count(s, redacted)*len(redacted) - strings.Count(s, path)*len(path)
}

func hideAsIs(s string) string {
	t := traitsOf(s)
	for i := range hidden {
		if h := &hidden[i]; h.may(s, &t) {
			s = rewrite(s, h.re, h.with)
		}
	}
	for i := range wrapped {
		if h := &wrapped[i]; h.may(s, &t) {
			s = rewrite(s, h.re, h.with)
		}
	}
	return s
}

// rewrite replaces what re finds by what with makes of it.
func rewrite(s string, re *regexp.Regexp, with func(s string, m []int) (string, int, bool)) string {
	var b strings.Builder
	done := 0 // written up to here
	for from := 0; from < len(s); {
		m := re.FindStringSubmatchIndex(s[from:])
		if m == nil {
			break
		}
		for i := range m {
			if m[i] >= 0 {
				m[i] += from
			}
		}
		to, end, hide := with(s, m)
		if hide {
			b.WriteString(s[done:m[0]])
			b.WriteString(to)
			done = end
		}
		from = end
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// bare is the end of s[start:end] without what closes a sentence or a bracket
// around it.
func bare(s string, start, end int) int {
	v := s[start:end]
	for _, p := range [...]string{redacted, path} {
		if strings.HasSuffix(v, p) {
			return end
		}
	}
	return start + len(strings.TrimRight(v, closing))
}

func whole(_ string, m []int) (string, int, bool) { return redacted, m[1], true }

// link deletes a link; what has no authority is deleted as a whole word.
func link(s string, m []int) (string, int, bool) {
	if m[2] >= 0 {
		return "", m[1], true
	}
	return "", max(bare(s, m[0], m[1]), m[0]+1), true
}

// credentials hides what follows Authorization. One that follows another has a
// value of its own.
func credentials(s string, m []int) (string, int, bool) {
	if v := s[m[2]:m[3]]; len(v) >= len("authorization") && strings.EqualFold(v[:len("authorization")], "authorization") {
		return "Authorization " + redacted + " ", m[2], true
	}
	return "Authorization " + redacted, max(bare(s, m[2], m[3]), m[2]+1), true
}

func provided(s string, m []int) (string, int, bool) {
	return strings.TrimRight(s[m[2]:m[3]], " ") + " " + redacted, m[1], true
}

var onlyLabel = regexp.MustCompile(`(?i)^[a-z-]*(?:key|token|secret|password|passwd|cookie)["']?[:=]["']?$`)

// labelled hides what follows a label: after "=" anything, after ":", which is
// also prose, a value with a digit. Only a cookie has more than one part.
func labelled(s string, m []int) (string, int, bool) {
	label, value := s[m[2]:m[3]], s[m[6]:m[7]]
	if i := strings.IndexByte(value, ' '); i >= 0 && !strings.EqualFold(label[len(label)-len("cookie"):], "cookie") {
		value = value[:i]
	}
	if onlyLabel.MatchString(value) {
		return "", m[6], false // the next one has the value
	}
	end := max(bare(s, m[6], m[6]+len(value)), m[6]+1)
	if quote := s[m[6]-1]; quote == '"' || quote == '\'' { // and may hold spaces
		if i := strings.IndexByte(s[m[6]:], quote); i > 0 {
			end = m[6] + i
		}
		if s[m[6]-2] == '\\' { // of a text in a text
			end = max(m[6]+len(strings.TrimRight(s[m[6]:end], `\`)), m[6]+1)
		}
	}
	if s[m[4]] == ':' && !strings.ContainsAny(s[m[6]:end], "0123456789") {
		return "", m[4], false
	}
	return label + " " + redacted, end, true
}

func withDigit(s string, m []int) (string, int, bool) {
	return redacted, m[1], strings.ContainsAny(s[m[0]:m[1]], "0123456789")
}

// home hides a path through a person's folder.
func home(s string, m []int) (string, int, bool) {
	return path, max(bare(s, m[0], m[1]), m[0]+1), true
}

// place hides a path behind the character in front of it.
func place(s string, m []int) (string, int, bool) {
	start := max(m[3], m[5])
	return s[m[0]:start] + path, max(bare(s, start, m[1]), start+1), true
}

// mixed hides a long run that has a letter and a digit.
func mixed(s string, m []int) (string, int, bool) {
	letters, digits := false, false
	for i := m[0]; i < m[1]; i++ {
		letters, digits = letters || letter(s[i]), digits || digit(s[i])
	}
	return redacted, m[1], letters && digits
}

// traits of a text that most secrets have and most messages do not.
type traits struct {
	folded                                            string
	run                                               int // the longest run of characters that keys are made of
	at, colon, equals, slash, back, dot, under, digit bool
}

func traitsOf(s string) (t traits) {
	folded := make([]byte, len(s))
	run := 0
	for i := range len(s) {
		c := lower(s[i])
		folded[i] = c
		switch {
		case c == '_':
			t.under = true
			run++
		case digit(c):
			t.digit = true
			run++
		case letter(c), c == '-', c == '+', c == '*':
			run++
		case c == '.':
			t.dot = true
			run++
		default:
			t.at = t.at || c == '@'
			t.colon = t.colon || c == ':'
			t.equals = t.equals || c == '='
			t.slash = t.slash || c == '/'
			t.back = t.back || c == '\\'
			run = 0
		}
		t.run = max(t.run, run)
	}
	t.folded = string(folded)
	return t
}

func (t *traits) says(words ...string) bool { return anyOf(t.folded, words) }

func anyOf(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
