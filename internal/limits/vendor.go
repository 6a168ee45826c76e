package limits

import (
	"strings"

	"rouse"
)

// vendorRow is what a code or a sentence means with one vendor only. All that
// is set has to hold.
type vendorRow struct {
	code     string // one of the evidence's codes; "*x" is its end
	from, to int    // a numeric code in this range, both inclusive
	says     string // the message contains it (lower case)
	when     func(*facts) bool

	class rouse.Class
	conf  string // "" is high
	limit string // the window that it names
	why   string // "" is the code
}

// vendorRows finds the table of a provider; the first row that matches counts.
var vendorRows = map[string][]vendorRow{
	"zai":                 zaiRows,
	"zai-coding-plan":     zaiRows,
	"zhipuai":             zaiRows,
	"zhipuai-coding-plan": zaiRows,
	"alibaba":             alibabaRows,
	"xiaomi":              xiaomiRows,
	"huawei":              huaweiRows,
	"mistral":             mistralRows,
	"github-copilot":      copilotRows,
	"amazon-q":            amazonQRows,
	"antigravity":         googleRows,
}

func rowsOf(provider string) []vendorRow {
	if strings.HasPrefix(provider, "google") {
		return googleRows
	}
	return vendorRows[provider]
}

// byVendor applies the provider's own table.
func byVendor(x *facts) (verdict, bool) {
	rows := rowsOf(x.provider)
	for i := range rows {
		if v, ok := rows[i].match(x); ok {
			return v, true
		}
	}
	return verdict{}, false
}

func (r *vendorRow) match(x *facts) (verdict, bool) {
	v := verdict{class: r.class, conf: r.conf, limit: r.limit, why: r.why}
	if v.conf == "" {
		v.conf = "high"
	}
	if r.code != "" || r.to > 0 {
		code, ok := r.codeOf(x)
		if !ok {
			return verdict{}, false
		}
		if v.why == "" {
			v.why = "code " + code
		}
	}
	if r.says != "" && !strings.Contains(x.text, r.says) || r.when != nil && !r.when(x) {
		return verdict{}, false
	}
	return v, true
}

// codeOf finds the code that the row is about.
func (r *vendorRow) codeOf(x *facts) (string, bool) {
	end, isEnd := strings.CutPrefix(r.code, "*")
	for _, c := range x.codes {
		switch {
		case r.to > 0:
			if n := number(c); len(c) == digits(c) && n >= r.from && n <= r.to {
				return c, true
			}
		case isEnd && strings.HasSuffix(c, end), c == r.code:
			return c, true
		}
	}
	return "", false
}
