package acp

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// zoneOf is the name of the zone in which an agent's words give a time that
// names none: this machine's, or that of a recording.
func zoneOf(at time.Time) string {
	if name := at.Location().String(); name != "Local" {
		return name
	}
	if name := hostZone(); name != "" {
		return name
	}
	_, seconds := at.Zone()
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	return fmt.Sprintf("GMT%c%d:%02d", sign, seconds/3600, seconds%3600/60)
}

// hostZone is the zone's name as package time and the agents find it; "" where
// it has none that can be told.
var hostZone = sync.OnceValue(func() string {
	file, set := os.LookupEnv("TZ")
	if file = strings.TrimPrefix(file, ":"); set && file == "" {
		return "UTC"
	}
	if !set {
		var err error
		if file, err = os.Readlink("/etc/localtime"); err != nil {
			return ""
		}
	}
	if _, name, ok := strings.Cut(file, "zoneinfo/"); ok {
		file = name
	}
	if strings.HasPrefix(file, "/") {
		return ""
	}
	if _, err := time.LoadLocation(file); err != nil {
		return ""
	}
	return file
})
