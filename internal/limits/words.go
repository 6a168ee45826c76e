package limits

import (
	"strings"

	"rouse"
)

// mark is a phrase that decides a class: its literal has to occur (lower
// case), and check, where there is one, looks at what stands around it.
type mark struct {
	class   rouse.Class
	literal string
	check   func(before, after string) bool
}

// A phrase may have to do with what stands around it, in the same message.
var (
	firm = []mark{
		{rouse.ClassBilling, "credit balance is too low", nil},
		{rouse.ClassBilling, "insufficient ", starts("balance", "credits", "funds", "account funds")},
		{rouse.ClassBilling, "requires more credits", nil},
		{rouse.ClassBilling, "used all available credits", nil},
		{rouse.ClassBilling, "run out of credits", nil},
		{rouse.ClassBilling, "out of usage credits", nil},
		{rouse.ClassBilling, "spend limit", nil},
		{rouse.ClassBilling, "spending limit", nil},
		{rouse.ClassBilling, "enforced_spend_limit", nil},
		{rouse.ClassBilling, "payment required", nil},
		{rouse.ClassBilling, exceededQuota, func(_, after string) bool { return strings.Contains(after, "billing") }},

		{rouse.ClassQuota, "usage limit ", starts("reached", "exceeded", "has been reached", "has been exceeded")},
		{rouse.ClassQuota, "hit your ", limitFollows},
		{rouse.ClassQuota, "reached your ", limitFollows},
		{rouse.ClassQuota, " limit reached", windowBefore},
		{rouse.ClassQuota, "weekly/monthly limit exhausted", nil},
		{rouse.ClassQuota, "specified api usage limits", nil},
		{rouse.ClassQuota, "out of extra usage", nil},
		{rouse.ClassQuota, "your limit will reset", nil},
		{rouse.ClassQuota, "exhausted your ", starts("daily quota", "weekly quota", "monthly quota")},
		{rouse.ClassQuota, "free daily quota", nil},
		{rouse.ClassQuota, "individual quota reached", nil},
		{rouse.ClassQuota, "reached for this month", nil},
		{rouse.ClassQuota, "exceeded the ", func(_, after string) bool { return afterWords(after, 3, "usage quota") }},

		{rouse.ClassContext, "prompt is too long", nil},
		{rouse.ClassContext, "context window", nil},
		{rouse.ClassContext, "context length", nil},
		{rouse.ClassContext, "request too large", nil},

		{rouse.ClassModel, "not found", modelBefore},
		{rouse.ClassModel, "does not exist", modelBefore},
		{rouse.ClassModel, "not supported", modelBefore},
		{rouse.ClassModel, "not available", modelBefore},

		{rouse.ClassAuth, "incorrect api key", nil},
		{rouse.ClassAuth, "invalid api key", nil},
		{rouse.ClassAuth, "api key not valid", nil},
		{rouse.ClassAuth, "authentication required", nil},
		{rouse.ClassAuth, "authentication failed", nil},
		{rouse.ClassAuth, "unauthorized", func(before, after string) bool {
			return (before == "" || !isWord(before[len(before)-1])) && (after == "" || !isWord(after[0]))
		}},
		{rouse.ClassAuth, "access paused", nil},
	}
	soft = []mark{
		{rouse.ClassCapacity, "overloaded", nil},
		{rouse.ClassCapacity, "high demand", nil},
		{rouse.ClassCapacity, "at capacity", nil},
		{rouse.ClassCapacity, "no capacity", nil},
		{rouse.ClassCapacity, "internal server error", nil},

		{rouse.ClassRate, "rate limit", nil},
		{rouse.ClassRate, "too many requests", nil},
		{rouse.ClassRate, "too many tokens", nil},
		{rouse.ClassRate, "limiting requests", nil},
		{rouse.ClassRate, "request rejected (429)", nil},
		{rouse.ClassRate, "last status: 429", nil},
		{rouse.ClassRate, "per minute limit exceeded", nil},
		{rouse.ClassRate, "quota exceeded for", nil},

		{rouse.ClassNetwork, "connection ", starts("error", "refused", "reset", "closed")},
		{rouse.ClassNetwork, "cannot connect", nil},
		{rouse.ClassNetwork, "could not connect", nil},
		{rouse.ClassNetwork, "unable to connect", nil},
		{rouse.ClassNetwork, "stream disconnected", nil},
		{rouse.ClassNetwork, "unexpected eof", nil},
		{rouse.ClassNetwork, "socket connection", nil},
	}
)

