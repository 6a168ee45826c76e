package limits

import (
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones are part of the program, not of the machine
)

// readZone reads the zone behind a clock. named is false where the host's was
// taken; ok is false where there is none to take, or it is unknown.
func readZone(s, hostZone string) (loc *time.Location, named bool, rest string, ok bool) {
	if name, n := zoneName(s); n > 0 {
		loc, ok = zone(name)
		return loc, true, s[n:], ok
	}
	if hostZone == "" {
		return nil, false, s, false
	}
	loc, ok = zone(hostZone)
	return loc, false, s, ok
}

// zoneName finds what looks like a zone at the start of s, in parentheses or
// not, and how long it is; 0 when there is none.
func zoneName(s string) (name string, n int) {
	inner := strings.TrimPrefix(s, " ")
	inner, open := strings.CutPrefix(inner, "(")
	end := 0
	for end < len(inner) && (isLetter(inner[end]) || isDigit(inner[end]) || strings.IndexByte("_+-/:", inner[end]) >= 0) {
		end++
	}
	name = strings.TrimRight(inner[:end], ":/-+")
	if open {
		if !strings.HasPrefix(inner[len(name):], ")") {
			return "", 0
		}
		end = len(name) + 1
	} else {
		end = len(name)
	}
	if !zoneLike(name) {
		return "", 0
	}
	return name, len(s) - len(inner) + end
}

func zoneLike(name string) bool {
	if name == "" || !isLetter(name[0]) {
		return false
	}
	return strings.Contains(name, "/") || utc(name) || offsetName(name) != ""
}

func utc(name string) bool {
	return strings.EqualFold(name, "UTC") || strings.EqualFold(name, "GMT") || strings.EqualFold(name, "Z")
}

// offsetName is the offset of GMT±h[:mm] or UTC±h[:mm]; "" for another name.
func offsetName(name string) string {
	if len(name) < 5 || !utc(name[:3]) || name[3] != '+' && name[3] != '-' {
		return ""
	}
	hours, minutes, more := strings.Cut(name[4:], ":")
	if h := digits(hours); h == 0 || h > 2 || h != len(hours) || more && (len(minutes) != 2 || digits(minutes) != 2) {
		return ""
	}
	return name[3:]
}

// zones that were found once: loading one reads a file. Only known names get
// in, so that it is bounded by the number of zones there are.
var zones sync.Map // string → *time.Location

// zone finds a zone by its IANA name (one with a slash), UTC, or GMT±h[:mm]
// with its usual sign.
func zone(name string) (*time.Location, bool) {
	if utc(name) {
		return time.UTC, true
	}
	if offset := offsetName(name); offset != "" {
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
	first, _, found := strings.Cut(name, "/")
	if !found || first == "right" || first == "posix" || strings.Contains(name, "..") { // the machine's other sets are no zones
		return nil, false
	}
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), true
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, false
	}
	zones.Store(name, loc)
	return loc, true
}
