package drill

import (
	"regexp"
	"time"
)

// stamps are the times at which OpenCode's records say that they were written,
// in its two formats (opencode 1.0 to 1.18.33).
var stamps = []struct {
	at     *regexp.Regexp // the time is its group
	layout string
}{
	{regexp.MustCompile(`^(?:[^"]*? )?timestamp=(\S+)`), "2006-01-02T15:04:05.000Z"},
	{regexp.MustCompile(`^[A-Z]+ +(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) `), "2006-01-02T15:04:05"},
}

// restamped is a recorded line of stderr as if it were written now: a record
// whose time lies before the prompt would prove nothing to who reads it live.
func restamped(line []byte, now time.Time) []byte {
	for _, s := range stamps {
		if m := s.at.FindSubmatchIndex(line); m != nil {
			out := append([]byte{}, line[:m[2]]...)
			out = append(out, now.UTC().Format(s.layout)...)
			return append(out, line[m[3]:]...)
		}
	}
	return line
}
