package limits

import "rouse"

// mistralRows: the tier's shared capacity, not the account's limit.
var mistralRows = []vendorRow{
	{code: "service_tier_capacity_exceeded", class: rouse.ClassCapacity},
	{code: "3505", class: rouse.ClassCapacity},
}
