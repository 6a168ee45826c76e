//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the leader of a new process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup signals a process group whose leader is not reaped yet.
func signalGroup(group int, s syscall.Signal) { _ = syscall.Kill(-group, s) }
