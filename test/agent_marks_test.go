package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// marks are the variables by which a server's processes are known; what it
// starts inherits them, however far it goes.
type marks struct {
	t       *testing.T
	entries []string // NAME=value
}

func newMarks(t *testing.T) *marks { return &marks{t: t} }

// of takes the marks of what a process has started.
func (m *marks) of(server int) {
	for _, pid := range processes() {
		if parentOf(pid) != server {
			continue
		}
		for _, name := range []string{"ROUSE_BOOT", "ROUSE_PROC"} {
			if e := variable(pid, name); e != "" && !slices.Contains(m.entries, e) {
				m.entries = append(m.entries, e)
			}
		}
	}
}

// only takes the mark of one process and of all that it starts.
func (m *marks) only(pid int) { m.entries = append(m.entries, variable(pid, "ROUSE_PROC")) }

// gone waits until no process has one of the marks.
func (m *marks) gone() {
	m.t.Helper()
	eventually(m.t, "the end of all processes of "+strings.Join(m.entries, ", "), func() bool { return len(m.left()) == 0 })
}

// left lists who has one.
func (m *marks) left() (out []string) {
	for _, pid := range processes() {
		for _, e := range m.entries {
			name, _, _ := strings.Cut(e, "=")
			if variable(pid, name) == e {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				out = append(out, strconv.Itoa(pid)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
				break
			}
		}
	}
	return out
}

func processes() (pids []int) {
	if runtime.GOOS != "linux" {
		return nil // the marks cannot be read there
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// variable is an entry of a process's environment; a zombie has none.
func variable(pid int, name string) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(raw, []byte{0}) {
		if bytes.HasPrefix(entry, []byte(name+"=")) {
			return string(entry)
		}
	}
	return ""
}

func parentOf(pid int) int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	after := raw[bytes.LastIndexByte(raw, ')')+1:] // the name may hold anything
	fields := bytes.Fields(after)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}
