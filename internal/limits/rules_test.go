package limits

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// at0 is when the evidence of these tables came.
var at0 = time.Date(2026, 3, 3, 10, 0, 0, 0, time.UTC)

// brief writes a finding on one line: class, T for terminal, reset and its
// source, confidence, model, limit.
func brief(f Finding) string {
	s := string(f.Class)
	if f.Terminal {
		s += " T"
	}
	if !f.ResetAt.IsZero() {
		s += " " + f.ResetAt.Format("2006-01-02T15:04:05.999Z07:00") + " " + f.ResetSource
	}
	s += " " + f.Confidence
	if f.Model != "" {
		s += " model=" + f.Model
	}
	if f.LimitName != "" {
		s += " limit=" + f.LimitName
	}
	return s
}

func said(provider, text string) Evidence {
	return Evidence{Provider: provider, Channel: Text, At: at0, Text: text, Trusted: true, HostZone: "Europe/Berlin"}
}

func answer(provider string, status int, body string, headers ...string) Evidence {
	e := Evidence{Provider: provider, Channel: HTTP, At: at0, HostZone: "Europe/Berlin", HTTP: &Answer{Status: status, Headers: http.Header{}, Body: []byte(body)}}
	for i := 0; i < len(headers); i += 2 {
		e.HTTP.Headers.Set(headers[i], headers[i+1])
	}
	return e
}

func event(provider string, c Channel, raw string) Evidence {
	return Evidence{Provider: provider, Channel: c, At: at0, HostZone: "Europe/Berlin", Event: json.RawMessage(raw)}
}

