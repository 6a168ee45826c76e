package limits

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// units of a duration, in seconds. A run of letters that is none of these ends
// the duration: "5 months" is not 5 minutes.
var units = map[string]float64{
	"ms": 0.001, "msec": 0.001, "msecs": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
	"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
	"m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
	"h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
	"d": 86400, "day": 86400, "days": 86400,
	"w": 604800, "wk": 604800, "wks": 604800, "week": 604800, "weeks": 604800,
}

// maxDuration is more than any reset that is believed.
const maxDuration = 400 * 24 * 3600

// duration reads "161h39m41.3s", "4hr 59min", "2 hours and 3 minutes": the run
// of pieces at the start of a text in lower case. ok is false where there is
// none, or it is no time to wait.
func duration(s string) (d time.Duration, ok bool) {
	var sum float64
	for {
		s = strings.TrimLeft(s, " ,")
		if ok {
			s = strings.TrimPrefix(s, "and ")
		}
		n, unit, rest, found := piece(s)
		if !found {
			break
		}
		sum += n * unit
		s, ok = rest, true
	}
	if !ok || sum <= 0 || sum > maxDuration {
		return 0, false
	}
	return time.Duration(sum * float64(time.Second)), true
}

// piece reads one number with its unit.
func piece(s string) (n, unit float64, rest string, ok bool) {
	i := digits(s)
	if i == 0 {
		return 0, 0, s, false
	}
	if i < len(s) && s[i] == '.' {
		if f := digits(s[i+1:]); f > 0 {
			i += 1 + f
		}
	}
	n, err := strconv.ParseFloat(s[:i], 64)
	if err != nil {
		return 0, 0, s, false
	}
	if i < len(s) && s[i] == ' ' {
		i++
	}
	j := i
	for j < len(s) && isLetter(s[j]) {
		j++
	}
	unit, ok = units[s[i:j]]
	if ok && j < len(s) && s[j] >= utf8.RuneSelf {
		r, _ := utf8.DecodeRuneInString(s[j:])
		ok = !unicode.IsLetter(r)
	}
	return n, unit, s[j:], ok
}

// digits counts the digits at the start.
func digits(s string) int {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// waitAnchors stand before a duration until capacity returns. A duration
// without one is the past ("retried for 56 s") or no wait at all.
var waitAnchors = []string{"resets in ", "reset in ", "try again in ", "try again after ", "retry in ", "retry after ", "reset after ", "resets after ", "wait ", "wait for "}

// longestWait is the longest anchored duration that can be believed; 0 when
// there is none.
func longestWait(text string) (longest time.Duration) {
	for _, anchor := range waitAnchors {
		each(text, anchor, func(end int) bool {
			if d, ok := duration(text[end:]); ok && d > longest && d <= horizon {
				longest = d
			}
			return false
		})
	}
	return longest
}
