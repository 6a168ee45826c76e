package proc

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// Look says whether a process lives (a zombie does not) and how much memory it
// holds, 0 when that is not known.
func Look(pid int) (alive bool, rss int64) {
	if pid <= 0 || syscall.Kill(pid, 0) == syscall.ESRCH {
		return false, 0
	}
	dir := "/proc/" + strconv.Itoa(pid)
	// The state is behind the program's name, which may hold anything: proc(5).
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return false, 0
	}
	if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) && (stat[i+2] == 'Z' || stat[i+2] == 'X') {
		return false, 0
	}
	statm, err := os.ReadFile(dir + "/statm")
	if err != nil {
		return true, 0
	}
	if fields := bytes.Fields(statm); len(fields) > 1 {
		pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err == nil {
			rss = pages * int64(os.Getpagesize())
		}
	}
	return true, rss
}
