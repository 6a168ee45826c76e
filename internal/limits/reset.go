package limits

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Sources of a reset, best first.
const (
	sourceEpoch      = "body_epoch"
	sourceRelative   = "body_relative"
	sourceUnified    = "header_unified"
	sourceAfterMS    = "retry_after_ms"
	sourceAfter      = "retry_after"
	sourceRFC3339    = "rfc3339"
	sourceOffset     = "offset_datetime"
	sourceDated      = "dated_text_zone"
	sourceDuration   = "duration"
	tolerance        = 120 * time.Second
	horizon          = 35 * 24 * time.Hour
	longerWinsBy     = 120 * time.Second
	rankRetryAfterMS = 4
	rankRetryAfter   = 5
)

// candidate is a reset that some piece of evidence names.
type candidate struct {
	rank   int
	at     time.Time
	source string
}

// beats compares two of one rank: the later one, so that nobody asks too early.
func (c candidate) beats(o candidate) bool {
	return c.at.After(o.at) || c.at.Equal(o.at) && c.source < o.source
}

// candidates collects what is named.
type candidates []candidate

func (c *candidates) add(rank int, at time.Time, ok bool, source string) {
	if ok {
		*c = append(*c, candidate{rank, at, source})
	}
}

// reset picks the best candidate inside the window; the zero time if there is
// none.
func reset(x *facts) (time.Time, string) {
	var room [8]candidate
	all := candidates(room[:0])
	bodyResets(x, &all)
	headerResets(x, &all)
	textResets(x, &all)
	var best candidate
	kept := all[:0]
	for _, c := range all {
		c.at = c.at.UTC().Truncate(time.Millisecond)
		if !believed(c.at, x.base) {
			continue
		}
		kept = append(kept, c)
		if best.rank == 0 || c.rank < best.rank || c.rank == best.rank && c.beats(best) {
			best = c
		}
	}
	if best.rank == rankRetryAfterMS || best.rank == rankRetryAfter { // a header says when to ask again, the text when it helps
		limit := best.at.Add(longerWinsBy)
		for _, c := range kept {
			if (c.rank >= 6 && c.rank <= 8 || c.rank == 10) && c.at.After(limit) && c.at.After(best.at) {
				best = c
			}
		}
	}
	return best.at, best.source
}

// believed reports a time that a reset can have: a little past, or not too far.
func believed(at, base time.Time) bool {
	return !at.Before(base.Add(-tolerance)) && !at.After(base.Add(horizon))
}

// positive reads a plain positive decimal.
func positive(v any) (float64, bool) {
	s := ""
	switch v := v.(type) {
	case json.Number:
		s = v.String()
	case string:
		s = strings.TrimSpace(v)
	}
	n := digits(s)
	if n == 0 || len(s) > 64 {
		return 0, false
	}
	if n < len(s) && (s[n] != '.' || digits(s[n+1:]) == 0 || n+1+digits(s[n+1:]) != len(s)) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f > 0
}

// epoch reads a point in time in seconds or milliseconds since 1970.
func epoch(v any) (time.Time, bool) {
	f, ok := positive(v)
	if !ok || f >= 1e14 {
		return time.Time{}, false
	}
	if f < 1e11 {
		f *= 1000
	}
	return time.UnixMilli(int64(f)), true
}

// later is base plus seconds; false for what overflows.
func later(base time.Time, seconds float64) (time.Time, bool) {
	if seconds <= 0 || seconds > 1e9 {
		return time.Time{}, false
	}
	return base.Add(time.Duration(seconds * float64(time.Second))), true
}

