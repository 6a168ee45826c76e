package limits

import (
	"regexp"
	"strconv"
	"strings"

	"rouse"
)

// verdict is one row's answer.
type verdict struct {
	class rouse.Class
	conf  string
	why   string
}

// classOf is the table of classes: the first rule that matches decides.
func classOf(x *facts) (rouse.Class, string, string) {
	for _, rule := range []func(*facts) (verdict, bool){
		operatorBalance, providerCodes, billingCodes, quotaCodes, capacityCodes, neverFits, authCodes,
		plainText, rateCodes, softText, byCategory, byStatus,
	} {
		if v, ok := rule(x); ok {
			return v.class, v.conf, v.why
		}
	}
	return rouse.ClassNone, "high", ""
}

func operatorBalance(x *facts) (verdict, bool) {
	return verdict{rouse.ClassCapacity, "medium", "the operator's own account is empty"}, strings.Contains(x.raw, "insufficient balance")
}

func (x *facts) has(codes ...string) bool {
	for _, have := range x.codes {
		for _, c := range codes {
			if have == c {
				return true
			}
		}
	}
	return false
}

func (x *facts) is(ids ...string) bool {
	for _, id := range ids {
		if x.provider == id || strings.HasSuffix(id, "*") && strings.HasPrefix(x.provider, id[:len(id)-1]) {
			return true
		}
	}
	return false
}

var (
	bracketCode = regexp.MustCompile(`\[(\d{4})\]`)
	limitZero   = regexp.MustCompile(`limit: 0(?:[^.\d]|\.(?:\D|$)|$)`)
)

// providerCodes are codes that mean something with one vendor only.
func providerCodes(x *facts) (verdict, bool) {
	yes := func(c rouse.Class, why string) (verdict, bool) { return verdict{c, "high", why}, true }
	switch {
	case x.is("zai", "zai-coding-plan", "zhipuai", "zhipuai-coding-plan"):
		codes := x.codes
		if m := bracketCode.FindStringSubmatch(x.text); m != nil {
			codes = append(codes[:len(codes):len(codes)], m[1])
		}
		for _, c := range codes {
			n, err := strconv.Atoi(c)
			switch {
			case err != nil:
			case n >= 1000 && n <= 1005:
				return yes(rouse.ClassAuth, "code "+c)
			case n == 1113, n == 1309, n == 1311, n >= 1313 && n <= 1315:
				return yes(rouse.ClassBilling, "code "+c)
			case n == 1302:
				return yes(rouse.ClassRate, "code "+c)
			case n == 1305:
				return yes(rouse.ClassCapacity, "code "+c)
			case n == 1308, n == 1310, n >= 1316 && n <= 1321:
				return yes(rouse.ClassQuota, "code "+c)
			}
		}
	case x.is("alibaba"):
		switch {
		case x.has("Throttling.AllocationQuota") && strings.Contains(x.text, "free allocated quota"):
			return yes(rouse.ClassBilling, "the free quota is used up")
		case x.has("Throttling.AllocationQuota"):
			return verdict{rouse.ClassRate, "low", "code Throttling.AllocationQuota"}, true
		case x.has("Throttling.RateQuota", "insufficient_quota"):
			return yes(rouse.ClassRate, "code of a rate quota")
		case x.has("AllocationQuota.FreeTierOnly", "Arrearage", "PrepaidBillOverdue", "PostpaidBillOverdue"):
			return yes(rouse.ClassBilling, "code of an unpaid account")
		}
	case x.is("xiaomi") && strings.Contains(x.text, "insufficient account funds"):
		return verdict{rouse.ClassRate, "low", "said for rate limits by this provider"}, true
	case x.is("huawei"):
		for _, c := range x.codes {
			if strings.HasSuffix(c, "81101.429") {
				return yes(rouse.ClassRate, "code "+c)
			}
		}
	case x.is("mistral") && x.has("service_tier_capacity_exceeded", "3505"):
		return yes(rouse.ClassCapacity, "code service_tier_capacity_exceeded")
	case x.is("github-copilot"):
		switch {
		case x.has("quota_exceeded"):
			return yes(rouse.ClassQuota, "code quota_exceeded")
		case x.has("user_weekly_rate_limited"):
			return yes(rouse.ClassQuota, "code user_weekly_rate_limited")
		case strings.Contains(x.text, "user_weekly_rate_limited"):
			return verdict{rouse.ClassQuota, "medium", "user_weekly_rate_limited in the message"}, true
		}
	case x.is("amazon-q") && x.has("ThrottlingException") && strings.Contains(x.text, "this month"):
		return yes(rouse.ClassQuota, "the month's requests are used up")
	case x.is("google*", "antigravity") && limitZero.MatchString(x.text):
		return verdict{rouse.ClassBilling, "medium", "the plan's limit is 0"}, true
	}
	return verdict{}, false
}

