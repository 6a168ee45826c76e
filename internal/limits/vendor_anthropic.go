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
// word, else the window that its claim names, else the latest rejected one.
func unifiedReset(h http.Header, out *candidates) {
	if rejected(h, "Status") {
		if at, ok := epoch(h.Get(unifiedPrefix + "Reset")); ok {
			out.add(3, at, true, sourceUnified)
			return
		}
		if w := claimWindow(h.Get(unifiedPrefix + "Representative-Claim")); w != "" {
			if at, ok := epoch(h.Get(unifiedPrefix + w + "-Reset")); ok {
				out.add(3, at, true, sourceUnified)
				return
			}
		}
	}
	var last time.Time
	for _, w := range []string{"5h", "7d"} {
		if at, ok := epoch(h.Get(unifiedPrefix + w + "-Reset")); ok && rejected(h, w+"-Status") && at.After(last) {
			last = at
		}
	}
	out.add(3, last, !last.IsZero(), sourceUnified)
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
