package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// signalMarked signals every living process that has entry in its environment
// or belongs to group (0: none), and says how many there were. Signal 0 only
// counts.
func signalMarked(entry string, group int, s syscall.Signal) int {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	names, _ := dir.Readdirnames(-1) // what can be read counts
	_ = dir.Close()
	self, n := os.Getpid(), 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self || pid == 1 {
			continue
		}
		if !marked(name, entry) && (group == 0 || groupOf(name) != group) {
			continue
		}
		if s == 0 || syscall.Kill(pid, s) == nil {
			n++
		}
	}
	return n
}

// marked reports that a process has entry in its environment, of a mark: that
// its mark is among those that it carries. A zombie has none.
func marked(pid, entry string) bool {
	env, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if string(kv) == entry {
			return true
		}
		if words, ok := strings.CutPrefix(string(kv), marker+"="); ok && strings.HasPrefix(entry, marker+"=") &&
			slices.Contains(strings.Fields(words), entry[len(marker)+1:]) {
			return true
		}
	}
	return false
}

// groupOf is the process group of a living process; 0 for a zombie or one that
// is gone.
func groupOf(pid string) int { return statField(pid, 2) }

// parentOf is its parent's number; 0 likewise.
func parentOf(pid string) int { return statField(pid, 1) }

// statField is a number behind the name in /proc/pid/stat: "pid (name) state
// ppid pgrp …"; the name may hold anything, also ")".
func statField(pid string, i int) int {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= i || fields[0] == "Z" || fields[0] == "X" {
		return 0
	}
	n, _ := strconv.Atoi(fields[i])
	return n
}

// treeMemory adds the resident memory of a process, of its descendants, and of
// what carries mark ("": nothing does), in bytes. Pages that several share are
// counted for each.
func treeMemory(root int, mark string) (rss int64) {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	names, _ := dir.Readdirnames(-1) // what can be read counts
	_ = dir.Close()
	parents := make(map[int]int, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			parents[pid] = parentOf(name)
		}
	}
	for pid := range parents {
		below := false
		for at, steps := pid, 0; at > 1 && steps < 64; at, steps = parents[at], steps+1 {
			if below = at == root; below {
				break
			}
		}
		if below || mark != "" && marked(strconv.Itoa(pid), mark) {
			_, own := Look(pid)
			rss += own
		}
	}
	return rss
}