func codeRule(class rouse.Class, codes ...string) func(*facts) (verdict, bool) {
	return func(x *facts) (verdict, bool) {
		for _, c := range codes {
			if x.has(c) {
				return verdict{class, "high", "code " + c}, true
			}
		}
		return verdict{}, false
	}
}

var (
	billingCodes = codeRule(rouse.ClassBilling, "insufficient_quota", "credit_balance_exhausted",
		"organization_spend_limit_exceeded", "project_spend_limit_exceeded", "organization_usage_limit_exceeded",
		"usage_not_included", "enforced_spend_limit_reached", "exceeded_current_quota_error",
		"INSUFFICIENT_G1_CREDITS_BALANCE", "CreditsError", "MonthlyLimitError", "UserLimitError")
	quotaTyped = codeRule(rouse.ClassQuota, "usage_limit_reached", "usageLimitExceeded", "usage_limit_exceeded",
		"UsageLimitExceeded", "GoUsageLimitError", "FreeUsageLimitError", "BlackUsageLimitError", "QUOTA_EXHAUSTED", "AccountQuotaExceeded")
	capacityCodes = codeRule(rouse.ClassCapacity, "overloaded_error", "engine_overloaded_error",
		"MODEL_CAPACITY_EXHAUSTED", "MODEL_CAPACITY_EXCEEDED")
	contextCodes = codeRule(rouse.ClassContext, "context_length_exceeded", "prompt_too_long")
	authTyped    = codeRule(rouse.ClassAuth, "AuthError", "authentication_error", "invalid_api_key", "UNAUTHENTICATED", "VALIDATION_REQUIRED")
	modelCodes   = codeRule(rouse.ClassModel, "ModelError", "model_not_found")
	rateTyped    = codeRule(rouse.ClassRate, "rate_limit_exceeded", "slow_down", "rate_limit_error", "rate_limit",
		"rate_limit_reached_error", "RATE_LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED", "ThrottlingException", "RateLimitError")
)

func quotaCodes(x *facts) (verdict, bool) {
	if v, ok := quotaTyped(x); ok {
		return v, ok
	}
	if x.has(rejectedEvent) {
		return verdict{rouse.ClassQuota, "high", "a rejected rate_limit_event"}, true
	}
	if x.has(antigravityRecord) && x.has("RESOURCE_EXHAUSTED") {
		return verdict{rouse.ClassQuota, "high", "an AGY_ERROR record with RESOURCE_EXHAUSTED"}, true
	}
	rejected := x.status == 429 && strings.EqualFold(x.headers.Get("anthropic-ratelimit-unified-status"), "rejected")
	return verdict{rouse.ClassQuota, "high", "the account's unified limit is rejected"}, rejected
}

var askedFor = regexp.MustCompile(`limit:? (\d+).*requested:? (\d+)`)

// neverFits finds requests that are larger than the limit itself.
func neverFits(x *facts) (verdict, bool) {
	if m := askedFor.FindStringSubmatch(x.text); m != nil {
		limit, err1 := strconv.ParseInt(m[1], 10, 64)
		want, err2 := strconv.ParseInt(m[2], 10, 64)
		if err1 == nil && err2 == nil && want > limit {
			return verdict{rouse.ClassContext, "high", "the request is larger than the limit"}, true
		}
	}
	return contextCodes(x)
}

func authCodes(x *facts) (verdict, bool) {
	if v, ok := authTyped(x); ok {
		return v, ok
	}
	if x.channel == ACPError && x.has("-32000") {
		return verdict{rouse.ClassAuth, "high", "the agent asks to log in"}, true
	}
	return modelCodes(x)
}

