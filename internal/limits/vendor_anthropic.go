package limits

import (
	"net/http"
	"strings"
	"time"
)

// Anthropic's account windows come as headers "anthropic-ratelimit-unified-*"
// (in Go's canonical spelling here) and as rate_limit_event of its SDK.
const unifiedPrefix = "Anthropic-Ratelimit-Unified-"

func rejected(h http.Header, name string) bool {
	return strings.EqualFold(strings.TrimSpace(h.Get(unifiedPrefix+name)), "rejected")
}

// unifiedReset reads when the rejected window opens again: the account's own
// word, else the window that its claim names, else the latest rejected one. A
// time that cannot be believed is as good as none, and the next is read.
func unifiedReset(h http.Header, base time.Time, out *candidates) {
	read := func(name string) (time.Time, bool) {
		at, ok := epoch(h.Get(unifiedPrefix + name))
		return at, ok && believed(at, base)
	}
	if rejected(h, "Status") {
		names := []string{"Reset"}
		if w := claimWindow(h.Get(unifiedPrefix + "Representative-Claim")); w != "" {
			names = append(names, w+"-Reset")
		}
		for _, name := range names {
			if at, ok := read(name); ok {
				out.add(3, at, true, sourceUnified)
				return
			}
		}
	}
	for _, w := range []string{"5h", "7d"} {
		if rejected(h, w+"-Status") {
			at, ok := read(w + "-Reset")
			out.add(3, at, ok, sourceUnified)
		}
	}
}

func claimWindow(claim string) string {
	switch {
	case claim == "five_hour":
		return "5h"
	case strings.HasPrefix(claim, "seven_day"):
		return "7d"
	}
	return ""
}

// claim names the window and model family of a claim ("five_hour",
// "seven_day_opus").
func (x *facts) claim(c string) {
	switch {
	case c == "five_hour":
		x.window = "5 hour"
	case strings.HasPrefix(c, "seven_day"):
		x.window = "weekly"
	}
	if family, ok := strings.CutPrefix(c, "seven_day_"); ok {
		x.named(family)
	}
}

// rateLimitEvent reads the SDK's event; only a rejected one is evidence.
func (x *facts) rateLimitEvent(d map[string]any) bool {
	info := object(d, "rate_limit_info")
	if text(info, "status") != "rejected" {
		return false
	}
	x.rejectedEvent = true
	x.docs = append(x.docs, info)
	x.claim(text(info, "rateLimitType"))
	return true
}

// sdkResult reads the SDK's result; only a failed one is evidence, and its
// subtype says "success" all the same.
func (x *facts) sdkResult(d map[string]any) bool {
	if failed, _ := d["is_error"].(bool); !failed {
		return false
	}
	if n, ok := positive(d["api_error_status"]); ok {
		x.status = int(n)
	}
	x.code(d["terminal_reason"])
	x.speak(text(d, "result"), 0)
	return true
}
