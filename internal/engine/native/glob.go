package native

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of a search.
const (
	maxFound   = 100
	maxVisited = 200_000 // files and folders
)

var globTool = tool{
	name:        "glob",
	description: `Finds files by name, newest first: "**/*.go", "src/**/test_*.py". At most 100; .git and node_modules are left out.`,
	schema:      schemaOf("pattern*:string:The pattern, relative to path", "path:string:The directory to search; the working directory if absent"),
	run:         runGlob,
}

// found is the metadata of a search.
type found struct {
	Count     int  `json:"count"`
	Truncated bool `json:"truncated"`
}

func runGlob(k *call) (result, error) {
	var in struct{ Pattern, Path string }
	if err := k.decode(&in); err != nil {
		return result{}, err
	}
	if in.Pattern == "" {
		return result{}, k.missing("pattern")
	}
	if !doublestar.ValidatePattern(in.Pattern) {
		return result{}, toolError("The pattern " + in.Pattern + " is not valid.")
	}
	root := k.t.resolve(cmp.Or(in.Path, "."))
	if filepath.IsAbs(in.Pattern) {
		base, rest := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(in.Pattern)))
		root, in.Pattern = base, rest
	}
	if err := k.search("glob", in.Pattern, root); err != nil {
		return result{}, err
	}
	type file struct {
		path string
		mod  time.Time
	}
	var files []file
	cut, err := walk(k.ctx, root, func(path, rel string, e fs.DirEntry) bool {
		if ok, _ := doublestar.Match(in.Pattern, rel); ok { // the pattern is valid
			f := file{path: path}
			if info, err := e.Info(); err == nil {
				f.mod = info.ModTime()
			}
			files = append(files, f)
		}
		return len(files) < 20*maxFound
	})
	if err != nil {
		return result{}, err
	}
	slices.SortStableFunc(files, func(a, b file) int { return b.mod.Compare(a.mod) })
	if len(files) > maxFound {
		files, cut = files[:maxFound], true
	}
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f.path + "\n")
	}
	switch {
	case len(files) == 0:
		b.WriteString("No file matches.\n")
	case cut:
		b.WriteString("(There are more: search more narrowly.)\n")
	}
	return result{title: k.t.relative(root), output: b.String(), metadata: found{len(files), cut}}, nil
}

// search asks for a search in a folder.
func (k *call) search(permission, pattern, root string) error {
	info, err := os.Stat(root)
	if err != nil || !info.IsDir() {
		return toolError("There is no directory " + root + ".")
	}
	if err := k.enter(root, true); err != nil {
		return err
	}
	if err := k.permit(wish{permission: permission, patterns: []string{pattern}, always: []string{"*"}, metadata: map[string]string{"pattern": pattern, "path": root}}); err != nil {
		return err
	}
	k.running("", nil)
	return nil
}

// walk visits the regular files under root until visit says no or a bound is
// reached; cut tells that there may be more.
func walk(ctx context.Context, root string, visit func(path, rel string, e fs.DirEntry) bool) (cut bool, err error) {
	n := 0
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is left out
		}
		if n++; n > maxVisited {
			cut = true
			return fs.SkipAll
		}
		if n%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e.IsDir() {
			if name := e.Name(); path != root && (name == ".git" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("walk %s: %w", root, err)
		}
		if !visit(path, filepath.ToSlash(rel), e) {
			cut = true
			return fs.SkipAll
		}
		return nil
	})
	return cut, err
}
