package native

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"rouse"
)

// maxGrepped bounds the size of a file that is searched.
const maxGrepped = 32 << 20

var grepTool = tool{
	name: "grep",
	description: `Searches file contents with a regular expression (RE2) and gives path, line number and line; at most 100 lines.
include narrows the files, for example "*.go" or "**/*.{ts,tsx}". Binary files, .git and node_modules are left out.`,
	schema: schemaOf("pattern*:string:The regular expression", "path:string:The directory to search; the working directory if absent",
		"include:string:Which files, by name"),
	run: runGrep,
}

func runGrep(k *call) (result, error) {
	var in struct{ Pattern, Path, Include string }
	if err := k.decode(&in); err != nil {
		return result{}, err
	}
	if in.Pattern == "" {
		return result{}, k.missing("pattern")
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return result{}, toolError("The pattern is no regular expression (RE2): " + err.Error())
	}
	if in.Include != "" && !doublestar.ValidatePattern(in.Include) {
		return result{}, toolError("The pattern " + in.Include + " is not valid.")
	}
	root := k.t.resolve(cmp.Or(in.Path, "."))
	if err := k.search("grep", in.Pattern, root); err != nil {
		return result{}, err
	}
	var b strings.Builder
	n := 0
	cut, err := walk(k.ctx, root, func(path, rel string, e fs.DirEntry) bool {
		if !included(in.Include, rel) {
			return true
		}
		if info, err := e.Info(); err != nil || info.Size() > maxGrepped {
			return true
		}
		n += grepFile(&b, path, re, maxFound-n)
		return n < maxFound && k.ctx.Err() == nil
	})
	if err != nil {
		return result{}, err
	}
	out := fmt.Sprintf("Found %d lines.\n", n) + b.String()
	switch {
	case n == 0:
		out = "No line matches.\n"
	case cut:
		out += "\n(There may be more: search more narrowly.)\n"
	}
	return result{title: in.Pattern, output: out, metadata: map[string]any{"matches": n, "truncated": cut}}, nil
}

// included matches a pattern without a slash against the name, one with a
// slash against the path.
func included(pattern, rel string) bool {
	if pattern == "" {
		return true
	}
	if !strings.Contains(pattern, "/") {
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	ok, _ := doublestar.Match(pattern, rel) // the pattern is valid
	return ok
}

// grepFile writes at most n matching lines of a file and says how many.
func grepFile(b *strings.Builder, path string, re *regexp.Regexp, n int) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 64<<10)
	head, _ := r.Peek(8000) // a short file gives less
	if binary(head) {
		return 0
	}
	hits := 0
	for number := 1; hits < n; number++ {
		line, err := r.ReadSlice('\n')
		for err == bufio.ErrBufferFull { // the rest of an over-long line is not searched
			_, err = r.ReadSlice('\n')
		}
		if re.Match(bytes.TrimRight(line, "\r\n")) && (len(line) > 0 || err == nil) {
			if hits == 0 {
				fmt.Fprintf(b, "\n%s:\n", path)
			}
			hits++
			fmt.Fprintf(b, "  %d: %s\n", number, strings.ToValidUTF8(rouse.Clip(string(bytes.TrimRight(line, "\r\n")), 500), "\ufffd"))
		}
		if err != nil {
			break
		}
	}
	return hits
}
