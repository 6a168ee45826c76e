package limits

import (
	"strings"

	"rouse"
)

// googleRows holds for every google* id and Antigravity.
var googleRows = []vendorRow{
	{when: limitZero, class: rouse.ClassBilling, conf: "medium", why: "the plan's limit is 0"},
}

// limitZero finds "limit: 0": the plan has none of it. 0.5 and 1000 are limits.
func limitZero(x *facts) bool {
	return each(x.text, "limit: 0", func(end int) bool {
		rest := x.text[end:]
		if rest == "" {
			return true
		}
		return !isDigit(rest[0]) && (rest[0] != '.' || len(rest) == 1 || !isDigit(rest[1]))
	})
}

// detail reads one google.rpc detail: ErrorInfo with its metadata, RetryInfo,
// QuotaFailure with its violations.
func (x *facts) detail(m map[string]any) {
	x.code(m["reason"])
	x.docs = append(x.docs, m)
	if meta, ok := m["metadata"].(map[string]any); ok {
		x.docs = append(x.docs, meta)
		x.named(text(meta, "model"))
		x.quotaIDs(text(meta, "quota_limit"))
	}
	list, _ := m["violations"].([]any)
	for _, v := range list {
		if o, ok := v.(map[string]any); ok {
			x.quotaIDs(text(o, "quotaId"))
			x.named(text(object(o, "quotaDimensions"), "model"))
		}
	}
}

// quotaIDs keeps the names of violated quotas: they say what is counted.
func (x *facts) quotaIDs(id string) {
	if id != "" && len(x.quotas) < maxCandidates {
		x.quotas = append(x.quotas, id)
	}
}

func (x *facts) quotaOf(parts ...string) bool {
	for _, id := range x.quotas {
		for _, p := range parts {
			if strings.Contains(id, p) {
				return true
			}
		}
	}
	return false
}

// antigravity is a record of Antigravity's stderr with its sentence on the
// other lines.
func (x *facts) antigravity(e Evidence) bool {
	var said []string
	for line := range strings.Lines(e.Text) {
		line = strings.TrimSpace(line)
		raw, isRecord := strings.CutPrefix(line, "AGY_ERROR ")
		if !isRecord {
			said = append(said, line)
			continue
		}
		d := decode([]byte(raw))
		if d == nil {
			return false
		}
		x.agyError = true
		x.document(d, 0, 0)
	}
	if x.agyError {
		x.say(strings.Join(said, " "))
	}
	return x.agyError
}
