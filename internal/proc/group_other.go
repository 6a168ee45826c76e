//go:build !unix

package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup does nothing: Rouse does not run on this system, it only says so.
func ownGroup(*exec.Cmd) {}

// signalGroup ends the process itself.
func signalGroup(pid int, _ syscall.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// signalMarked finds nothing here.
func signalMarked(string, int, syscall.Signal) int { return 0 }
