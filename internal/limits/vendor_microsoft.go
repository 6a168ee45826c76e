package limits

import "rouse"

// copilotRows: GitHub Copilot's allowances. The first of the month is only
// implied and therefore no reset.
var copilotRows = []vendorRow{
	{code: "quota_exceeded", class: rouse.ClassQuota, limit: "monthly"},
	{code: "user_weekly_rate_limited", class: rouse.ClassQuota, limit: "weekly"},
	{says: "user_weekly_rate_limited", class: rouse.ClassQuota, conf: "medium", limit: "weekly", why: "user_weekly_rate_limited in the message"},
}

// azureCode429 is Azure's rate code: the status, said again as a code. It
// comes after the text, as all rate codes do.
const azureCode429 = "429"
