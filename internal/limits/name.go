package limits

import "strings"

// perDay reports a limit that counts days. A message may say the id of a quota.
func (x *facts) perDay() bool {
	return x.quotaOf("PerDay", "Daily") || strings.Contains(x.plain, "PerDay") || word(x.text, "per day") || word(x.text, "per-day") || word(x.text, "daily") || word(x.text, "tpd") || word(x.text, "rpd")
}

// limitName names the window: what is structured first, then the words.
func limitName(x *facts) string {
	for _, d := range x.docs {
		if s := text(d, "limitName"); s != "" {
			return s
		}
	}
	if x.window != "" {
		return x.window
	}
	if len(x.headers) > 0 {
		if w := last(exhaustedWindows(x.headers, x.base), x.base); w.name != "" {
			return w.name
		}
	}
	switch t := x.text; {
	case strings.Contains(t, "weekly/monthly"): // one of the two, and nobody says which
		return ""
	case hours(t) != "":
		return hours(t) + " hour"
	case word(t, "session limit"):
		return "session"
	case word(t, "hourly"):
		return "hourly"
	case x.perDay():
		return "daily"
	case word(t, "weekly"), word(t, "7-day"):
		return "weekly"
	case word(t, "monthly"), word(t, "this month"):
		return "monthly"
	case x.quotaOf("PerMinute"), strings.Contains(x.plain, "PerMinute"), word(t, "per min"), word(t, "per-min"), word(t, "per minute"), word(t, "per-minute"), word(t, "tpm"), word(t, "rpm"):
		return "minute"
	}
	return ""
}

// hours reads the number of "for 5 hour" and "5-hour [usage] limit"; "51
// hours" elsewhere is a wait.
func hours(t string) (n string) {
	each(t, "for ", func(end int) bool {
		d := digits(t[end:])
		if d > 0 && strings.HasPrefix(t[end+d:], " hour") {
			n = t[end : end+d]
		}
		return n != ""
	})
	if n != "" {
		return n
	}
	each(t, "-hour ", func(end int) bool {
		rest := strings.TrimPrefix(t[end:], "usage ")
		start := end - len("-hour ")
		first := start
		for first > 0 && isDigit(t[first-1]) {
			first--
		}
		if first < start && (strings.HasPrefix(rest, "limit") || strings.HasPrefix(rest, "quota")) {
			n = t[first:start]
		}
		return n != ""
	})
	return n
}

// modelSaid is the model that the message is about, if it says so.
func modelSaid(x *facts) (model string) {
	for _, before := range []string{"reached for model ", "too large for model "} {
		each(x.text, before, func(end int) bool {
			rest := x.plain[end:min(len(x.plain), end+200)]
			if rest == "" || rest[0] != '`' && rest[0] != '\'' {
				return false
			}
			if i := strings.IndexAny(rest[1:], "`' \n"); i > 0 && (rest[1+i] == '`' || rest[1+i] == '\'') {
				model = rest[1 : 1+i]
			}
			return model != ""
		})
		if model != "" {
			return model
		}
	}
	each(x.text, "limit reached for ", func(end int) bool {
		name, rest, found := strings.Cut(x.plain[end:min(len(x.plain), end+200)], " ")
		short, dot := strings.CutSuffix(name, ".")
		if !found || !dot && !strings.HasPrefix(rest, "in organization") || !strings.ContainsAny(short, "0123456789-") || strings.Contains(short, "\n") {
			return false
		}
		model = short
		return true
	})
	return model
}