func rateCodes(x *facts) (verdict, bool) {
	if v, ok := rateTyped(x); ok {
		return v, ok
	}
	return verdict{rouse.ClassRate, "high", "code 429"}, x.is("azure") && x.has("429")
}

// marker is a text rule.
type marker struct {
	class  rouse.Class
	re     *regexp.Regexp
	except []string // providers that mean something else with it
	only   []string // providers that alone mean this with it
}

func mark(class rouse.Class, alternatives ...string) marker {
	return marker{class: class, re: regexp.MustCompile(strings.Join(alternatives, "|"))}
}

// firm markers come before the rate codes, soft ones after.
var (
	exceededQuota = `exceeded your current quota`
	firm          = []marker{
		mark(rouse.ClassBilling, `credit balance is too low`, `insufficient (?:balance|credits|funds|account funds)`, `requires more credits`,
			`used all available credits`, `run out of credits`, `out of usage credits`, `spend(?:ing)? limit`, `enforced_spend_limit`, `payment required`),
		{class: rouse.ClassBilling, re: regexp.MustCompile(exceededQuota + `.*billing`), except: []string{"google*", "antigravity"}},
		mark(rouse.ClassQuota, `usage limit (?:has been )?(?:reached|exceeded)`, `(?:hit|reached) your (?:[^ ]+ ){0,3}limit`,
			`(?:\d+-hour|session|hourly|daily|weekly|monthly) (?:[^ .]+ ){0,3}limit reached`, `weekly/monthly limit exhausted`,
			`specified api usage limits`, `out of extra usage`, `your limit will reset`, `exhausted your (?:daily|weekly|monthly) quota`,
			`free daily quota`, `individual quota reached`, `reached for this month`, `exceeded the (?:[^ ]+ ){0,3}usage quota`),
		mark(rouse.ClassContext, `prompt is too long`, `context (?:window|length)`, `request too large`),
		mark(rouse.ClassModel, "model [^.]*(?:not found|does not exist|not supported|not available)"),
		mark(rouse.ClassAuth, `(?:incorrect|invalid) api key`, `api key not valid`, `authentication (?:required|failed)`, `\bunauthorized\b`, `access paused`),
	}
	soft = []marker{
		mark(rouse.ClassCapacity, `overloaded`, `high demand`, `at capacity`, `no capacity`, `internal server error`),
		mark(rouse.ClassRate, `rate limit`, `too many (?:requests|tokens)`, `limiting requests`, `request rejected \(429\)`, `last status: 429`,
			`per minute limit exceeded`, `quota exceeded for`),
		mark(rouse.ClassNetwork, `connection (?:error|refused|reset|closed)`, `(?:cannot|could not|unable to) connect`, `stream disconnected`,
			`^\W*terminated\W*$`, `unexpected eof`, `socket connection`),
		{class: rouse.ClassRate, re: regexp.MustCompile(exceededQuota), only: []string{"google*"}},
	}
)

func byMarkers(x *facts, list []marker) (verdict, bool) {
	for _, m := range list {
		if m.except != nil && x.is(m.except...) || m.only != nil && !x.is(m.only...) {
			continue
		}
		if hit := m.re.FindString(x.text); hit != "" {
			return verdict{m.class, "medium", "the message says \"" + rouse.Clip(hit, 60) + "\""}, true
		}
	}
	return verdict{}, false
}

func plainText(x *facts) (verdict, bool) { return byMarkers(x, firm) }
func softText(x *facts) (verdict, bool)  { return byMarkers(x, soft) }

// byCategory reads the category of a typed session failure (claude-agent-acp
// and codex-acp 2.x, opted in).
func byCategory(x *facts) (verdict, bool) {
	category, severity, _ := strings.Cut(x.category, ":")
	class, ok := map[string]rouse.Class{"service": rouse.ClassCapacity, "connection": rouse.ClassNetwork, "access": rouse.ClassAuth}[category]
	if category == "limit" {
		class, ok = rouse.ClassQuota, true
		if severity == "warning" {
			class = rouse.ClassRate
		}
	}
	return verdict{class, "low", "category " + category}, ok
}

// byStatus is the last resort.
func byStatus(x *facts) (verdict, bool) {
	class := rouse.ClassNone
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
	return verdict{class, "low", "status " + strconv.Itoa(x.status)}, class != rouse.ClassNone
}
