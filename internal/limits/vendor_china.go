package limits

import "rouse"

// alibabaRows are DashScope's codes. insufficient_quota is money elsewhere and
// a rate here.
var alibabaRows = []vendorRow{
	{code: "Throttling.AllocationQuota", says: "free allocated quota", class: rouse.ClassBilling, why: "the free quota is used up"},
	{code: "Throttling.AllocationQuota", class: rouse.ClassRate, conf: "low"},
	{code: "Throttling.RateQuota", class: rouse.ClassRate},
	{code: "insufficient_quota", class: rouse.ClassRate},
	{code: "AllocationQuota.FreeTierOnly", class: rouse.ClassBilling},
	{code: "Arrearage", class: rouse.ClassBilling},
	{code: "PrepaidBillOverdue", class: rouse.ClassBilling},
	{code: "PostpaidBillOverdue", class: rouse.ClassBilling},
}

// xiaomiRows: MiMo says this for bursts as well as for an empty account.
var xiaomiRows = []vendorRow{
	{says: "insufficient account funds", class: rouse.ClassRate, conf: "low", why: "said for rate limits by this provider"},
}

// huaweiRows are ModelArts' codes.
var huaweiRows = []vendorRow{
	{code: "*81101.429", class: rouse.ClassRate},
}
