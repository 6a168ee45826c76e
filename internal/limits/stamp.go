package limits

import (
	"strings"
	"time"
)

// maxCandidates bounds how many readings of one kind are compared: a text that
// repeats itself a million times says no more than one that does so a few times.
const maxCandidates = 64

// stampResets reads date-and-time stamps, which need no anchor and are read in
// any language: RFC 3339, and "2026-09-23 23:59:59" or "2026-09-23 at 23:59"
// with an offset, UTC, a named zone or none. One without a zone is in bare (and
// then of source bareSource), or unread where bare is nil.
func stampResets(text string, bare *time.Location, bareSource string) (out []candidate) {
	for from := 0; len(out) < maxCandidates; {
		i := strings.IndexByte(text[from:], '-')
		if i < 0 {
			break
		}
		i += from
		from = i + 1
		if i < 4 || digits(text[i-4:i]) != 4 || i > 4 && isWord(text[i-5]) {
			continue
		}
		c, n, ok := stamp(text[i-4:], bare, bareSource)
		if ok {
			out = append(out, c)
		}
		from = max(from, i-4+n)
	}
	return out
}

// stamp reads one at the start of s; n is how much of s belongs to it.
func stamp(s string, bare *time.Location, bareSource string) (c candidate, n int, ok bool) {
	s = s[:min(len(s), 96)]
	if len(s) < 16 || s[7] != '-' || digits(s[5:]) != 2 || digits(s[8:]) != 2 {
		return c, 0, false
	}
	if s[10]|0x20 == 't' {
		return rfc3339(s)
	}
	clock := s[10:]
	if len(clock) > 4 && strings.EqualFold(clock[:4], " at ") {
		clock = clock[4:]
	} else {
		clock = strings.TrimPrefix(clock, " ")
	}
	if len(clock) == len(s)-10 || len(clock) < 5 || digits(clock) != 2 || clock[2] != ':' || digits(clock[3:]) != 2 {
		return c, 0, false
	}
	layout, end := "2006-01-02 15:04", 5
	if len(clock) >= 8 && clock[5] == ':' && digits(clock[6:]) == 2 {
		layout, end = time.DateTime, 8
	}
	naive, err := time.Parse(layout, s[:10]+" "+clock[:end])
	if err != nil {
		return c, 0, false
	}
	rest := clock[end:]
	if rest != "" && rest[0] == '.' { // a fraction, as Go prints times
		if f := digits(rest[1:]); f > 0 {
			rest = rest[1+f:]
		}
	}
	n = len(s) - len(rest)
	if seconds, found := offset(rest); found {
		return candidate{7, naive.Add(-time.Duration(seconds) * time.Second), sourceOffset}, n, true
	}
	if name, length := zoneName(rest); length > 0 {
		loc, known := zone(name)
		if !known {
			return c, n, false
		}
		return candidate{8, civil(naive, loc), sourceDated}, n, true
	}
	if bare == nil || abbreviation(rest) {
		return c, n, false
	}
	c = candidate{11, civil(naive, bare), bareSource}
	if bareSource == sourceDated {
		c.rank = 8
	}
	return c, n, true
}

func rfc3339(s string) (c candidate, n int, ok bool) {
	n = len("2006-01-02T15:04:05")
	if len(s) <= n {
		return c, 0, false
	}
	if s[n] == '.' {
		n += 1 + digits(s[n+1:])
	}
	switch {
	case n < len(s) && s[n]|0x20 == 'z':
		n++
	case n+6 <= len(s):
		n += 6
	}
	t, err := time.Parse(time.RFC3339, strings.ToUpper(s[:min(n, len(s))]))
	return candidate{6, t, sourceRFC3339}, n, err == nil
}

// offset reads " +0800" or " +08:00" behind a clock, in seconds.
func offset(s string) (seconds int, ok bool) {
	s = strings.TrimPrefix(s, " ")
	if len(s) < 5 || s[0] != '+' && s[0] != '-' || digits(s[1:]) < 2 {
		return 0, false
	}
	minutes := strings.TrimPrefix(s[3:], ":")
	if digits(minutes) != 2 {
		return 0, false
	}
	h, m := number(s[1:3]), number(minutes[:2])
	seconds = h*3600 + m*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, h <= 14 && m < 60
}

// abbreviation reports a zone's abbreviation or a name in parentheses in the
// place of a zone: it is ambiguous or unknown, and then the time is too.
func abbreviation(s string) bool {
	s, found := strings.CutPrefix(s, " ")
	if !found {
		return false
	}
	if strings.HasPrefix(s, "(") {
		return true
	}
	n := 0
	for n < len(s) && s[n] >= 'A' && s[n] <= 'Z' {
		n++
	}
	return n >= 2 && n <= 5 && (n == len(s) || !isWord(s[n]))
}

// beijing is the zone of the stamps of Z.ai and Zhipu, which name none.
var beijing = time.FixedZone("+08:00", 8*3600)