// The grammar of times, one text a row. The base is 2026-03-03 10:00 UTC, a
// Tuesday, 11:00 in Berlin.
func TestTimesInText(t *testing.T) {
	const hit = "You've hit your limit · "
	for text, want := range map[string]string{
		// clocks
		"resets 5pm":                                    "2026-03-03T16:00:00Z clock_local low",
		"resets at 5 PM. Upgrade to continue":           "2026-03-03T16:00:00Z clock_local low",
		"resets 5 p.m. (Europe/Paris)":                  "2026-03-03T16:00:00Z clock_zone medium",
		"resets 5 p.m. Upgrade":                         "2026-03-03T16:00:00Z clock_local low",
		"resets 12am (UTC)":                             "2026-03-04T00:00:00Z clock_zone medium",
		"resets 12pm (UTC)":                             "2026-03-03T12:00:00Z clock_zone medium",
		"resets 9:58am (UTC)":                           "2026-03-03T09:58:00Z clock_zone medium", // two minutes past: kept
		"resets 9:57am (UTC)":                           "2026-03-04T09:57:00Z clock_zone medium",
		"resets 17:30":                                  "2026-03-03T16:30:00Z clock_local low",
		"resets 17:30 UTC":                              "2026-03-03T17:30:00Z clock_zone medium",
		"resets 0:30 (utc)":                             "2026-03-04T00:30:00Z clock_zone medium",
		"resets at 10:57 PM GMT-3.":                     "2026-03-04T01:57:00Z clock_zone medium",
		"resets at 10:57 PM GMT+5:30!":                  "2026-03-03T17:27:00Z clock_zone medium",
		"resets at 10:57 PM UTC+05:30":                  "2026-03-03T17:27:00Z clock_zone medium",
		"resets 1pm (Etc/GMT+5)":                        "2026-03-03T18:00:00Z clock_zone medium",
		"resets 1pm (US/Pacific)":                       "2026-03-03T21:00:00Z clock_zone medium",
		"resets 1pm (America/Argentina/Buenos_Aires)":   "2026-03-03T16:00:00Z clock_zone medium",
		"refreshed at 5pm (UTC)":                        "2026-03-03T17:00:00Z clock_zone medium",
		"You will regain access on Mar 5 at 5pm (UTC)":  "2026-03-05T17:00:00Z dated_text_zone medium",
		"the cycle ends on 3/9":                         "2026-03-08T23:00:00Z clock_local low",
		"reset on 03/09/2026":                           "2026-03-08T23:00:00Z clock_local low",
		"RESETS AT 5PM (Europe/Berlin)":                 "2026-03-03T16:00:00Z clock_zone medium",
		"try again at 5:37 PM Some(UsageLimitExceeded)": "2026-03-03T16:37:00Z clock_local low",
		// what is no clock
		"resets 5":                     "",
		"resets 13pm":                  "",
		"resets 0am":                   "",
		"resets 24:00":                 "",
		"resets 25:99 (UTC)":           "",
		"resets 5:60pm":                "",
		"resets 5pm today":             "",
		"resets 5pm PST":               "",
		"resets 5pm (PST)":             "",
		"resets 5pm (Local)":           "",
		"resets 5pm (../etc/passwd)":   "",
		"resets 5pm (right/UTC)":       "",
		"resets 5pm (Mars/Olympus)":    "",
		"resets 5pm (GMT+25)":          "",
		"presets 5pm":                  "",
		"resets 20 de mar. 2026 00:27": "",
		"resets 0/5":                   "",
		"resets 13/1":                  "",
		"resets 2/30":                  "",
		"resets Feb 30, 5pm (UTC)":     "",
		"resets in the next cycle":     "",
		// dates
		"resets Mar 5, 5pm (UTC)":               "2026-03-05T17:00:00Z dated_text_zone medium",
		"resets mar 5 5pm":                      "2026-03-05T16:00:00Z clock_local low",
		"resets March 5th at 5 pm (UTC)":        "2026-03-05T17:00:00Z dated_text_zone medium",
		"resets March 5, 2026, 17:00 UTC":       "2026-03-05T17:00:00Z dated_text_zone medium",
		"resets on March 5 2026 at 17:00":       "2026-03-05T16:00:00Z clock_local low",
		"try again at Mar 22nd, 2026 1:5 AM":    "",
		"try again at Mar 22nd, 2026 1:05 AM. ": "2026-03-22T00:05:00Z clock_local low",
		"resets Sept. 5, 5pm (UTC)":             "", // half a year ahead
		"resets Mar 3, 2027, 5pm (UTC)":         "",
		// weekdays
		"resets Tuesday 12:00 (Europe/Berlin)": "2026-03-03T11:00:00Z dated_text_zone medium",
		"resets Tuesday 10:00 (Europe/Berlin)": "2026-03-10T09:00:00Z dated_text_zone medium",
		"resets Thu 9am (UTC)":                 "2026-03-05T09:00:00Z dated_text_zone medium",
		"resets Thurs at 9am":                  "2026-03-05T08:00:00Z clock_local low",
		"resets Wednesday, 9am":                "2026-03-04T08:00:00Z clock_local low",
		"resets on Monday at 9am.":             "2026-03-09T08:00:00Z clock_local low",
		"resets Monday":                        "",
		// stamps, which need no anchor
		"until 2026-03-05T15:00:00Z":                "2026-03-05T15:00:00Z rfc3339 high",
		"until 2026-03-05t15:00:00.25+02:00 (2056)": "2026-03-05T13:00:00.25Z rfc3339 high",
		"until 2026-03-05 15:00:00 +0800 CST.":      "2026-03-05T07:00:00Z offset_datetime high",
		"until 2026-03-05 15:00:00 -0530":           "2026-03-05T20:30:00Z offset_datetime high",
		"until 2026-03-05 15:00:00.123 +0000 UTC":   "2026-03-05T15:00:00Z offset_datetime high",
		"until 2026-03-05 at 15:00 UTC":             "2026-03-05T15:00:00Z dated_text_zone medium",
		"until 2026-03-05 15:00:30 UTC":             "2026-03-05T15:00:30Z dated_text_zone medium",
		"until 2026-03-05 15:00 (Asia/Tokyo)":       "2026-03-05T06:00:00Z dated_text_zone medium",
		"until 2026-03-05 15:00:30":                 "2026-03-05T14:00:30Z clock_local low",
		"限额将在 2026-03-05 15:00:30 重置。":              "2026-03-05T14:00:30Z clock_local low",
		"until 2026-03-05 15:00:30 CST":             "",
		"until 2026-13-05 15:00:30":                 "",
		"until 12026-03-05 15:00:30":                "",
		// durations
		"resets in 4hr 59min.":                    "2026-03-03T14:59:00Z duration medium",
		"Reset in 161h39m41.3s":                   "2026-03-10T03:39:41.3Z duration medium",
		"try again in 5 days 22 hours 11 minutes": "2026-03-09T08:11:00Z duration medium",
		"try again in 1 hour, and 5 minutes":      "2026-03-03T11:05:00Z duration medium",
		"try again in 2 weeks":                    "2026-03-17T10:00:00Z duration medium",
		"retry in 1w":                             "2026-03-10T10:00:00Z duration medium",
		"retry after 90000ms":                     "2026-03-03T10:01:30Z duration medium",
		"retry after 1500 milliseconds":           "2026-03-03T10:00:01.5Z duration medium",
		"reset after 1.5h":                        "2026-03-03T11:30:00Z duration medium",
		"please wait 45 secs":                     "2026-03-03T10:00:45Z duration medium",
		"wait 2 minutes or try again in 51 hours": "2026-03-05T13:00:00Z duration medium",
		"try again in 35 days":                    "2026-04-07T10:00:00Z duration medium",
		"try again in 36 days":                    "",
		"try again in 36 days or wait 5m":         "2026-03-03T10:05:00Z duration medium",
		"resets in 5 months":                      "",
		"resets in 5 mоnths":                      "", // a Cyrillic letter behind the unit
		"resets in 0s":                            "",
		"retried for 56.19 seconds":               "",
	} {
		f := Classify(said("anthropic", hit+text))
		want := strings.TrimSpace("quota T " + want)
		if want == "quota T" {
			want = "quota T medium"
		}
		if got := brief(f); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// Turned clocks: an hour that is not there, one that is there twice.
func TestTurnedClocks(t *testing.T) {
	for _, c := range []struct{ at, text, want string }{
		{"2026-03-28T22:00:00Z", "resets 2:30am (Europe/Berlin)", "2026-03-29T01:30:00Z"},
		{"2026-03-28T22:00:00Z", "resets 3am (Europe/Berlin)", "2026-03-29T01:00:00Z"},
		{"2026-10-24T22:00:00Z", "resets 2:30am (Europe/Berlin)", "2026-10-25T01:30:00Z"},
		{"2026-03-08T05:00:00Z", "resets 2:15am (America/New_York)", "2026-03-08T07:15:00Z"},
		{"2026-11-01T03:00:00Z", "resets 1am (America/New_York)", "2026-11-01T06:00:00Z"},
		{"2026-10-24T08:00:00Z", "resets Oct 25, 2:30am (Europe/Berlin)", "2026-10-25T01:30:00Z"},
		{"2026-12-30T08:00:00Z", "resets Jan 2 at 9am (UTC)", "2027-01-02T09:00:00Z"},
		{"2026-12-31T23:30:00Z", "resets 1am (Asia/Tokyo)", "2027-01-01T16:00:00Z"},
	} {
		e := said("anthropic", "You've hit your limit · "+c.text)
		var err error
		if e.At, err = time.Parse(time.RFC3339, c.at); err != nil {
			t.Fatal(err)
		}
		if got := Classify(e).ResetAt.Format(time.RFC3339); got != c.want {
			t.Errorf("%s, at %s: got %s, want %s", c.text, c.at, got, c.want)
		}
	}
}

// Times without a zone are unread where the host's is not known.
func TestNoHostZone(t *testing.T) {
	for text, want := range map[string]string{
		"resets 5pm": "", "resets Mar 5, 5pm": "", "resets 3/9": "", "until 2026-03-05 15:00:30": "",
		"resets 5pm (UTC)": "2026-03-03T17:00:00Z", "resets in 5m": "2026-03-03T10:05:00Z",
	} {
		e := said("anthropic", "You've hit your limit · "+text)
		e.HostZone = ""
		f := Classify(e)
		got := ""
		if !f.ResetAt.IsZero() {
			got = f.ResetAt.Format(time.RFC3339)
		}
		if got != want || f.Class != "quota" {
			t.Errorf("%s: got %q (%s), want %q", text, got, f.Class, want)
		}
	}
}

// What providers answer over HTTP, in spellings and values of every family.
func TestAnswers(t *testing.T) {
	const rate = `{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."}}`
	for name, c := range map[string]struct {
		e    Evidence
		want string
	}{
		"promotion begins after 300 s":    {answer("acme", 429, rate, "retry-after", "300"), "rate 2026-03-03T10:05:00Z retry_after high"},
		"and half a second later":         {answer("acme", 429, rate, "retry-after", "300.5"), "quota T 2026-03-03T10:05:00.5Z retry_after high"},
		"retry-after as a date":           {answer("acme", 429, rate, "retry-after", "Tue, 03 Mar 2026 10:00:30 GMT"), "rate 2026-03-03T10:00:30Z retry_after high"},
		"an exponent is no number":        {answer("acme", 429, rate, "retry-after", "3e1"), "rate high"},
		"nor is a sign":                   {answer("acme", 429, rate, "retry-after", "+30"), "rate high"},
		"milliseconds come first":         {answer("acme", 429, rate, "retry-after", "30", "retry-after-ms", "1500"), "rate 2026-03-03T10:00:01.5Z retry_after_ms high"},
		"35 days are believed":            {answer("acme", 429, rate, "retry-after", "3024000"), "quota T 2026-04-07T10:00:00Z retry_after high"},
		"a second more is not":            {answer("acme", 429, rate, "retry-after", "3024001"), "rate high"},
		"text is longer by 120 s: header": {answer("acme", 429, `{"error":{"code":"rate_limit_exceeded","message":"try again in 150s"}}`, "retry-after", "30"), "rate 2026-03-03T10:00:30Z retry_after high"},
		"by more: text":                   {answer("acme", 429, `{"error":{"code":"rate_limit_exceeded","message":"try again in 151s"}}`, "retry-after", "30"), "rate 2026-03-03T10:02:31Z duration medium"},
		"a bare clock is not longer":      {answer("acme", 429, `{"error":{"type":"usage_limit_reached","message":"resets 9pm"}}`, "retry-after", "30"), "quota T 2026-03-03T10:00:30Z retry_after high"},

		"unified: seven_day_opus": {answer("anthropic", 429, rate, "anthropic-ratelimit-unified-status", "rejected", "anthropic-ratelimit-unified-representative-claim", "seven_day_opus",
			"anthropic-ratelimit-unified-7d-reset", "1772938800"), "quota T 2026-03-08T03:00:00Z header_unified high model=opus limit=weekly"},
		"unified: both rejected, no word of its own": {answer("anthropic", 429, rate, "anthropic-ratelimit-unified-5h-status", "rejected", "anthropic-ratelimit-unified-5h-reset", "1772546400",
			"anthropic-ratelimit-unified-7d-status", "rejected", "anthropic-ratelimit-unified-7d-reset", "1772938800"), "quota T 2026-03-08T03:00:00Z header_unified high"},
		"dimensions: the latest that is used up": {answer("anthropic", 429, rate, "anthropic-ratelimit-requests-remaining", "0", "anthropic-ratelimit-requests-reset", "2026-03-03T10:00:20Z",
			"anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset", "2026-03-03T10:00:40Z",
			"anthropic-ratelimit-output-tokens-remaining", "7", "anthropic-ratelimit-output-tokens-reset", "2026-03-03T10:00:50Z"), "rate 2026-03-03T10:00:40Z rfc3339 high"},
		"openai: tokens used up": {answer("openai", 429, `{"error":{"code":"rate_limit_exceeded","message":"Limit"}}`, "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s"), "quota T 2026-03-03T10:06:00Z duration medium"},
		"codex: both windows": {answer("openai-codex", 429, `{"error":{"type":"usage_limit_reached"}}`, "X-Codex-Primary-Used-Percent", "100.0", "X-Codex-Primary-Window-Minutes", "300", "X-Codex-Primary-Reset-At", "1772546400",
			"X-Codex-Secondary-Used-Percent", "101", "X-Codex-Secondary-Window-Minutes", "10080", "X-Codex-Secondary-Reset-At", "1772938800"), "quota T 2026-03-08T03:00:00Z header_unified high limit=weekly"},
		"codex: a window of three hours": {answer("openai-codex", 429, `{"error":{"type":"usage_limit_reached"}}`, "X-Codex-Primary-Used-Percent", "100", "X-Codex-Primary-Window-Minutes", "180", "X-Codex-Primary-Reset-After-Seconds", "900"), "quota T 2026-03-03T10:15:00Z header_unified high limit=3 hour"},
		"epoch with a fraction":          {answer("openai-codex", 429, `{"error":{"type":"usage_limit_reached","resets_at":"1772546400.5"}}`), "quota T 2026-03-03T14:00:00.5Z body_epoch high"},
		"an epoch in exponents":          {answer("openai-codex", 429, `{"error":{"type":"usage_limit_reached","resets_at":1.7725464e9}}`), "quota T high"},
		"error in error":                 {answer("openai-codex", 429, `{"error":{"type":"x","error":{"type":"usage_limit_reached","resets_at":1772546400}}}`), "quota T 2026-03-03T14:00:00Z body_epoch high"},

		"three levels of JSON in messages": {answer("acme", 429, nested(3)), "quota T 2026-03-03T14:00:00Z body_epoch high"},
		"four are a text":                  {answer("acme", 429, nested(4)), "rate low"},
		"an array":                         {answer("google", 429, `[{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"12.5s"}]}}]`), "rate 2026-03-03T10:00:12.5Z body_relative high"},
		"its first object":                 {answer("google", 429, `[null,"x",{"error":{"status":"RESOURCE_EXHAUSTED"}}]`), "rate high"},
		"a byte order mark":                {answer("acme", 429, "\xef\xbb\xbf \n"+`{"error":{"type":"usage_limit_reached"}}`), "quota T high"},
		"a page":                           {answer("acme", 502, "\n<html>usage limit reached"), "network low"},
		"truncated":                        {answer("acme", 429, `{"error":{"type":"usage_limit_reached"`), "rate low"},
		"something behind it":              {answer("acme", 429, `{"error":{"type":"usage_limit_reached"}} x`), "rate low"},
		"too deep":                         {answer("acme", 429, strings.Repeat("[", 20000)+strings.Repeat("]", 20000)), "rate low"},
		"plain text":                       {answer("acme", 500, "upstream says: payment required"), "billing T medium"},
		"a megabyte is read":               {answer("acme", 429, `{"error":{"type":"usage_limit_reached","message":"`+strings.Repeat("a", 1<<20-60)+`"}}`), "quota T high"},
		"a body of more is opaque":         {answer("acme", 429, `{"error":{"type":"usage_limit_reached","message":"`+strings.Repeat("a", 1<<20)+`"}}`), "rate low"},
		"200 with an error string":         {answer("acme", 200, `{"error":"insufficient credits"}`), "billing T medium"},
		"200 with error_code":              {answer("huawei", 200, `{"error_code":"ModelArts.81101.429","error_msg":"x"}`), "rate high"},
		"200 with an error far inside":     {answer("acme", 200, `{"choices":[],"metadata":{"error":{"type":"usage_limit_reached"}}}`), "none high"},
		"200 whose error is null":          {answer("acme", 200, `{"error":null,"message":"usage limit reached"}`), "none high"},
		"200, the status inside":           {answer("acme", 200, `{"error":{"message":"x"},"status_code":503}`), "capacity low"},

		"zai: weekly and monthly":                       {answer("zhipuai", 500, `{"error":{"code":1321,"message":"[1321][Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-03-09 14:10:41]"}}`), "quota T 2026-03-09T06:10:41Z dated_text_zone medium"},
		"zai: only in brackets":                         {answer("zai", 200, `{"error":{"message":"[1113][Insufficient]"}}`), "billing T high"},
		"zai: 1301 is not in the table":                 {answer("zai", 400, `{"error":{"code":"1301","message":"x"}}`), "none high"},
		"zai: 1305":                                     {answer("zai-coding-plan", 429, `{"error":{"code":"1305","message":"x"}}`), "capacity high"},
		"its codes mean nothing elsewhere":              {answer("acme", 429, `{"error":{"code":"1308","message":"x"}}`), "rate low"},
		"alibaba: the free quota":                       {answer("alibaba", 429, `{"code":"Throttling.AllocationQuota","message":"Free allocated quota exceeded."}`), "billing T high"},
		"alibaba: an unpaid bill":                       {answer("alibaba", 400, `{"code":"Arrearage","message":"Access denied"}`), "billing T high"},
		"google: limit 0.5":                             {answer("google-vertex", 429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"limit: 0.5"}}`), "rate high"},
		"google: limit 0, and a model":                  {answer("google", 429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"limit: 0, model: x","details":[{"violations":[{"quotaDimensions":{"model":"gemini-3"}}]}]}}`), "billing T medium model=gemini-3"},
		"google: a daily quota is the second violation": {answer("google", 429, `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"RequestsPerMinute"},{"quotaId":"RequestsPerDay"}]}]}}`), "quota T high limit=daily"},
		"google: exceeded your current quota":           {answer("google", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details."}}`), "rate medium"},
		"others: it is money":                           {answer("openai", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details."}}`), "billing T medium"},
		"cloudcode: capacity":                           {answer("google-cloudcode", 503, `{"error":{"details":[{"reason":"MODEL_CAPACITY_EXCEEDED","metadata":{"model":"gemini-3"}}]}}`), "capacity high model=gemini-3"},
		"openrouter: lower-case headers inside":         {answer("openrouter", 429, `{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429,"metadata":{"headers":{"x-ratelimit-reset":1772582400000}}}}`), "quota T 2026-03-04T00:00:00Z body_epoch high limit=daily"},
		"openrouter: the operator's balance":            {answer("openrouter", 402, `{"error":{"message":"x"},"metadata":{"raw":"Insufficient  BALANCE"}}`), "capacity medium"},
		"copilot: weekly, in the text only":             {answer("github-copilot", 403, `{"message":"error user_weekly_rate_limited"}`), "quota T medium limit=weekly"},
		"amazon: a namespace":                           {answer("amazon-bedrock", 400, `{"__type":"com.amazon.coral#ThrottlingException","message":"x"}`), "rate high"},
		"amazon: the header":                            {answer("amazon-bedrock", 400, `{"message":"x"}`, "x-amzn-ErrorType", "ThrottlingException:http://internal"), "rate high"},
		"azure: the status as code":                     {answer("azure", 400, `{"error":{"code":"429","message":"x"}}`), "rate high"},
		"elsewhere it is no code":                       {answer("openai", 400, `{"error":{"code":"429","message":"x"}}`), "none high"},
		"mistral":                                       {answer("mistral", 429, `{"type":"x","code":3505}`), "capacity high"},
		"xiaomi":                                        {answer("xiaomi", 402, `{"error":{"message":"insufficient account funds, retry after 5s"}}`), "rate 2026-03-03T10:00:05Z duration medium"},
		"groq: thousands":                               {answer("groq", 413, `{"error":{"code":"rate_limit_exceeded","message":"Request too big on TPM: Limit 8,000, Requested 9,001"}}`), "context T high"},
		"groq: it fits":                                 {answer("groq", 429, `{"error":{"code":"rate_limit_exceeded","message":"on TPM: Limit 8,000, Used 7000, Requested 900"}}`), "rate high limit=minute"},
		"groq: the word again":                          {answer("groq", 413, `{"error":{"code":"rate_limit_exceeded","message":"on TPM: Limit 8000, Requested 9001, reduce the requested size"}}`), "context T high"},
		"a message that is a list":                      {answer("google", 429, `{"error":{"message":"[{\"error\":{\"status\":\"RESOURCE_EXHAUSTED\",\"message\":\"x\"}}]"}}`), "rate high"},
		"a list that is none":                           {answer("zai", 429, `{"error":{"message":"[1310][Weekly/Monthly Limit Exhausted]"}}`), "quota T high"},
		"weekly/monthly":                                {answer("acme", 429, `{"error":{"message":"Weekly/monthly limit reached, wait for 2 hours"}}`), "quota T 2026-03-03T12:00:00Z duration medium"},
		"a model with a dot":                            {answer("openai", 404, `{"error":{"message":"The model gpt-4.1 does not exist"}}`), "model T medium"},
		"a file is no model":                            {answer("openai", 404, `{"error":{"message":"The model is fine. File not found"}}`), "none high"},
		"403 for a weekly limit":                        {answer("kimi-for-coding", 403, `{"error":{"message":"You've reached your weekly usage limit."}}`), "quota T medium limit=weekly"},
		"500 for a balance":                             {answer("minimax", 500, `{"error":{"message":"insufficient balance (1008)"}}`), "billing T medium"},
		"418":                                           {answer("acme", 418, ""), "none high"},
		"524":                                           {answer("acme", 524, ""), "network low"},
		"529":                                           {answer("acme", 529, ""), "capacity low"},
	} {
		if got := brief(Classify(c.e)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// nested is an error document inside n levels of messages.
func nested(n int) string {
	doc := `{"error":{"type":"usage_limit_reached","resets_at":1772546400}}`
	for range n {
		doc = fmt.Sprintf(`{"error":{"message":%q}}`, doc)
	}
	return doc
}

// What agents and streams report.
func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		e    Evidence
		want string
	}{
		"a typed error in a stream":      {event("anthropic", SSE, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`), "capacity high"},
		"the envelope's status":          {event("acme", SSE, `{"type":"error","error":{"message":"x"},"status_code":529}`), "capacity low"},
		"the envelope's headers":         {event("acme", SSE, `{"error":{"code":"slow_down"},"headers":{"retry-after":"12"}}`), "rate 2026-03-03T10:00:12Z retry_after high"},
		"a code that is a status":        {event("openrouter", SSE, `{"error":{"code":502,"message":"Provider returned error"}}`), "network low"},
		"content is no error":            {event("openai", SSE, `{"choices":[{"delta":{"content":"usage limit reached"}}]}`), "none high"},
		"an array of nothing":            {event("openai", SSE, `[1,2]`), "none high"},
		"null":                           {event("openai", ACPError, `null`), "none high"},
		"ACP: the status in its data":    {event("acme", ACPError, `{"code":-32603,"message":"x","data":{"httpStatusCode":429}}`), "rate low"},
		"ACP asks to log in":             {event("acme", ACPError, `{"code":-32000,"message":"Internal error"}`), "auth T high"},
		"ACP's code is the status":       {event("acme", ACPError, `{"code":402,"message":"x"}`), "billing T low"},
		"ACP names the model":            {event("acme", ACPError, `{"code":-32603,"message":"Internal error","data":{"details":"model not available","modelId":"m-1"}}`), "model T medium model=m-1"},
		"ACP: only the details speak":    {event("acme", ACPError, `{"code":-32603,"message":"Internal error","data":{"details":"terminated"}}`), "network medium"},
		"ACP: a whole response":          {event("acme", ACPError, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x","data":{"codexErrorInfo":"usageLimitExceeded"}}}`), "quota T high"},
		"ACP: the clock ends a message":  {event("openai-codex", ACPError, `{"message":"try again at 5:37 PM","data":{"details":"more","codex_error_info":"usage_limit_exceeded"}}`), "quota T 2026-03-03T16:37:00Z clock_local low"},
		"cancelled":                      {event("acme", ACPError, `{"code":-32800,"message":"usage limit reached"}`), "none high"},
		"cancelled in words":             {event("acme", ACPError, `{"code":-1,"message":"Operation canceled"}`), "none high"},
		"a rejected event":               {event("anthropic", SDKEvent, `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":"1772546400","rateLimitType":"seven_day_sonnet"}}`), "quota T 2026-03-03T14:00:00Z body_epoch high model=sonnet limit=weekly"},
		"a warning event":                {event("anthropic", SDKEvent, `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1772546400}}`), "none high"},
		"a failed result":                {event("anthropic", SDKEvent, `{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":""}`), "capacity low"},
		"a successful one":               {event("anthropic", SDKEvent, `{"type":"result","is_error":"true","result":"usage limit reached"}`), "none high"},
		"it tries again":                 {event("openai-codex", SDKEvent, `{"method":"error","params":{"error":{"message":"x","codexErrorInfo":"usageLimitExceeded"},"willRetry":true}}`), "quota high"},
		"the later exhausted window":     {event("openai-codex", SDKEvent, `{"method":"error","params":{"error":{"codexErrorInfo":"usageLimitExceeded"}},"rateLimits":{"primary":{"usedPercent":100,"windowDurationMins":60,"resetsAt":1772546400},"secondary":{"usedPercent":100,"windowDurationMins":1440,"resetsAt":1772582400}}}`), "quota T 2026-03-04T00:00:00Z body_epoch high limit=daily"},
		"a snapshot":                     {event("openai-codex", SDKEvent, `{"method":"account/rateLimits/updated","params":{"rateLimits":{"primary":{"usedPercent":100}}}}`), "none high"},
		"an unknown event":               {event("openai-codex", SDKEvent, `{"type":"error","message":"usage limit reached"}`), "none high"},
		"a failure of a session":         {event("anthropic", ACPUpdate, `{"_meta":{"jetbrains":{"air":{"sessionFailure":{"category":"limit","severity":"error","title":"x"}}}}}`), "quota T low"},
		"a warning of a session":         {event("anthropic", ACPUpdate, `{"_meta":{"jetbrains":{"air":{"sessionFailure":{"category":"limit","severity":"warning","title":"x"}}}}}`), "rate low"},
		"a note of a session":            {event("anthropic", ACPUpdate, `{"_meta":{"jetbrains":{"air":{"sessionFailure":{"category":"limit","severity":"info","title":"x"}}}}}`), "none high"},
		"access":                         {event("anthropic", ACPUpdate, `{"_meta":{"jetbrains":{"air":{"sessionFailure":{"category":"access","severity":"error","title":"x"}}}}}`), "auth T low"},
		"a quoted limit in a tool":       {event("anthropic", ACPUpdate, `{"sessionUpdate":"tool_call_update","content":[{"text":"usage limit reached"}]}`), "none high"},
		"an untrusted text":              {Evidence{Channel: Text, At: at0, Text: "usage limit reached"}, "none high"},
		"an unknown channel":             {Evidence{Channel: "mail", At: at0, Text: "usage limit reached", Trusted: true}, "none high"},
		"our own abort":                  {Evidence{Channel: Text, At: at0, Text: "connection reset by peer", Trusted: true, Bind: Bind{Aborted: true}}, "none high"},
		"a wall is one all the same":     {Evidence{Channel: Text, At: at0, Text: "usage limit reached", Trusted: true, Bind: Bind{Aborted: true}}, "quota T medium"},
		"a JSON text is not parsed":      {said("acme", `{"error":{"type":"usage_limit_reached"}}`), "none high"},
		"an hour in the middle":          {said("acme", "Session  limit\n reached · retry in 51 hours"), "quota T 2026-03-05T13:00:00Z duration medium limit=session"},
		"a seven-day quota":              {said("acme", "usage limit reached for your 7-day window"), "quota T medium limit=weekly"},
		"the limit's hours":              {said("acme", "You have exceeded the 3-hour usage quota"), "quota T medium limit=3 hour"},
		"a model at the end of sentence": {said("acme", "Usage limit reached for gpt-5.1-mini. Resets in 5m"), "quota T 2026-03-03T10:05:00Z duration medium model=gpt-5.1-mini"},
		"no model":                       {said("acme", "Usage limit reached for today. Resets in 5m"), "quota T 2026-03-03T10:05:00Z duration medium"},
		"a bare clock of a weekly wall":  {said("acme", "Monthly limit reached · resets 9pm (UTC)"), "quota T 2026-03-03T21:00:00Z clock_zone low limit=monthly"},
	} {
		if got := brief(Classify(c.e)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// A record of an agent's stderr is bound to session and prompt.
func TestRecords(t *testing.T) {
	line := func(change ...string) string {
		s := `timestamp=2026-03-03T09:59:00Z level=ERROR message="stream error" providerID=openai modelID=m session.id=ses_a small=false agent=build error.error="AI_APICallError: Usage limit reached. Resets in 10m"`
		return strings.NewReplacer(change...).Replace(s)
	}
	const good = "quota T 2026-03-03T10:09:00Z duration medium model=m"
	for name, c := range map[string]struct{ line, want string }{
		"as it is":            {line(), good},
		"a process record":    {line(`"stream error"`, "process"), good},
		"a dotted message":    {line("error.error=", "error.error.message="), good},
		"a line end":          {line() + "\r\n", good},
		"another level":       {line("ERROR", "WARN"), "none high"},
		"another message":     {line("stream error", "retrying"), "none high"},
		"the small model":     {line("small=false", "small=true"), "none high"},
		"the title":           {line("agent=build", "agent=title"), "none high"},
		"another session":     {line("ses_a", "ses_b"), "none high"},
		"no session at all":   {line("session.id=ses_a ", ""), "none high"},
		"before the prompt":   {line("09:59", "09:29"), "none high"},
		"no time":             {line("timestamp=2026-03-03T09:59:00Z", "timestamp=now"), "none high"},
		"a key said twice":    {line("small=false", "small=false small=false"), "none high"},
		"a broken quote":      {strings.TrimSuffix(line(), `"`), "none high"},
		"a quote in the bare": {line("agent=build", `agent=b"uild`), "none high"},
		"too long":            {line() + " x=" + strings.Repeat("a", 1<<20), "none high"},
	} {
		e := Evidence{Provider: "acme", Agent: "opencode", Channel: Stderr, At: at0, Text: c.line,
			Bind: Bind{SessionID: "ses_a", PromptStarted: at0.Add(-10 * time.Minute)}}
		if got := brief(Classify(e)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if e.Agent = "aider"; Classify(e).Class != "none" {
			t.Errorf("%s: believed of an agent without a grammar", name)
		}
	}
	e := Evidence{Agent: "antigravity", Channel: Stderr, At: at0, Text: "Quota.\nAGY_ERROR {\"status\":\"RESOURCE_EXHAUSTED\"}\nResets in 1h"}
	if got := brief(Classify(e)); got != "quota T 2026-03-03T11:00:00Z duration medium" {
		t.Error(got)
	}
}

// Long texts are read at their ends, wherever the repetition is.
func TestLongTexts(t *testing.T) {
	fill := strings.Repeat("0123456789 ", 1<<18) // 2.75 MB
	for name, text := range map[string]string{
		"at the start": "Usage limit reached. Resets in 1h. " + fill,
		"at the end":   fill + "Usage limit reached. Resets in 1h.",
		"at both":      "Usage limit reached. " + fill + "Resets in 1h.",
	} {
		if got := brief(Classify(said("acme", text))); got != "quota T 2026-03-03T11:00:00Z duration medium" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestReadCases(t *testing.T) {
	for in, want := range map[string]string{
		``:                                     "no case",
		`{`:                                    "not JSON",
		`hello`:                                "not JSON",
		`[]`:                                   "no case",
		`[1]`:                                  "case 1: a case is an object",
		`{"id":"x"}`:                           "channel",
		`{"channel":"mail"}`:                   "channel",
		`{"channel":"http"}`:                   "http is missing",
		`{"channel":"text"}`:                   "text is missing",
		`{"channel":"sse"}`:                    "event is missing",
		`{"channel":"text","text":"a","at":5}`: "case 1",
		`{"channel":"http","http":{"status":1,"body_b64":"?"}}`:                                                     "base64",
		`[{"channel":"text","text":"a"},{"channel":"text","text_gen":{"repeat":"ab","count":4000000000000000000}}]`: "case 2: count",
	} {
		if _, err := ReadCases(strings.NewReader(in), at0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
	cases, err := ReadCases(strings.NewReader(`{"channel":"text","text":"a"} [{"id":"b","channel":"sse","event":null}]`), at0)
	if err != nil || len(cases) != 2 || !cases[0].Evidence.At.Equal(at0) || cases[1].ID != "b" {
		t.Errorf("%+v %v", cases, err)
	}
}

// The cheap tests before the expressions hide nothing from them.
func FuzzSanitize(f *testing.F) {
	for _, s := range []string{"key: abcdefgh", "Bearer abcdefghij", "sk-abcdefghijklmnop", "a.b@c.de", "/home/ann", `C:\Users\bob`, "org-abcdef12",
		"550e8400-e29b-41d4-a716-446655440000", strings.Repeat("A", 41), "https://u:p@x.y/z?a=b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := s
		if !flat(want) {
			want = oneLine(want)
		}
		for _, h := range hidden {
			want = h.in(want)
		}
		if got := Sanitize(s); len(s) < MaxMessage && len(want) < MaxMessage && got != want {
			t.Fatalf("%q: got %q, all expressions give %q", s, got, want)
		}
	})
}
