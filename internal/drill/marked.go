package drill

import (
	"bytes"
	"os"
	"path/filepath"
)

// Marked counts the living processes of a session on this machine, by the mark
// in their environment. Where the system does not show environments (all but
// Linux) it finds none.
func Marked(session string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // a valid pattern
	n := 0
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && bytes.Contains(env, []byte("ROUSE_SESSION="+session)) {
			n++
		}
	}
	return n
}
