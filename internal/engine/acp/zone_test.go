package acp

import (
	"testing"
	"time"

	"rouse/internal/limits"
)

// A time without a zone is read in the zone of the clock that stamped it.
func TestZoneOf(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for _, at := range []time.Time{time.Now(), time.Now().UTC(), time.Now().In(berlin)} {
		d := limits.Classify(limits.Evidence{Provider: "openai", Channel: limits.Text, Trusted: true, At: at, HostZone: zoneOf(at),
			Text: "You've hit your usage limit. Try again at " + at.Add(3*time.Hour).Format("3:04 PM") + "."})
		if got, want := d.ResetAt, at.Add(3*time.Hour).Truncate(time.Minute); !got.Equal(want) {
			t.Errorf("%s: it resets at %v, want %v", zoneOf(at), got, want)
		}
	}
	if got := zoneOf(time.Now().In(time.FixedZone("Local", -(3*3600 + 1800)))); hostZone() == "" && got != "GMT-3:30" {
		t.Errorf("an offset is %s", got)
	}
}
