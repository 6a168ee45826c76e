package limits

import (
	"strconv"
	"strings"

	"rouse"
)

// verdict is one rule's answer.
type verdict struct {
	class rouse.Class
	conf  string
	why   string
	limit string // the window that the rule itself names
}

// classOf is the order of the rules: the first that matches decides.
// Structure comes first, then words, then the status alone.
func classOf(x *facts) (verdict, bool) {
	for _, rule := range [...]func(*facts) (verdict, bool){
		operatorBalance, byVendor, byCode, byFirmWords, byRateCode, bySoftWords, byCategory, byStatus,
	} {
		if v, ok := rule(x); ok {
			return v, true
		}
	}
	return verdict{}, false
}

func operatorBalance(x *facts) (verdict, bool) {
	return verdict{class: rouse.ClassCapacity, conf: "medium", why: "the operator's own account is empty"},
		x.raw != "" && strings.Contains(x.raw, "insufficient balance")
}

// meaning of a code with any provider. Of several codes the one with the
// lowest rank decides.
type meaning struct {
	rank  int
	class rouse.Class
}

const (
	rankBilling = 3 + iota
	rankQuota
	rankCapacity
	rankContext
	rankAuth
	rankModel
)

var codes = map[string]meaning{
	"insufficient_quota":                {rankBilling, rouse.ClassBilling},
	"credit_balance_exhausted":          {rankBilling, rouse.ClassBilling},
	"organization_spend_limit_exceeded": {rankBilling, rouse.ClassBilling},
	"project_spend_limit_exceeded":      {rankBilling, rouse.ClassBilling},
	"organization_usage_limit_exceeded": {rankBilling, rouse.ClassBilling},
	"usage_not_included":                {rankBilling, rouse.ClassBilling},
	"usageNotIncluded":                  {rankBilling, rouse.ClassBilling},
	"UsageNotIncluded":                  {rankBilling, rouse.ClassBilling},
	"enforced_spend_limit_reached":      {rankBilling, rouse.ClassBilling},
	"exceeded_current_quota_error":      {rankBilling, rouse.ClassBilling},
	"INSUFFICIENT_G1_CREDITS_BALANCE":   {rankBilling, rouse.ClassBilling},
	"CreditsError":                      {rankBilling, rouse.ClassBilling},
	"MonthlyLimitError":                 {rankBilling, rouse.ClassBilling},
	"UserLimitError":                    {rankBilling, rouse.ClassBilling},

	"usage_limit_reached":  {rankQuota, rouse.ClassQuota},
	"usageLimitReached":    {rankQuota, rouse.ClassQuota},
	"UsageLimitReached":    {rankQuota, rouse.ClassQuota},
	"usage_limit_exceeded": {rankQuota, rouse.ClassQuota},
	"usageLimitExceeded":   {rankQuota, rouse.ClassQuota},
	"UsageLimitExceeded":   {rankQuota, rouse.ClassQuota},
	"GoUsageLimitError":    {rankQuota, rouse.ClassQuota},
	"FreeUsageLimitError":  {rankQuota, rouse.ClassQuota},
	"BlackUsageLimitError": {rankQuota, rouse.ClassQuota},
	"QUOTA_EXHAUSTED":      {rankQuota, rouse.ClassQuota},
	"AccountQuotaExceeded": {rankQuota, rouse.ClassQuota},

	"overloaded_error":         {rankCapacity, rouse.ClassCapacity},
	"engine_overloaded_error":  {rankCapacity, rouse.ClassCapacity},
	"MODEL_CAPACITY_EXHAUSTED": {rankCapacity, rouse.ClassCapacity},
	"MODEL_CAPACITY_EXCEEDED":  {rankCapacity, rouse.ClassCapacity},

	"context_length_exceeded": {rankContext, rouse.ClassContext},
	"prompt_too_long":         {rankContext, rouse.ClassContext},

	"AuthError":            {rankAuth, rouse.ClassAuth},
	"authentication_error": {rankAuth, rouse.ClassAuth},
	"invalid_api_key":      {rankAuth, rouse.ClassAuth},
	"UNAUTHENTICATED":      {rankAuth, rouse.ClassAuth},
	"VALIDATION_REQUIRED":  {rankAuth, rouse.ClassAuth},

	"ModelError":      {rankModel, rouse.ClassModel},
	"model_not_found": {rankModel, rouse.ClassModel},
}

