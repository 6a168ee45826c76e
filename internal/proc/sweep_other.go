//go:build unix && !linux

package proc

import "syscall"

// signalMarked signals the group: other systems do not show environments.
func signalMarked(_ string, group int, s syscall.Signal) int {
	if group == 0 || syscall.Kill(-group, s) != nil {
		return 0
	}
	return 1
}

// treeMemory is not known here.
func treeMemory(int, string) int64 { return 0 }
