package diagnostics

import (
	"strings"
	"time"
)

// maxReset is the farthest reset that is believed.
const maxReset = 32 * 24 * time.Hour

// units of a duration, the longest first.
var units = [...]struct {
	length time.Duration
	names  string
}{
	{7 * 24 * time.Hour, " w week weeks "},
	{24 * time.Hour, " d day days "},
	{time.Hour, " h hr hrs hour hours "},
	{time.Minute, " m min mins minute minutes "},
	{time.Second, " s sec secs second seconds "},
}

// resetIn reads the first "resets in 3 days, 4 hours and 5min" of a text. It
// is 0 when nothing is said or it cannot be trusted: an unknown unit, a unit
// twice or out of order, a decimal, nothing, or more than maxReset.
func resetIn(text string) time.Duration {
	s := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
	s, ok := afterReset(s)
	if !ok {
		return 0
	}
	var total time.Duration
	next := 0 // the first unit that may still come
	for {
		n, unit, rest, ok := amount(s, next)
		if !ok {
			return 0
		}
		total += time.Duration(n) * units[unit].length
		next = unit + 1
		s = joined(rest)
		if s == "" || !digit(s[0]) {
			break
		}
	}
	if total > maxReset {
		return 0
	}
	return total
}

// afterReset is what follows the first "reset in" or "resets in".
func afterReset(s string) (string, bool) {
	for at := 0; ; {
		i := strings.Index(s[at:], "reset")
		if i < 0 {
			return "", false
		}
		start := at + i
		at = start + len("reset")
		rest := strings.TrimPrefix(s[at:], "s")
		if said, ok := strings.CutPrefix(rest, " in "); ok && !wordAt(s, start-1) {
			return strings.TrimLeft(said, " "), true
		}
	}
}

// amount reads 1 to 6 digits and a unit, which is none of those before from.
func amount(s string, from int) (n, unit int, rest string, ok bool) {
	i := 0
	for ; i < len(s) && digit(s[i]); i++ {
		if i == 6 {
			return 0, 0, "", false
		}
		n = n*10 + int(s[i]-'0')
	}
	if i == 0 {
		return 0, 0, "", false
	}
	s = strings.TrimLeft(s[i:], " ")
	end := 0
	for end < len(s) && (s[end] >= 0x80 || word(s[end]) && !digit(s[end])) {
		end++
	}
	if end == 0 {
		return 0, 0, "", false
	}
	for unit := from; unit < len(units); unit++ {
		if strings.Contains(units[unit].names, " "+s[:end]+" ") {
			return n, unit, s[end:], true
		}
	}
	return 0, 0, "", false
}

// joined skips what may stand between two amounts.
func joined(s string) string {
	s = strings.TrimLeft(s, " ,")
	if rest, ok := strings.CutPrefix(s, "and"); ok {
		s = strings.TrimLeft(rest, " ,")
	}
	return s
}
