package limits

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones are part of the program, not of the machine
)

// Rules of the clock grammar: an anchor ("resets", "try again at" …), then a
// clock, a date, a weekday, or a mix, then an optional zone, then the end of
// the phrase. Whatever does not fit as a whole is no evidence: a localised date
// must not yield its "00:27", and an unknown zone is never the host's.

const (
	sourceClockZone  = "clock_zone"
	sourceClockLocal = "clock_local"
)

var clockAnchor = regexp.MustCompile(`(?i)\b(?:resets?(?: at| on)?|refreshed at|try again at|regain access on|ends on) `)

// clockResets reads the anchored clocks and dates of a text.
func clockResets(text, hostZone string, base time.Time) (out []candidate) {
	for _, at := range clockAnchor.FindAllStringIndex(text, 8) {
		if c, ok := readWhen(text[at[1]:], hostZone, base); ok {
			out = append(out, c)
		}
	}
	return out
}

// when is an expression as it was read.
type when struct {
	year, month, day int
	weekday          int // 1 Sunday … 7 Saturday; 0 none
	hour, minute     int
	clock            bool
}

var (
	monthFirst = regexp.MustCompile(`(?i)^(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|august|september|october|november|december)\.? (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?`)
	slashDate  = regexp.MustCompile(`^(\d{1,2})/(\d{1,2})(?:/(\d{4}))?`)
	dayName    = regexp.MustCompile(`(?i)^(sun|mon|tue|wed|thu|fri|sat)(?:day|sday|nesday|rsday|urday)?,?`)
	between    = regexp.MustCompile(`(?i)^(?:,? at |, | )`)
	clock12    = regexp.MustCompile(`(?i)^(\d{1,2})(?::(\d{2}))?(?::\d{2})? ?([ap])\.?m\.?`)
	clock24    = regexp.MustCompile(`^(\d{1,2}):(\d{2})(?::\d{2})?`)
	zoneName   = regexp.MustCompile(`^ ?(\()?([A-Za-z_]+/[A-Za-z0-9_+/-]+|(?:GMT|UTC)[+-]\d{1,2}(?::\d{2})?|UTC|GMT|Z)(\))?`)
	phraseEnd  = regexp.MustCompile(`^(?:$|\s*[.,;!·\]|]| Some\()`)
)

// readWhen reads one expression at the start of s.
func readWhen(s, hostZone string, base time.Time) (candidate, bool) {
	w, rest, ok := readParts(s)
	if !ok {
		return candidate{}, false
	}
	loc, named, rest, ok := readZone(rest, hostZone)
	if !ok || !phraseEnd.MatchString(rest) {
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

// readParts reads date, weekday and clock.
func readParts(s string) (w when, rest string, ok bool) {
	switch {
	case monthFirst.MatchString(s):
		m := monthFirst.FindStringSubmatch(s)
		w.month = monthNumber(m[1])
		w.day, w.year = number(m[2]), number(m[3])
		s = s[len(m[0]):]
	case slashDate.MatchString(s): // month first, never swapped; midnight
		m := slashDate.FindStringSubmatch(s)
		w.month, w.day, w.year = number(m[1]), number(m[2]), number(m[3])
		return w, s[len(m[0]):], w.month <= 12
	case dayName.MatchString(s):
		m := dayName.FindStringSubmatch(s)
		w.weekday = 1 + strings.Index("sunmontuewedthufrisat", strings.ToLower(m[1]))/3
		s = s[len(m[0]):]
	}
	if w.month > 0 || w.weekday > 0 {
		gap := between.FindString(s)
		if gap == "" {
			return w, s, false
		}
		s = s[len(gap):]
	}
	if m := clock12.FindStringSubmatch(s); m != nil {
		w.hour, w.minute, w.clock = number(m[1]), number(m[2]), true
		if w.hour < 1 || w.hour > 12 {
			return w, s, false
		}
		w.hour %= 12
		if strings.EqualFold(m[3], "p") {
			w.hour += 12
		}
		return w, s[len(m[0]):], w.minute < 60
	}
	if m := clock24.FindStringSubmatch(s); m != nil {
		w.hour, w.minute, w.clock = number(m[1]), number(m[2]), true
		return w, s[len(m[0]):], w.hour < 24 && w.minute < 60
	}
	return w, s, false
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // digits only, or empty for what was not said
	return n
}

func monthNumber(name string) int {
	return 1 + strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(name[:3]))/3
}

// readZone reads the zone behind a clock. named is false where the host's was
// taken; ok is false where there is none to take, or it is unknown.
func readZone(s, hostZone string) (loc *time.Location, named bool, rest string, ok bool) {
	if m := zoneName.FindStringSubmatch(s); m != nil && (m[1] == "") == (m[3] == "") {
		loc, ok = zone(m[2])
		return loc, true, s[len(m[0]):], ok
	}
	if hostZone == "" {
		return nil, false, s, false
	}
	loc, ok = zone(hostZone)
	return loc, false, s, ok
}

// zone finds a zone by its IANA name, UTC, or GMT±h[:mm] with its usual sign.
func zone(name string) (*time.Location, bool) {
	switch name {
	case "UTC", "GMT", "Z":
		return time.UTC, true
	}
	if offset, found := strings.CutPrefix(strings.Replace(name, "UTC", "GMT", 1), "GMT"); found {
		hours, minutes, _ := strings.Cut(offset[1:], ":")
		h, m := number(hours), number(minutes)
		if h > 14 || m > 59 {
			return nil, false
		}
		seconds := h*3600 + m*60
		if offset[0] == '-' {
			seconds = -seconds
		}
		return time.FixedZone(name, seconds), true
	}
	if !strings.Contains(name, "/") || strings.Contains(name, "..") {
		return nil, false
	}
	loc, err := time.LoadLocation(name)
	return loc, err == nil
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
		d := local.AddDate(0, 0, day)
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
	naive := time.Date(year, time.Month(month), day, w.hour, w.minute, 0, 0, time.UTC)
	if naive.Day() != day || int(naive.Month()) != month {
		return time.Time{}, false // February 30
	}
	var latest, later time.Time
	for _, probe := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // the offsets before and after a change
		_, offset := naive.Add(probe).In(loc).Zone()
		at := naive.Add(-time.Duration(offset) * time.Second)
		if local := at.In(loc); local.Hour() == w.hour && local.Minute() == w.minute && at.After(latest) {
			latest = at
		}
		if at.After(later) {
			later = at
		}
	}
	if latest.IsZero() { // in a gap no instant has this clock
		latest = later
	}
	return latest, true
}
