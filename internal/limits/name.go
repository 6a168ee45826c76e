package limits

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	perDayText    = regexp.MustCompile(`\bper day\b|\bdaily\b|\btpd\b|\brpd\b`)
	perMinuteText = regexp.MustCompile(`\bper min(?:ute)?\b|\btpm\b|\brpm\b`)
	forHours      = regexp.MustCompile(`for (\d+) hour|(\d+)-hour (?:usage )?(?:limit|quota)`)
	weekly        = regexp.MustCompile(`\bweekly\b|\b7-day\b`)
	monthly       = regexp.MustCompile(`\bmonthly\b|\bthis month\b`)
	sessionLimit  = regexp.MustCompile(`\bsession limit\b`)
	hourly        = regexp.MustCompile(`\bhourly\b`)
	modelTicks    = regexp.MustCompile("(?:reached|too large) for model [`']([^`' ]+)[`']")
	modelOrg      = regexp.MustCompile(`limit reached for ([^ ]+) in organization`)
	modelEnd      = regexp.MustCompile(`limit reached for ([^ ]+)\. `)
)

// quotaID is the id of a violated quota, if one is named.
func (x *facts) quotaID() string {
	for _, d := range x.docs {
		if s, ok := d["quotaId"].(string); ok {
			return s
		}
	}
	return ""
}

// perDay reports a limit that counts days.
func (x *facts) perDay() bool {
	id := x.quotaID()
	return strings.Contains(id, "PerDay") || strings.Contains(id, "Daily") || perDayText.MatchString(x.text)
}

// limitName names the window: what is structured first, then the words.
func limitName(x *facts) string {
	for _, d := range x.docs {
		if s, ok := d["limitName"].(string); ok && s != "" {
			return s
		}
	}
	if x.window != "" {
		return x.window
	}
	if x.headers != nil {
		if n := claimName(x.headers.Get("anthropic-ratelimit-unified-representative-claim")); n != "" {
			return n
		}
		for _, w := range []string{"secondary", "primary"} {
			used, ok := positive(x.headers.Get("x-codex-" + w + "-used-percent"))
			minutes, known := positive(x.headers.Get("x-codex-" + w + "-window-minutes"))
			if ok && used >= 100 && known {
				return windowName(int(minutes))
			}
		}
	}
	id := x.quotaID()
	switch t := x.text; {
	case x.is("github-copilot") && x.has("quota_exceeded"):
		return "monthly"
	case x.is("github-copilot") && x.has("user_weekly_rate_limited"):
		return "weekly"
	case strings.Contains(t, "weekly/monthly"):
		return ""
	case forHours.MatchString(t):
		m := forHours.FindStringSubmatch(t)
		return m[1] + m[2] + " hour"
	case sessionLimit.MatchString(t):
		return "session"
	case hourly.MatchString(t):
		return "hourly"
	case x.perDay():
		return "daily"
	case weekly.MatchString(t):
		return "weekly"
	case monthly.MatchString(t):
		return "monthly"
	case strings.Contains(id, "PerMinute"), perMinuteText.MatchString(t):
		return "minute"
	}
	return ""
}

func claimName(claim string) string {
	switch {
	case claim == "five_hour":
		return "5 hour"
	case strings.HasPrefix(claim, "seven_day"):
		return "weekly"
	}
	return ""
}

func windowName(minutes int) string {
	switch minutes {
	case 60:
		return "hourly"
	case 300:
		return "5 hour"
	case 1440:
		return "daily"
	case 10080:
		return "weekly"
	case 43200:
		return "monthly"
	}
	return strconv.Itoa(minutes/60) + " hour"
}

// modelName is the model that the limit is about, if the evidence says so.
func modelName(x *facts) string {
	for _, d := range x.docs {
		for _, k := range []string{"model", "modelId"} {
			if s, ok := d[k].(string); ok && s != "" {
				return s
			}
		}
	}
	joined := strings.Join(strings.Fields(x.message()), " ")
	lower := strings.ToLower(joined)
	for _, re := range []*regexp.Regexp{modelTicks, modelOrg, modelEnd} {
		m := re.FindStringSubmatchIndex(lower)
		if m == nil || len(lower) != len(joined) {
			continue
		}
		if name := joined[m[2]:m[3]]; strings.ContainsAny(name, "0123456789-") {
			return name
		}
	}
	return ""
}
