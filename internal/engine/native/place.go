package native

import (
	"os"
	"path/filepath"
	"strings"
)

// resolve makes a path of the model absolute.
func (t *turn) resolve(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok || path == "~" {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.c.spec.Directory, path)
	}
	return filepath.Clean(path)
}

// relative is a path as people see it: within the directory, or absolute.
func (t *turn) relative(path string) string {
	if rel, err := filepath.Rel(t.c.spec.Directory, path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return rel
	}
	return path
}

// inside reports that a path, links followed, lies within the directory.
func (t *turn) inside(path string) bool {
	root, real := follow(t.c.spec.Directory), follow(path)
	return real == root || strings.HasPrefix(real, strings.TrimSuffix(root, "/")+"/")
}

// follow resolves the links of the part of a path that exists.
func follow(path string) string {
	rest := ""
	for p := path; ; {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(p)
		if up == p {
			return path
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = up
	}
}

// enter asks for leaving the directory, where a path does. folder: path is one.
func (k *call) enter(path string, folder bool) error {
	if k.t.inside(path) {
		return nil
	}
	dir := path
	if !folder {
		dir = filepath.Dir(path)
	}
	pattern := filepath.Join(dir, "*")
	return k.permit(wish{permission: "external_directory", patterns: []string{pattern}, always: []string{pattern},
		metadata: map[string]string{"filepath": path, "parentDir": dir}})
}
