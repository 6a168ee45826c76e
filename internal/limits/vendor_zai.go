package limits

import "rouse"

// zaiFamily are the ids under which Z.ai and Zhipu sell the same service. Their
// stamps name no zone and are Beijing's.
var zaiFamily = []string{"zai", "zai-coding-plan", "zhipuai", "zhipuai-coding-plan"}

// zaiRows are the business codes of Z.ai, in the field or as "[1310]" in the
// message. The HTTP status and the envelope's type say nothing here.
var zaiRows = []vendorRow{
	{from: 1000, to: 1005, class: rouse.ClassAuth},
	{code: "1113", class: rouse.ClassBilling},
	{code: "1309", class: rouse.ClassBilling},
	{code: "1311", class: rouse.ClassBilling},
	{from: 1313, to: 1315, class: rouse.ClassBilling},
	{code: "1302", class: rouse.ClassRate},
	{code: "1305", class: rouse.ClassCapacity},
	{code: "1308", class: rouse.ClassQuota},
	{code: "1310", class: rouse.ClassQuota},
	{from: 1316, to: 1321, class: rouse.ClassQuota},
}

// bracketCodes adds the codes that stand as "[1310]" in a message.
func (x *facts) bracketCodes() {
	each(x.text, "[", func(end int) bool {
		if rest := x.text[end:]; len(rest) > 4 && digits(rest) == 4 && rest[4] == ']' {
			x.codes = append(x.codes, rest[:4])
		}
		return len(x.codes) > maxCandidates
	})
}