const exceededQuota = "exceeded your current quota"

// starts is a check: one of the words follows.
func starts(words ...string) func(before, after string) bool {
	return func(_, after string) bool {
		for _, w := range words {
			if strings.HasPrefix(after, w) {
				return true
			}
		}
		return false
	}
}

// limitFollows: "your (at most three words) limit".
func limitFollows(_, after string) bool { return afterWords(after, 3, "limit") }

// windowBefore: a window and at most three words stand before " limit
// reached", in one sentence: "5-hour usage limit reached".
func windowBefore(before, _ string) bool {
	for range 4 {
		i := strings.LastIndexByte(before, ' ')
		w := before[i+1:]
		for _, window := range [...]string{"session", "hourly", "daily", "weekly", "monthly"} {
			if strings.HasSuffix(w, window) { // "weekly/monthly" too
				return true
			}
		}
		if n, ok := strings.CutSuffix(w, "-hour"); ok && n != "" && isDigit(n[len(n)-1]) {
			return true
		}
		if i < 0 || strings.Contains(w, ".") {
			return false
		}
		before = before[:i]
	}
	return false
}

// modelBefore: the sentence speaks of a model. A dot inside a name ends none.
func modelBefore(before, _ string) bool {
	if i := strings.LastIndex(before, ". "); i >= 0 {
		before = before[i:]
	}
	return strings.Contains(before, "model")
}

// around is how far from a phrase its check may look.
const around = 400

// find looks for the phrase; hit is what was found of it.
func (m *mark) find(text string) (hit string, found bool) {
	if m.check == nil {
		return m.literal, strings.Contains(text, m.literal)
	}
	found = each(text, m.literal, func(end int) bool {
		start := end - len(m.literal)
		before, after := text[max(0, start-around):start], text[end:min(len(text), end+around)]
		if i := strings.LastIndexByte(before, '\n'); i >= 0 {
			before = before[i+1:]
		}
		if i := strings.IndexByte(after, '\n'); i >= 0 {
			after = after[:i]
		}
		return m.check(before, after)
	})
	return strings.TrimSpace(m.literal), found
}

func byWords(x *facts, list []mark, skip string) (verdict, bool) {
	if x.text == "" {
		return verdict{}, false
	}
	for i := range list {
		m := &list[i]
		if m.literal == skip {
			continue
		}
		if hit, ok := m.find(x.text); ok {
			return verdict{class: m.class, conf: "medium", why: "the message says \"" + hit + "\""}, true
		}
	}
	return verdict{}, false
}

// byFirmWords comes before the rate codes: an envelope's "rate limit" does not
// outweigh a sentence about money, a window, a context, a model or a key.
func byFirmWords(x *facts) (verdict, bool) {
	skip := ""
	if rowsOf(x.provider) != nil && &rowsOf(x.provider)[0] == &googleRows[0] { // said there of rates as well
		skip = exceededQuota
	}
	return byWords(x, firm, skip)
}

// bySoftWords comes after the rate codes.
func bySoftWords(x *facts) (verdict, bool) {
	if v, ok := byWords(x, soft, ""); ok {
		return v, ok
	}
	for m := range strings.SplitSeq(x.plain, "\n") {
		if alone(m, "terminated") {
			return verdict{class: rouse.ClassNetwork, conf: "medium", why: "the message says \"terminated\" and nothing else"}, true
		}
	}
	if strings.HasPrefix(x.provider, "google") && strings.Contains(x.text, exceededQuota) {
		return verdict{class: rouse.ClassRate, conf: "medium", why: "the message says \"" + exceededQuota + "\""}, true
	}
	return verdict{}, false
}
