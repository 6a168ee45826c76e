package diagnostics

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Record is what one line of standard error says by itself, whichever prompt
// asks. The zero Record is an empty line.
type Record struct {
	broken Reason // the line is none that could be read
	reason Reason // the line was read and is no evidence
	old    bool   // of OpenCode before 1.17
	// process: the whole turn failed, not an attempt.
	process bool

	text       string // decoded, as the provider gave it
	kind, code string // of the error
	name       string // of the error's class
	status     int    // HTTP status; old records only
	session    string
	provider   string
	model      string
	agent      string
	small      string
	link       string // action_url
	linked     bool   // there is an action_url
	title      bool   // the request's system text asks for a title
	at         time.Time
}

// Parse reads a line as OpenCode of any version since 1.0 writes it. It is
// done once for each line, however many prompts share the process.
func Parse(line Line) Record {
	switch {
	case line.Fault == Oversize:
		return Record{broken: ReasonOversize}
	case line.Fault == Torn:
		return Record{broken: ReasonTorn}
	case !utf8.Valid(line.Text):
		return Record{broken: ReasonMalformed}
	}
	s := withoutCSI(strings.TrimSuffix(string(line.Text), "\r"))
	var r Record
	switch {
	case keyLength(s) > 0:
		r.reason = r.logfmt(s)
	default:
		r.reason = r.oldLayout(s)
	}
	return r
}

// Session is the session that the record names, "" when the line is no record.
func (r Record) Session() string {
	if r.broken != "" || r.reason != "" {
		return ""
	}
	return r.session
}

// OccurredAt is the record's own time, zero when the line is no record. Old
// records know only the second.
func (r Record) OccurredAt() time.Time {
	if r.broken != "" || r.reason != "" {
		return time.Time{}
	}
	return r.at.UTC().Truncate(time.Millisecond)
}

// whole checks the fields that every record must have.
func (r *Record) whole(at string, zone bool) Reason {
	if r.text == "" || r.session == "" || at == "" {
		return ReasonMissing
	}
	var ok bool
	if r.at, ok = stamp(at, zone); !ok || !sessionID(r.session) {
		return ReasonMalformed
	}
	return ""
}

// stamp reads an RFC 3339 time with its zone, or one of UTC without.
func stamp(s string, zone bool) (time.Time, bool) {
	const shape = "2006-01-02T15:04:05"
	if len(s) < len(shape) {
		return time.Time{}, false
	}
	for i := range len(shape) { // the parser takes more than the standard
		if digit(shape[i]) != digit(s[i]) {
			return time.Time{}, false
		}
	}
	layout := shape
	if zone {
		layout = time.RFC3339
	}
	at, err := time.Parse(layout, s)
	if err != nil || strings.Contains(s, ",") {
		return time.Time{}, false
	}
	_, offset, signed := strings.Cut(strings.ReplaceAll(s[len(shape):], "-", "+"), "+")
	return at, !signed || offset[:2] < "24" && offset[3:] < "60"
}

func sessionID(s string) bool {
	rest, ok := strings.CutPrefix(s, "ses_")
	return ok && name(rest, 124)
}

// name reports 1 to most characters of names and ids.
func name(s string, most int) bool {
	for i := range len(s) {
		if !letter(s[i]) && !digit(s[i]) && strings.IndexByte("._:/-", s[i]) < 0 {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= most
}

// control reports a control byte.
func control(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// aborted reports the texts of a cancel. A provider's text that merely speaks
// of one is none.
func aborted(text string) bool {
	s := strings.TrimSuffix(strings.TrimSpace(text), ".")
	return s == "Aborted" || s == "The operation was aborted" || strings.HasPrefix(s, "AbortError")
}
