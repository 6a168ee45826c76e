package opencode

import (
	"os"
	"path/filepath"
	"strings"
)

// branchOf reads the branch that is checked out at root; empty when HEAD is
// detached or unreadable.
func branchOf(root string) string {
	git := filepath.Join(root, ".git")
	if raw, err := os.ReadFile(git); err == nil { // a linked working tree: a file that names the place
		place := strings.TrimSpace(strings.TrimPrefix(string(raw), "gitdir:"))
		if !filepath.IsAbs(place) {
			place = filepath.Join(root, place)
		}
		git = place
	}
	head, err := os.ReadFile(filepath.Join(git, "HEAD"))
	if err != nil {
		return ""
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
	if !ok {
		return ""
	}
	return branch
}
