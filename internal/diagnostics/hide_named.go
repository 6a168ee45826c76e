package diagnostics

import (
	"regexp"
	"strings"
)

// What names a secret, a person or an account in words that are also prose, or
// in a layout of some language or shell: it is hidden only where it looks like
// one (random), so that messages keep what they say. The labels whose values are
// hidden whatever they are stand in hidden.
var named = regexp.MustCompile(`(?i)(?:key|token|secret|passwd|password|passphrase|pwd|credentials?|signature|sig|auth(?:orization)?|` +
	`account|tenant|organi[sz]ation|workspace|customer)[\w-]*` +
	`(?:[^\w\s]*[\s:=,>][\s:=,>"'\\(\[{]*)(?:b["'])?(?:(?:bearer|basic|token|is|was|id|named)\b[\s:="'\\(\[]+)*["']?` +
	`([a-z0-9][a-z0-9_+/.~=-]{9,})`)

// names are what every label in named has in it.
var names = strings.Fields("key token secret passw passphrase pwd credential sig auth account tenant organi workspace customer")

// unnamed are ids and keys that are told by how they begin, if the rest looks
// like one.
var unnamed = regexp.MustCompile(`(?:\b|_)(?:csk-|fw_|tgp_v1_|SG\.|dop_v1_|hvs\.|xapp-|dp\.[a-z]{2,5}\.|ATATT3x|\d{8,10}:AA|sq0[a-z]{3}-|shp[a-z]{2}_|AGE-SECRET-KEY-1|` +
	`proj_|team_|user_|cus_|sub_|tenant_|account_|project_|workspace_)([\w.+/=-]{10,})`)

// begins are what every one of them has in it.
var begins = strings.Fields("csk- fw_ tgp_v1_ SG. dop_v1_ hvs. xapp- dp. ATATT3x :AA sq0 shp AGE-SECRET-KEY-1 proj_ team_ user_ cus_ sub_ tenant_ account_ project_ workspace_")

// value hides a match's only group, a word that looks random, and leaves what
// stands in front.
func value(s string, m []int) (string, int, bool) {
	end := bare(s, m[2], m[3])
	if !random(s[m[2]:end]) {
		return "", m[2], false
	}
	return s[m[0]:m[2]] + redacted, end, true
}

// begun hides a match whose group looks random, with what it begins with.
func begun(s string, m []int) (string, int, bool) {
	end := bare(s, m[2], m[3])
	return redacted, end, random(s[m[2]:end])
}

// broken is where a key may go on: behind the end of a line, or a colour or
// something invisible as JSON writes them.
var broken = regexp.MustCompile(`^(?: |(?:\\+(?:u[0-9A-Fa-f]{4}(?:\[[0-9;]*m)?|[nrt]))+ *)`)

// torn hides a key, and what was the rest of it before a line was broken.
func torn(s string, m []int) (string, int, bool) {
	if gap := broken.FindStringIndex(s[m[1]:]); gap != nil {
		start := m[1] + gap[1]
		end := start + strings.IndexAny(s[start:]+" ", ` "'<>\\`)
		if end = bare(s, start, end); random(s[start:end]) {
			return redacted, end, true
		}
	}
	return redacted, m[1], true
}

// shortest is the shortest run of letters and digits that is taken for random:
// names of models have shorter ones, or dates.
const shortest = 10

// random reports a word of letters and digits mixed, in a run that no name has.
func random(word string) bool {
	run, letters, digits := 0, false, false
	for i := range len(word) {
		switch c := word[i]; {
		case digit(c):
			run, digits = run+1, true
		case letter(c):
			run, letters = run+1, true
		default:
			run, letters, digits = 0, false, false
		}
		if run >= shortest && letters && digits {
			return true
		}
	}
	return false
}

// quotedText is a string of a request that an error quotes: what a person or a
// model wrote.
var quotedText = regexp.MustCompile(`(\\*)"(?:content|text|prompt|input|system|arguments|instructions)\\*"\s*:\s*(\\*)"`)

// request hides such a string up to the quote that closes it, which has as many
// backslashes as the one that opened it.
func request(s string, m []int) (string, int, bool) {
	if s[m[2]:m[3]] != s[m[4]:m[5]] {
		return "", m[1], false
	}
	depth := m[5] - m[4]
	end := m[1]
	for slashes := 0; end < len(s); end++ {
		switch {
		case s[end] == '\\':
			slashes++
			continue
		case s[end] == '"' && slashes <= depth:
			end -= slashes
			return s[m[0]:m[1]] + redacted, end, s[m[1]:end] != redacted && end > m[1]
		}
		slashes = 0
	}
	return s[m[0]:m[1]] + redacted, len(s), len(s) > m[1] && s[m[1]:] != redacted
}
