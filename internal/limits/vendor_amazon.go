package limits

import (
	"strings"

	"rouse"
)

// amazonQRows: the month's requests, under a throttling code and status 400.
var amazonQRows = []vendorRow{
	{code: "ThrottlingException", says: "this month", class: rouse.ClassQuota, why: "the month's requests are used up"},
}

// amazonCode takes the code from the header that AWS puts it into.
func (x *facts) amazonCode() {
	if t := x.headers.Get("X-Amzn-Errortype"); t != "" {
		t, _, _ = strings.Cut(t, ":")
		x.code(strings.TrimSpace(t))
	}
}
