package limits

import (
	"strconv"
	"strings"
	"time"
)

// The grammar of points in time: an anchor ("resets", "try again at" …), then a
// clock, a date, a weekday, or a mix, then an optional zone, then the end of
// the phrase. What does not fit as a whole is no evidence: a localised date
// must not yield its "00:27", and an unknown zone is never the host's.

const (
	sourceClockZone  = "clock_zone"
	sourceClockLocal = "clock_local"
)

// clockAnchors stand before a clock or a date. Each begins a word.
var clockAnchors = []string{"reset ", "resets ", "refreshed at ", "try again at ", "regain access on ", "ends on "}

// clockResets reads the anchored clocks and dates of a text; folded is the
// same in lower case.
func clockResets(text, folded, hostZone string, base time.Time) (out []candidate) {
	for _, anchor := range clockAnchors {
		each(folded, anchor, func(end int) bool {
			if start := end - len(anchor); start > 0 && isWord(folded[start-1]) {
				return false
			}
			rest := text[end:]
			if anchor[0] == 'r' && anchor[2] == 's' { // reset, resets
				for _, p := range []string{"at ", "on "} {
					if strings.HasPrefix(folded[end:], p) {
						rest = rest[len(p):]
						break
					}
				}
			}
			if c, ok := readWhen(rest, hostZone, base); ok {
				out = append(out, c)
			}
			return len(out) >= maxCandidates
		})
	}
	return out
}

// when is an expression as it was read.
type when struct {
	year, month, day int
	weekday          int // 1 Sunday … 7 Saturday; 0 none
	hour, minute     int
	second           int
	clock            bool
	dotted           bool // the clock ended with "m.", which may have ended the phrase
}

// maxExpression is longer than any expression that the grammar knows.
const maxExpression = 160

// readWhen reads one expression at the start of s.
func readWhen(s, hostZone string, base time.Time) (candidate, bool) {
	s = s[:min(len(s), maxExpression)]
	w, rest, ok := readParts(s)
	if !ok {
		return candidate{}, false
	}
	loc, named, rest, ok := readZone(rest, hostZone)
	if !ok || !phraseEnds(rest) && (named || !w.dotted) {
		return candidate{}, false
	}
	at, ok := w.in(loc, base)
	if !ok {
		return candidate{}, false
	}
	switch {
	case !named || !w.clock:
		return candidate{11, at, sourceClockLocal}, true
	case w.month > 0 || w.weekday > 0:
		return candidate{8, at, sourceDated}, true
	}
	return candidate{9, at, sourceClockZone}, true
}

// phraseEnds reports that nothing follows that would belong to the expression.
func phraseEnds(s string) bool {
	if s == "" || s[0] == '\n' || strings.HasPrefix(s, " Some(") {
		return true
	}
	s = strings.TrimLeft(s, " ")
	return s == "" || strings.IndexByte(".,;!]|", s[0]) >= 0 || strings.HasPrefix(s, "·")
}

// readParts reads date, weekday and clock.
func readParts(s string) (w when, rest string, ok bool) {
	if month, n := monthName(s); n > 0 {
		if w.day, w.year, n = dayAndYear(s, n); n == 0 {
			return w, s, false
		}
		w.month = month
		s = s[n:]
	} else if day, n := dayName(s); n > 0 {
		w.weekday = day
		s = s[n:]
	} else if n := w.slashDate(s); n > 0 { // month first, never swapped; midnight
		return w, s[n:], w.month >= 1 && w.month <= 12
	}
	if w.month > 0 || w.weekday > 0 {
		gap := s
		s = strings.TrimPrefix(s, ",")
		if len(s) > 3 && strings.EqualFold(s[:4], " at ") {
			s = s[4:]
		} else {
			s = strings.TrimPrefix(s, " ")
		}
		if gap == s {
			return w, s, false
		}
	}
	n, ok := w.readClock(s)
	return w, s[n:], ok
}

// dayAndYear reads " 20", " 11th, 2026", " 20, 2026" behind a month's name; n
// is 0 when there is no day.
func dayAndYear(s string, at int) (day, year, n int) {
	rest := s[at:]
	rest = strings.TrimPrefix(rest, ".")
	rest, found := strings.CutPrefix(rest, " ")
	d := digits(rest)
	if !found || d == 0 || d > 2 {
		return 0, 0, 0
	}
	day = number(rest[:d])
	rest = rest[d:]
	for _, th := range []string{"st", "nd", "rd", "th"} {
		if len(rest) >= 2 && strings.EqualFold(rest[:2], th) {
			rest = rest[2:]
			break
		}
	}
	more := strings.TrimPrefix(rest, ",")
	if len(more) >= 5 && more[0] == ' ' && digits(more[1:]) == 4 {
		year, rest = number(more[1:5]), more[5:]
	}
	return day, year, len(s) - len(rest)
}

