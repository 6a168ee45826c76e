package rouse_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is what one package of the house may do. Change it deliberately and say
// why in ARCHITECTURE.md; do not tunnel under it.
type room struct {
	imports []string // rooms it may import; the vocabulary is everybody's
	// goroutines says that it may start some; each is waited for.
	goroutines bool
}

// plan is the house. Ground rooms import the vocabulary only; verbs do not
// import each other; doors come last; the daemon knows all.
var plan = map[string]room{
	"": {},

	"internal/store":             {goroutines: false},
	"internal/store/storetest":   {imports: []string{"internal/store"}, goroutines: true},
	"internal/feed":              {},
	"internal/crash":             {},
	"internal/proc":              {goroutines: true},
	"internal/limits":            {},
	"internal/linediff":          {},
	"internal/diagnostics":       {},
	"internal/routing":           {},
	"internal/provider":          {goroutines: true},
	"internal/config":            {goroutines: true}, // a keyring that does not answer must not hang the program
	"internal/engine":            {},
	"internal/engine/native":     {imports: []string{"internal/engine", "internal/provider", "internal/limits", "internal/linediff", "internal/proc"}, goroutines: true},
	"internal/engine/acp":        {imports: []string{"internal/diagnostics", "internal/engine", "internal/engine/acp/judge", "internal/engine/acp/wire", "internal/limits", "internal/linediff", "internal/proc"}, goroutines: true},
	"internal/engine/acp/wire":   {},
	"internal/engine/acp/judge":  {imports: []string{"internal/diagnostics", "internal/engine/acp/wire"}},
	"internal/engine/enginetest": {imports: []string{"internal/engine"}, goroutines: true},

	"internal/recovery": {imports: []string{"internal/crash", "internal/proc", "internal/store"}, goroutines: true},
	"internal/watch":    {imports: []string{"internal/store"}},
	"internal/session":  {imports: []string{"internal/crash", "internal/engine", "internal/feed", "internal/store"}, goroutines: true},

	"internal/api":          {imports: []string{"internal/config", "internal/feed", "internal/recovery", "internal/routing", "internal/session", "internal/store", "internal/watch"}},
	"internal/api/opencode": {imports: []string{"internal/api", "internal/config", "internal/feed", "internal/session", "internal/store"}},
	"internal/client":       {goroutines: true},
	"internal/cli":          {imports: []string{"internal/client", "internal/crash", "internal/config", "internal/daemon", "internal/diagnostics", "internal/drill", "internal/drill/record", "internal/drill/replay", "internal/limits", "internal/proc"}, goroutines: true},

	"internal/drill":        {imports: []string{"internal/client", "internal/drill/trace", "internal/engine", "internal/engine/acp/wire"}, goroutines: true},
	"internal/drill/replay": {imports: []string{"internal/drill/trace", "internal/engine", "internal/engine/acp", "internal/engine/acp/judge", "internal/engine/acp/wire"}, goroutines: true},
	"internal/drill/record": {imports: []string{"internal/diagnostics", "internal/engine/acp/judge", "internal/engine/acp/wire", "internal/proc"}, goroutines: true},
	"internal/drill/trace":  {imports: []string{"internal/engine/acp/wire"}},
	"internal/daemon":       {imports: []string{"*"}, goroutines: true},
	"internal/sim":          {}, // tests only
	"internal/sim/mutants":  {imports: []string{"internal/proc"}},
	"cmd/rouse":             {imports: []string{"internal/cli"}},
	"test":                  {}, // real clients; test files only
	"bench":                 {imports: []string{"*"}, goroutines: true},
}

// exclusive names packages that only some rooms may import.
var exclusive = map[string][]string{
	"database/sql":                     {"internal/store"},
	"modernc.org/sqlite":               {"internal/store"},
	"os/exec":                          {"internal/proc", "bench"},
	"github.com/thejerf/suture/v4":     {"internal/daemon"},
	"github.com/alecthomas/kong":       {"internal/cli"},
	"github.com/danielgtaylor/huma/v2": {"internal/api"},
}

func TestHouse(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "tools") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			checkFile(t, path, seen)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range seen {
		if !seen[dir] {
			t.Errorf("%s: no file says what the package is for", dir)
		}
	}
}

// checkFile holds one file against the plan; seen[dir] becomes true once a
// file documents the package.
func checkFile(t *testing.T, path string, seen map[string]bool) {
	dir := filepath.ToSlash(filepath.Dir(path))
	if dir == "." {
		dir = ""
	}
	key, r, ok := roomOf(dir)
	if !ok {
		t.Errorf("%s: the package is not in the plan", path)
		return
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	seen[dir] = seen[dir] || f.Doc != nil
	for _, spec := range f.Imports {
		checkImport(t, path, key, r, spec)
	}
	if !r.goroutines {
		ast.Inspect(f, func(n ast.Node) bool {
			if starts(n) {
				t.Errorf("%s: starts a goroutine; the plan gives none to %s", set.Position(n.Pos()), key)
			}
			return true
		})
	}
	if lines := set.Position(f.FileEnd).Line; lines > 400 {
		t.Errorf("%s: %d lines; a file that long is two rooms", path, lines)
	}
}

// roomOf finds the plan's entry: bench programs share one.
func roomOf(dir string) (string, room, bool) {
	if strings.HasPrefix(dir, "bench/") {
		dir = "bench"
	}
	r, ok := plan[dir]
	return dir, r, ok
}

func checkImport(t *testing.T, path, key string, r room, spec *ast.ImportSpec) {
	name, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		t.Error(err)
		return
	}
	if only, ok := exclusive[name]; ok && !slices.Contains(only, key) {
		t.Errorf("%s imports %s, which only %v may", path, name, only)
	}
	inner, ours := strings.CutPrefix(name, "rouse/")
	switch {
	case name == "rouse" || ours && (slices.Contains(r.imports, inner) || slices.Contains(r.imports, "*")):
	case ours:
		t.Errorf("%s imports %s; the plan does not let %s", path, inner, key)
	case key == "" && strings.Contains(name, "."):
		t.Errorf("%s imports %s; the vocabulary stands on the standard library", path, name)
	}
}

// starts reports a go statement or a WaitGroup's or errgroup's Go.
func starts(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Go" || len(n.Args) != 1 {
			return false
		}
		_, literal := n.Args[0].(*ast.FuncLit)
		return literal
	}
	return false
}