// field finds a field whatever the case of its name.
func field(m map[string]any, name string) any {
	for k, v := range m {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return nil
}

// bodyResets reads the fields of the documents.
func bodyResets(x *facts, out *candidates) {
	for _, d := range x.docs {
		for k, v := range d {
			switch k {
			case "resets_at", "resetsAt":
				at, ok := epoch(v)
				out.add(1, at, ok, sourceEpoch)
				out.addStamp(v)
			case "quotaResetTimeStamp":
				out.addStamp(v)
			case "metadata":
				at, ok := epoch(field(object(d, k, "headers"), "X-RateLimit-Reset"))
				out.add(1, at, ok, sourceEpoch)
			case "resets_in_seconds":
				if sec, isNumber := positive(v); isNumber {
					at, ok := later(x.base, sec)
					out.add(2, at, ok, sourceRelative)
				}
			case "retryDelay", "quotaResetDelay":
				if s, isText := v.(string); isText {
					wait, ok := duration(lower(s))
					out.add(2, x.base.Add(wait), ok, sourceRelative)
				}
			}
		}
	}
	const pipe = "usage limit reached|"
	each(x.text, pipe, func(end int) bool {
		at, ok := epoch(x.text[end : end+digits(x.text[end:])])
		out.add(1, at, ok, sourceEpoch)
		return true
	})
}

// addStamp takes a structured RFC 3339 time.
func (c *candidates) addStamp(v any) {
	if s, ok := v.(string); ok && len(s) >= len("2006-01-02T15:04:05Z") {
		t, err := time.Parse(time.RFC3339, strings.TrimSpace(s))
		c.add(1, t, err == nil, sourceRFC3339)
	}
}

// headerResets reads the answer's headers.
func headerResets(x *facts, out *candidates) {
	if len(x.headers) == 0 {
		return
	}
	unifiedReset(x.headers, x.base, out)
	for _, w := range exhaustedWindows(x.headers, x.base) {
		out.add(3, w.at, !w.at.IsZero(), sourceUnified)
	}
	for key, values := range x.headers {
		if len(values) == 0 {
			continue
		}
		switch key {
		case "X-Ratelimit-Reset":
			at, ok := epoch(values[0])
			out.add(3, at, ok, sourceUnified)
		case "Retry-After-Ms":
			if ms, isNumber := positive(values[0]); isNumber {
				at, ok := later(x.base, ms/1000)
				out.add(rankRetryAfterMS, at, ok, sourceAfterMS)
			}
		case "Retry-After":
			if sec, isNumber := positive(values[0]); isNumber {
				at, ok := later(x.base, sec)
				out.add(rankRetryAfter, at, ok, sourceAfter)
			} else if t, err := http.ParseTime(strings.TrimSpace(values[0])); err == nil {
				out.add(rankRetryAfter, t, true, sourceAfter)
			}
		default:
			dimensionReset(x, key, values[0], out)
		}
	}
}

// dimensionReset reads the reset of one dimension (requests, tokens …). It
// counts where nothing of the dimension remains, or that is not said.
func dimensionReset(x *facts, key, value string, out *candidates) {
	if name, ok := strings.CutPrefix(key, "X-Ratelimit-Reset-"); ok && (name == "Requests" || name == "Tokens") {
		if spent(x.headers.Get("X-Ratelimit-Remaining-" + name)) {
			wait, ok := duration(lower(strings.TrimSpace(value)))
			out.add(10, x.base.Add(wait), ok, sourceDuration)
		}
		return
	}
	name, ok := strings.CutPrefix(key, "Anthropic-Ratelimit-")
	if !ok {
		return
	}
	if name, ok = strings.CutSuffix(name, "-Reset"); ok && !strings.HasPrefix(name, "Unified") && spent(x.headers.Get("Anthropic-Ratelimit-"+name+"-Remaining")) {
		t, err := time.Parse(time.RFC3339, strings.TrimSpace(value))
		out.add(6, t, err == nil, sourceRFC3339)
	}
}

func spent(remaining string) bool {
	remaining = strings.TrimSpace(remaining)
	return remaining == "" || remaining == "0"
}

// textResets reads stamps, durations and clocks in the messages.
func textResets(x *facts, out *candidates) {
	bare, source := beijing, sourceDated
	if !x.is(zaiFamily...) {
		bare, source = nil, sourceClockLocal
		if x.zone != "" {
			bare, _ = zone(x.zone)
		}
	}
	*out = append(*out, stampResets(x.plain, bare, source)...)
	if wait := longestWait(x.text); wait > 0 {
		out.add(10, x.base.Add(wait), true, sourceDuration)
	}
	*out = append(*out, clockResets(x.plain, x.text, x.zone, x.base)...)
}
