package limits

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// limitWindow is an exhausted window of a Codex plan.
type limitWindow struct {
	at   time.Time // zero when not said
	name string
}

// exhaustedWindows reads Codex's headers: the windows that are used up.
func exhaustedWindows(h http.Header, base time.Time) (spent []limitWindow) {
	for _, w := range []string{"X-Codex-Primary-", "X-Codex-Secondary-"} {
		used, ok := positive(h.Get(w + "Used-Percent"))
		if !ok || used < 100 {
			continue
		}
		at, ok := epoch(h.Get(w + "Reset-At"))
		if !ok || !believed(at, base) { // a clock that is wrong; what is relative needs none
			sec, _ := positive(h.Get(w + "Reset-After-Seconds"))
			at, _ = later(base, sec)
		}
		minutes, _ := positive(h.Get(w + "Window-Minutes"))
		spent = append(spent, limitWindow{at, windowName(int(minutes))})
	}
	return spent
}

// last is the window that opens last, of those whose time can be believed if
// there are any: the one that is waited for.
func last(spent []limitWindow, base time.Time) (best limitWindow) {
	for i, w := range spent {
		ok, was := believed(w.at, base), believed(best.at, base)
		if i == 0 || ok && !was || ok == was && w.at.After(best.at) {
			best = w
		}
	}
	return best
}

// windows reads Codex's rate limits that were joined to an error: the windows
// that are used up, whether or not they say when they open.
func (x *facts) windows(limits map[string]any) {
	var spent []limitWindow
	for _, k := range []string{"primary", "secondary"} {
		w := object(limits, k)
		if used, ok := positive(w["usedPercent"]); !ok || used < 100 {
			continue
		}
		at, _ := epoch(w["resetsAt"])
		minutes, _ := positive(w["windowDurationMins"])
		spent = append(spent, limitWindow{at, windowName(int(minutes))})
		x.docs = append(x.docs, map[string]any{"resetsAt": w["resetsAt"]})
	}
	if name := last(spent, x.base).name; name != "" {
		x.window = name
	}
}

// windowName names a window by its length; "" for one shorter than an hour.
func windowName(minutes int) string {
	switch minutes {
	case 60:
		return "hourly"
	case 1440:
		return "daily"
	case 10080:
		return "weekly"
	case 43200:
		return "monthly"
	}
	if minutes < 60 {
		return ""
	}
	return strconv.Itoa(minutes/60) + " hour"
}

// codex reads Codex's error object, wherever it travels.
func (x *facts) codex(e map[string]any) {
	x.docs = append(x.docs, e)
	x.errorInfo(e)
	for _, k := range []string{"message", "additionalDetails"} {
		x.speak(text(e, k), 0)
	}
	if again, ok := e["willRetry"].(bool); ok && again {
		x.retries = true
	}
}

// codexNotice reads the error notification of Codex's app server.
func (x *facts) codexNotice(d map[string]any) bool {
	p := object(d, "params")
	e := object(p, "error")
	if e == nil {
		return false
	}
	x.codex(e)
	if again, _ := p["willRetry"].(bool); again {
		x.retries = true
	}
	for _, limits := range []map[string]any{object(d, "rateLimits"), object(p, "rateLimits")} {
		x.windows(limits)
	}
	return true
}

// errorInfo notes the codes of an agent's error data; an object contributes
// its keys, and the status inside.
func (x *facts) errorInfo(data map[string]any) {
	for _, k := range []string{"errorKind", "codexErrorInfo", "codex_error_info"} {
		o, ok := data[k].(map[string]any)
		if !ok {
			x.code(data[k])
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(o)) {
			x.code(key)
			inner, _ := o[key].(map[string]any)
			for _, name := range []string{"httpStatusCode", "http_status_code"} {
				if n, ok := positive(inner[name]); ok && n >= 100 && n < 600 {
					x.status = int(n)
				}
			}
		}
	}
}

// codexLine is codex-acp 0.16's word on stderr about a turn that failed:
// "<time> ERROR codex_acp::thread: Unhandled error during turn: <message> Some(<Code>)".
func (x *facts) codexLine(e Evidence) bool {
	const head = " ERROR codex_acp::thread: Unhandled error during turn: "
	stamp, said, found := strings.Cut(flatten(e.Text), head)
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if !found || err != nil || at.Before(e.Bind.PromptStarted) {
		return false
	}
	x.base = at
	if i := strings.LastIndex(said, " Some("); i >= 0 && strings.HasSuffix(said, ")") {
		x.code(said[i+len(" Some(") : len(said)-1])
		said = said[:i]
	}
	x.speak(said, 0)
	return true
}
