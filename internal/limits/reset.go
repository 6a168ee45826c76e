package limits

import (
	"encoding/json"
	"net/http"
	"regexp"
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

// reset picks the best candidate inside the window; the zero time if there is
// none.
func reset(x *facts) (time.Time, string) {
	var best candidate
	var kept []candidate
	for _, c := range append(append(bodyResets(x), headerResets(x)...), textResets(x)...) {
		c.at = c.at.UTC().Truncate(time.Millisecond)
		if c.at.Before(x.base.Add(-tolerance)) || c.at.After(x.base.Add(horizon)) {
			continue
		}
		kept = append(kept, c)
		if best.rank == 0 || c.rank < best.rank || c.rank == best.rank && c.at.After(best.at) {
			best = c
		}
	}
	if best.rank == rankRetryAfterMS || best.rank == rankRetryAfter { // a header says when to ask again, the text when it helps
		for _, c := range kept {
			if (c.rank >= 6 && c.rank <= 8 || c.rank == 10) && c.at.After(best.at.Add(longerWinsBy)) {
				return c.at, c.source
			}
		}
	}
	return best.at, best.source
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
	if s == "" || len(s) > 18 || strings.Trim(s, "0123456789.") != "" {
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

var pipeEpoch = regexp.MustCompile(`usage limit reached\|(\d+)`)

// bodyResets reads the fields of the documents.
func bodyResets(x *facts) (out []candidate) {
	add := func(rank int, at time.Time, ok bool, source string) {
		if ok {
			out = append(out, candidate{rank, at, source})
		}
	}
	for _, d := range x.docs {
		at, ok := epoch(d["resets_at"])
		add(1, at, ok, sourceEpoch)
		if h, isMap := d["headers"].(map[string]any); isMap {
			at, ok = epoch(h["X-RateLimit-Reset"])
			add(1, at, ok, sourceEpoch)
		}
		if s, isText := d["quotaResetTimeStamp"].(string); isText {
			t, err := time.Parse(time.RFC3339, s)
			add(1, t, err == nil, sourceRFC3339)
		}
		if sec, isNumber := positive(d["resets_in_seconds"]); isNumber {
			at, ok = later(x.base, sec)
			add(2, at, ok, sourceRelative)
		}
		for _, k := range []string{"retryDelay", "quotaResetDelay"} {
			if s, isText := d[k].(string); isText {
				wait, ok := duration(strings.ToLower(s))
				add(2, x.base.Add(wait), ok, sourceRelative)
			}
		}
	}
	if m := pipeEpoch.FindStringSubmatch(x.text); m != nil {
		at, ok := epoch(m[1])
		add(1, at, ok, sourceEpoch)
	}
	return out
}

// headerResets reads the answer's headers.
func headerResets(x *facts) (out []candidate) {
	h := x.headers
	add := func(rank int, at time.Time, ok bool, source string) {
		if ok {
			out = append(out, candidate{rank, at, source})
		}
	}
	at, ok := unified(h)
	add(3, at, ok, sourceUnified)
	at, ok = codexWindow(h, x.base)
	add(3, at, ok, sourceUnified)
	at, ok = epoch(h.Get("x-ratelimit-reset"))
	add(3, at, ok, sourceUnified)
	if ms, isNumber := positive(h.Get("retry-after-ms")); isNumber {
		at, ok = later(x.base, ms/1000)
		add(rankRetryAfterMS, at, ok, sourceAfterMS)
	}
	after := strings.TrimSpace(h.Get("retry-after"))
	if sec, isNumber := positive(after); isNumber {
		at, ok = later(x.base, sec)
		add(rankRetryAfter, at, ok, sourceAfter)
	} else if t, err := http.ParseTime(after); err == nil {
		add(rankRetryAfter, t, true, sourceAfter)
	}
	for _, name := range []string{"requests", "tokens", "input-tokens", "output-tokens"} {
		if left := h.Get("anthropic-ratelimit-" + name + "-remaining"); left == "" || left == "0" {
			t, err := time.Parse(time.RFC3339, h.Get("anthropic-ratelimit-"+name+"-reset"))
			add(6, t, err == nil, sourceRFC3339)
		}
	}
	for _, name := range []string{"requests", "tokens"} {
		if left := h.Get("x-ratelimit-remaining-" + name); left == "" || left == "0" {
			wait, ok := duration(strings.ToLower(h.Get("x-ratelimit-reset-" + name)))
			add(10, x.base.Add(wait), ok, sourceDuration)
		}
	}
	return out
}

// unified reads Anthropic's account windows.
func unified(h http.Header) (time.Time, bool) {
	const p = "anthropic-ratelimit-unified-"
	rejected := func(k string) bool { return strings.EqualFold(h.Get(p+k), "rejected") }
	if rejected("status") {
		if at, ok := epoch(h.Get(p + "reset")); ok {
			return at, true
		}
		window := map[string]string{"five_hour": "5h", "seven_day": "7d"}[h.Get(p+"representative-claim")]
		if at, ok := epoch(h.Get(p + window + "-reset")); ok && window != "" {
			return at, true
		}
	}
	var last time.Time
	for _, w := range []string{"5h", "7d"} {
		if at, ok := epoch(h.Get(p + w + "-reset")); ok && rejected(w+"-status") && at.After(last) {
			last = at
		}
	}
	return last, !last.IsZero()
}

// codexWindow reads the exhausted window of Codex's headers, the later one if
// both are.
func codexWindow(h http.Header, base time.Time) (time.Time, bool) {
	var last time.Time
	for _, w := range []string{"primary", "secondary"} {
		used, ok := positive(h.Get("x-codex-" + w + "-used-percent"))
		if !ok || used < 100 {
			continue
		}
		at, ok := epoch(h.Get("x-codex-" + w + "-reset-at"))
		if !ok {
			sec, isNumber := positive(h.Get("x-codex-" + w + "-reset-after-seconds"))
			if at, ok = later(base, sec); !isNumber {
				ok = false
			}
		}
		if ok && at.After(last) {
			last = at
		}
	}
	return last, !last.IsZero()
}

var (
	stampRFC    = regexp.MustCompile(`\d{4}-\d\d-\d\dt\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:\d\d)`)
	stampOffset = regexp.MustCompile(`(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ([+-]\d{4})\b`)
	stampUTC    = regexp.MustCompile(`(\d{4}-\d\d-\d\d)(?: at)? (\d\d:\d\d(?::\d\d)?) utc\b`)
	stampBare   = regexp.MustCompile(`(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(.{0,6})`)
	anchored    = regexp.MustCompile(`(?:resets? in|try again in|try again after|retry in|retry after|reset after|wait) +((?:\d+(?:\.\d+)? ?[a-z]+[ ,]*(?:and )?)+)`)
)

// textResets reads stamps and durations in the messages.
func textResets(x *facts) (out []candidate) {
	for _, s := range stampRFC.FindAllString(x.text, 4) {
		if t, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err == nil {
			out = append(out, candidate{6, t, sourceRFC3339})
		}
	}
	for _, m := range stampOffset.FindAllStringSubmatch(x.text, 4) {
		if t, err := time.Parse("2006-01-02 15:04:05 -0700", m[1]+" "+m[2]); err == nil {
			out = append(out, candidate{7, t, sourceOffset})
		}
	}
	for _, m := range stampUTC.FindAllStringSubmatch(x.text, 4) {
		clock := m[2]
		if len(clock) == 5 {
			clock += ":00"
		}
		if t, err := time.Parse(time.DateTime, m[1]+" "+clock); err == nil {
			out = append(out, candidate{8, t, sourceDated})
		}
	}
	if x.is("zai", "zai-coding-plan", "zhipuai", "zhipuai-coding-plan") { // their stamps are Beijing's
		for _, m := range stampBare.FindAllStringSubmatch(x.text, 4) {
			if strings.HasPrefix(m[3], " utc") || strings.HasPrefix(m[3], " +") || strings.HasPrefix(m[3], " -") {
				continue
			}
			if t, err := time.ParseInLocation(time.DateTime, m[1]+" "+m[2], beijing); err == nil {
				out = append(out, candidate{8, t, sourceDated})
			}
		}
	}
	var longest time.Duration
	for _, m := range anchored.FindAllStringSubmatch(x.text, 8) {
		if d, ok := duration(m[1]); ok && d > longest {
			longest = d
		}
	}
	if longest > 0 {
		out = append(out, candidate{10, x.base.Add(longest), sourceDuration})
	}
	return append(out, clockResets(x.plain, x.zone, x.base)...)
}

var beijing = time.FixedZone("+08:00", 8*3600)

var piece = regexp.MustCompile(`(\d+(?:\.\d+)?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|hr|h|days?|d|weeks?|w)([a-z]*)`)

// duration reads "161h39m41.3s", "4hr 59min", "2 hours and 3 minutes": the run
// of pieces at the start. A unit that goes on as another word ("5 months") ends
// it.
func duration(s string) (time.Duration, bool) {
	var sum float64
	found := false
	for {
		s = strings.TrimLeft(s, " ,")
		s = strings.TrimPrefix(s, "and ")
		m := piece.FindStringSubmatchIndex(s)
		if m == nil || m[0] != 0 || m[6] != m[7] {
			break
		}
		n, err := strconv.ParseFloat(s[m[2]:m[3]], 64)
		if err != nil {
			return 0, false
		}
		sum += n * unit(s[m[4]:m[5]])
		found = true
		s = s[m[1]:]
	}
	if !found || sum <= 0 || sum > 400*24*3600 {
		return 0, false
	}
	return time.Duration(sum * float64(time.Second)), true
}

// unit gives a unit's seconds.
func unit(u string) float64 {
	switch {
	case u == "ms", strings.HasPrefix(u, "milli"):
		return 0.001
	case u[0] == 's':
		return 1
	case u[0] == 'm':
		return 60
	case u[0] == 'h':
		return 3600
	case u[0] == 'd':
		return 86400
	default:
		return 7 * 86400
	}
}
