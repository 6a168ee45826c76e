package session

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"rouse"
)

// projects answers what belongs to a directory, from its .git alone: no
// program is run. Answers are remembered; a directory seldom changes its
// repository.
type projects struct {
	known sync.Map // directory -> Project
}

// Project is the repository that a directory is in.
type Project struct {
	// ID is stable for all worktrees of a repository; "global" outside one.
	ID string
	// Root is the top of the checkout that holds the directory, or "".
	Root string
	// Main is the main checkout when Root is a linked worktree of it.
	Main string
}

// Global is the project of directories outside any repository.
const Global = "global"

// ProjectOf finds the repository of a directory.
func (l *Lanes) ProjectOf(directory string) Project {
	if p, ok := l.check.known.Load(directory); ok {
		return p.(Project)
	}
	p := findProject(directory)
	l.check.known.Store(directory, p)
	return p
}

func findProject(directory string) Project {
	for dir := directory; ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		info, err := os.Stat(git)
		switch {
		case err == nil && info.IsDir():
			return Project{ID: projectID(git), Root: dir}
		case err == nil:
			if common := commonDir(dir, git); common != "" {
				return Project{ID: projectID(common), Root: dir, Main: filepath.Dir(common)}
			}
			return Project{ID: projectID(git), Root: dir}
		case dir == filepath.Dir(dir):
			return Project{ID: Global}
		}
	}
}

// commonDir reads a linked worktree's .git file ("gitdir: …/.git/worktrees/x")
// and gives the repository's own .git, or "" for another kind of link (a
// submodule).
func commonDir(dir, file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	link, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(link) {
		link = filepath.Join(dir, link)
	}
	common, _, ok := strings.Cut(filepath.ToSlash(filepath.Clean(link)), "/worktrees/")
	if !ok {
		return ""
	}
	return filepath.FromSlash(common)
}

func projectID(gitDir string) string {
	if real, err := filepath.EvalSymlinks(gitDir); err == nil {
		gitDir = real
	}
	sum := sha256.Sum256([]byte(gitDir))
	return hex.EncodeToString(sum[:20])
}

// CheckDirectory cleans a directory and refuses one that is not there.
func CheckDirectory(directory string) (string, error) {
	const op = "session: directory"
	if directory == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", &rouse.Error{Kind: rouse.Internal, Op: op, Err: err}
		}
		return wd, nil
	}
	if !filepath.IsAbs(directory) || strings.ContainsRune(directory, 0) {
		return "", rouse.FieldError(op, "directory", "directory %q must be an absolute path", rouse.Clip(directory, 200))
	}
	directory = filepath.Clean(directory)
	info, err := os.Stat(directory)
	switch {
	case err != nil:
		return "", rouse.FieldError(op, "directory", "directory %q does not exist or cannot be read", rouse.Clip(directory, 200))
	case !info.IsDir():
		return "", rouse.FieldError(op, "directory", "%q is not a directory", rouse.Clip(directory, 200))
	}
	return directory, nil
}
