//go:build !linux

package proc

import "os"

// Look says whether a process lives; its memory is not known here.
func Look(pid int) (alive bool, rss int64) {
	if pid <= 0 {
		return false, 0
	}
	p, err := os.FindProcess(pid)
	return err == nil && p != nil, 0
}