// slashDate reads M/D/YYYY or M/D; it gives the length, or 0.
func (w *when) slashDate(s string) int {
	a := digits(s)
	if a == 0 || a > 2 || a >= len(s) || s[a] != '/' {
		return 0
	}
	b := digits(s[a+1:])
	if b == 0 || b > 2 {
		return 0
	}
	w.month, w.day = number(s[:a]), number(s[a+1:a+1+b])
	n := a + 1 + b
	if n < len(s) && s[n] == '/' {
		if digits(s[n+1:]) != 4 {
			return 0
		}
		w.year = number(s[n+1 : n+5])
		n += 5
	}
	return n
}

// readClock reads "5am", "2:30 AM", "5 p.m.", "12:30"; it gives the length.
func (w *when) readClock(s string) (n int, ok bool) {
	h := digits(s)
	if h == 0 || h > 2 {
		return 0, false
	}
	w.hour, w.clock = number(s[:h]), true
	n = h
	minutes := false
	for _, field := range []*int{&w.minute, &w.second} {
		if n < len(s) && s[n] == ':' && digits(s[n+1:]) == 2 {
			*field, minutes = number(s[n+1:n+3]), true
			n += 3
		} else {
			break
		}
	}
	if w.minute > 59 || w.second > 59 {
		return 0, false
	}
	half, m := meridiem(s[n:])
	if m == 0 {
		return n, minutes && w.hour < 24
	}
	if w.hour < 1 || w.hour > 12 {
		return 0, false
	}
	w.hour = w.hour%12 + half
	w.dotted = s[n+m-1] == '.'
	return n + m, true
}

// meridiem reads am or pm: the hours that it adds, and its length or 0.
func meridiem(s string) (half, n int) {
	if strings.HasPrefix(s, " ") {
		n = 1
	}
	if n >= len(s) {
		return 0, 0
	}
	switch s[n] | 0x20 {
	case 'a':
	case 'p':
		half = 12
	default:
		return 0, 0
	}
	rest := s[n+1:]
	switch {
	case len(rest) >= 3 && strings.EqualFold(rest[:3], ".m."):
		return half, n + 4
	case len(rest) >= 1 && rest[0]|0x20 == 'm' && (len(rest) == 1 || !isWord(rest[1])):
		return half, n + 2
	}
	return 0, 0
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // digits only, or empty for what was not said
	return n
}

var (
	months = []string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
	days   = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
)

// monthName reads a month, long or short: its number, and the length or 0.
func monthName(s string) (month, n int) { return name(s, months) }

// dayName reads a weekday, long or short: 1 for Sunday, and the length or 0.
func dayName(s string) (day, n int) { return name(s, days) }

// name finds the word at the start of s in a list, in full or cut to three
// letters or more.
func name(s string, list []string) (place, n int) {
	for n < len(s) && n <= len("september") && isLetter(s[n]) {
		n++
	}
	if n < 3 {
		return 0, 0
	}
	for i, full := range list {
		if n <= len(full) && strings.EqualFold(full[:n], s[:n]) {
			return i + 1, n
		}
	}
	return 0, 0
}

// in gives the instant: the first that is not past, or the nearest year.
func (w when) in(loc *time.Location, base time.Time) (time.Time, bool) {
	earliest := base.Add(-tolerance)
	local := base.In(loc)
	switch {
	case w.month > 0 && w.year > 0:
		return w.on(loc, w.year, w.month, w.day)
	case w.month > 0:
		var best time.Time
		for year := local.Year() - 1; year <= local.Year()+1; year++ {
			at, ok := w.on(loc, year, w.month, w.day)
			if ok && (best.IsZero() || at.Sub(base).Abs() < best.Sub(base).Abs()) {
				best = at
			}
		}
		return best, !best.IsZero()
	}
	for day := -1; day <= 8; day++ {
		d := time.Date(local.Year(), local.Month(), local.Day()+day, 12, 0, 0, 0, time.UTC) // noon: no day is lost to a turned clock
		if w.weekday > 0 && int(d.Weekday()) != w.weekday-1 {
			continue
		}
		if at, ok := w.on(loc, d.Year(), int(d.Month()), d.Day()); ok && !at.Before(earliest) {
			return at, true
		}
	}
	return time.Time{}, false
}

// on is the clock on one day. Where the clock is turned the later instant
// counts: a gap and an overlap are both resolved towards waiting longer.
func (w when) on(loc *time.Location, year, month, day int) (time.Time, bool) {
	naive := time.Date(year, time.Month(month), day, w.hour, w.minute, w.second, 0, time.UTC)
	if naive.Day() != day || int(naive.Month()) != month {
		return time.Time{}, false // February 30
	}
	return civil(naive, loc), true
}

// civil reads the clock of naive in loc.
func civil(naive time.Time, loc *time.Location) time.Time {
	var latest, later time.Time
	for _, probe := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // the offsets before and after a change
		_, offset := naive.Add(probe).In(loc).Zone()
		at := naive.Add(-time.Duration(offset) * time.Second)
		if local := at.In(loc); local.Hour() == naive.Hour() && local.Minute() == naive.Minute() && at.After(latest) {
			latest = at
		}
		if at.After(later) {
			later = at
		}
	}
	if latest.IsZero() { // in a gap no instant has this clock
		latest = later
	}
	return latest
}