// byCode decides by what is structured.
func byCode(x *facts) (verdict, bool) {
	best, why := meaning{}, ""
	better := func(m meaning, because, code string) {
		if m.rank > 0 && (best.rank == 0 || m.rank < best.rank) {
			best, why = m, because+code
		}
	}
	for _, c := range x.codes {
		better(codes[c], "code ", c)
	}
	switch {
	case x.rejectedEvent:
		better(meaning{rankQuota, rouse.ClassQuota}, "a rejected rate_limit_event", "")
	case x.agyError && x.has("RESOURCE_EXHAUSTED"):
		better(meaning{rankQuota, rouse.ClassQuota}, "an AGY_ERROR record with RESOURCE_EXHAUSTED", "")
	case x.status == 429 && len(x.headers) > 0 && rejected(x.headers, "Status"):
		better(meaning{rankQuota, rouse.ClassQuota}, "the account's unified limit is rejected", "")
	}
	if neverFits(x.text) {
		better(meaning{rankContext, rouse.ClassContext}, "the request is larger than the limit", "")
	}
	if x.channel == ACPError && x.has("-32000") {
		better(meaning{rankAuth, rouse.ClassAuth}, "the agent asks to log in", "")
	}
	return verdict{class: best.class, conf: "high", why: why}, best.rank > 0
}

// rateCodes come after the words: "rate limit" is also said of what no wait
// mends.
var rateCodes = map[string]bool{
	"rate_limit_exceeded": true, "slow_down": true, "rate_limit_error": true, "rate_limit": true, "rate_limit_reached_error": true,
	"RATE_LIMIT_EXCEEDED": true, "RESOURCE_EXHAUSTED": true, "ThrottlingException": true, "RateLimitError": true,
}

func byRateCode(x *facts) (verdict, bool) {
	for _, c := range x.codes {
		if rateCodes[c] || c == azureCode429 && x.provider == "azure" {
			return verdict{class: rouse.ClassRate, conf: "high", why: "code " + c}, true
		}
	}
	return verdict{}, false
}

// neverFits finds "Limit 8000, Requested 9001": waiting does not make the
// request smaller.
func neverFits(text string) bool {
	at, want := 0, 0
	each(text, "requested", func(end int) bool {
		if n, ok := count(text[end:]); ok {
			at, want = end, n
		}
		return false
	})
	found, limit := false, 0
	each(text[:at], "limit", func(end int) bool {
		limit, found = count(text[end:])
		return found
	})
	return found && want > limit
}

// count reads " 8,000" or ": 8000"; at most 15 digits.
func count(s string) (n int, ok bool) {
	s = strings.TrimPrefix(s, ":")
	s, ok = strings.CutPrefix(s, " ")
	if !ok || s == "" || !isDigit(s[0]) {
		return 0, false
	}
	used := 0
	for i := 0; i < len(s); i++ {
		switch {
		case isDigit(s[i]):
			n = n*10 + int(s[i]-'0')
			if used++; used > 15 {
				return 0, false
			}
		case s[i] == ',' && i+3 < len(s) && digits(s[i+1:]) >= 3: // thousands
		default:
			return n, true
		}
	}
	return n, true
}

// byCategory reads the category of a typed session failure (claude-agent-acp
// and codex-acp 2.x, opted in).
func byCategory(x *facts) (verdict, bool) {
	var class rouse.Class
	switch x.category {
	case "":
		return verdict{}, false
	case "limit:error":
		class = rouse.ClassQuota
	case "limit:warning":
		class = rouse.ClassRate
	default:
		category, _, _ := strings.Cut(x.category, ":")
		class = map[string]rouse.Class{"service": rouse.ClassCapacity, "connection": rouse.ClassNetwork, "access": rouse.ClassAuth}[category]
	}
	return verdict{class: class, conf: "low", why: "category " + rouse.Clip(x.category, 60)}, class != ""
}

// byStatus is the last resort.
func byStatus(x *facts) (verdict, bool) {
	class := rouse.Class("")
	switch s := x.status; {
	case s == 429:
		class = rouse.ClassRate
	case s == 402:
		class = rouse.ClassBilling
	case s == 401, s == 403:
		class = rouse.ClassAuth
	case s == 413:
		class = rouse.ClassContext
	case s == 500, s == 503, s == 529:
		class = rouse.ClassCapacity
	case s == 408, s == 502, s == 504, s >= 520 && s <= 526:
		class = rouse.ClassNetwork
	}
	return verdict{class: class, conf: "low", why: "status " + strconv.Itoa(x.status)}, class != ""
}
