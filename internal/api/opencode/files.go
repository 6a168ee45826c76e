package opencode

import (
	"bufio"
	"encoding/base64"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"rouse"
)

const (
	maxFileShown = 10 << 20 // bytes of one file that are read
	maxMatches   = 200      // of a text search
	maxFound     = 100      // files of a name search by default
	maxWalked    = 50000    // entries that a search looks at
)

// skipped are directories that a search does not enter.
var skipped = []string{".git", "node_modules", "vendor", ".venv", "target", "dist", ".cache"}

// inside opens the request's directory as a root that no path can leave, also
// not by a symbolic link.
func (h *Handler) inside(r *http.Request) (dir string, root *os.Root, err error) {
	if dir, err = h.directory(r); err != nil {
		return "", nil, err
	}
	root, err = os.OpenRoot(dir)
	if err != nil {
		return "", nil, rouse.FieldError("opencode: files", "directory", "directory: %q cannot be read", rouse.Clip(dir, 200))
	}
	return dir, root, nil
}

// relative is the path a request names inside the directory.
func relative(dir string, r *http.Request) (string, error) {
	path := r.URL.Query().Get("path")
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return "", rouse.FieldError("opencode: files", "path", "path: %q is not inside the directory", rouse.Clip(path, 200))
		}
		path = rel
	}
	path = filepath.Clean("./" + path)
	if !filepath.IsLocal(path) {
		return "", rouse.FieldError("opencode: files", "path", "path: %q is not inside the directory", rouse.Clip(path, 200))
	}
	return path, nil
}

type wireNode struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Absolute string `json:"absolute"`
	Type     string `json:"type"` // file or directory
	Ignored  bool   `json:"ignored"`
}

func (h *Handler) listFiles(w http.ResponseWriter, r *http.Request) {
	dir, root, err := h.inside(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer root.Close()
	path, err := relative(dir, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(path))
	if err != nil {
		h.fail(w, r, notThere(path))
		return
	}
	out := make([]wireNode, 0, len(entries))
	for _, e := range entries {
		n := wireNode{Name: e.Name(), Path: filepath.ToSlash(filepath.Join(path, e.Name())), Absolute: filepath.Join(dir, path, e.Name()), Type: "file"}
		if e.IsDir() {
			n.Type = "directory"
			n.Path += "/"
		}
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b wireNode) int { // directories first, as opencode 1.18.33
		return strings.Compare(a.Type+"\x00"+a.Name, b.Type+"\x00"+b.Name)
	})
	h.ok(w, out)
}

func notThere(path string) error {
	return rouse.FieldError("opencode: files", "path", "path: %q cannot be read", rouse.Clip(path, 200))
}

func (h *Handler) fileContent(w http.ResponseWriter, r *http.Request) {
	dir, root, err := h.inside(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer root.Close()
	path, err := relative(dir, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	body, err := readRegular(root, path)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if utf8.Valid(body) && !slices.Contains(body, 0) {
		h.ok(w, fact{"type": "text", "content": strings.TrimSpace(string(body))})
		return
	}
	kind := mime.TypeByExtension(filepath.Ext(path))
	if kind == "" {
		kind = "application/octet-stream"
	}
	h.ok(w, fact{"type": "binary", "content": base64.StdEncoding.EncodeToString(body), "encoding": "base64", "mimeType": kind})
}

// readRegular reads a regular file of bounded size: a pipe would never end.
func readRegular(root *os.Root, path string) ([]byte, error) {
	info, err := root.Stat(path)
	if err != nil {
		return nil, notThere(path)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileShown {
		return nil, rouse.FieldError("opencode: files", "path", "path: %q is no regular file of at most %d bytes", rouse.Clip(path, 200), maxFileShown)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, notThere(path)
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxFileShown))
	if err != nil {
		return nil, notThere(path)
	}
	return body, nil
}

// walk visits the entries below the root, bounded and without the directories
// that hold no source.
func walk(r *http.Request, root *os.Root, visit func(path string, d fs.DirEntry) bool) error {
	seen := 0
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if seen++; err != nil || seen > maxWalked || r.Context().Err() != nil {
			if d != nil && d.IsDir() && err != nil && path != "." {
				return fs.SkipDir
			}
			return fs.SkipAll
		}
		if d.IsDir() && path != "." && slices.Contains(skipped, d.Name()) {
			return fs.SkipDir
		}
		if path != "." && !visit(path, d) {
			return fs.SkipAll
		}
		return nil
	})
	return rouse.Wrap("opencode: search", err)
}

// findFile lists paths that contain the letters of the query in order; whole
// matches and short paths come first.
func (h *Handler) findFile(w http.ResponseWriter, r *http.Request) {
	_, root, err := h.inside(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer root.Close()
	q := r.URL.Query()
	query, limit := strings.ToLower(q.Get("query")), maxFound
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 && n <= 1000 {
		limit = n
	}
	kind := q.Get("type")
	var found []string
	err = walk(r, root, func(path string, d fs.DirEntry) bool {
		if d.IsDir() {
			path += "/"
		}
		wanted := kind == "" && (!d.IsDir() || q.Get("dirs") == "true") || kind == "file" && !d.IsDir() || kind == "directory" && d.IsDir()
		if wanted && subsequence(strings.ToLower(path), query) {
			found = append(found, path)
		}
		return true
	})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	rank := func(path string) int {
		low := strings.ToLower(path)
		switch {
		case strings.Contains(strings.ToLower(filepath.Base(path)), query):
			return len(path)
		case strings.Contains(low, query):
			return 1000 + len(path)
		}
		return 2000 + len(path)
	}
	slices.SortStableFunc(found, func(a, b string) int { return rank(a) - rank(b) })
	h.ok(w, notNil(found[:min(limit, len(found))]))
}

func subsequence(s, letters string) bool {
	for _, c := range letters {
		i := strings.IndexRune(s, c)
		if i < 0 {
			return false
		}
		s = s[i+utf8.RuneLen(c):]
	}
	return true
}

type wireSpanText struct {
	Text string `json:"text"`
}

type wireMatch struct {
	Path           wireSpanText   `json:"path"`
	Lines          wireSpanText   `json:"lines"`
	LineNumber     int            `json:"line_number"`
	AbsoluteOffset int64          `json:"absolute_offset"`
	Submatches     []wireSubmatch `json:"submatches"`
}

type wireSubmatch struct {
	Match wireSpanText `json:"match"`
	Start int          `json:"start"`
	End   int          `json:"end"`
}

// findText searches lines by a regular expression (RE2).
func (h *Handler) findText(w http.ResponseWriter, r *http.Request) {
	_, root, err := h.inside(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer root.Close()
	pattern, err := regexp.Compile(r.URL.Query().Get("pattern"))
	if err != nil || r.URL.Query().Get("pattern") == "" {
		h.fail(w, r, rouse.FieldError("opencode: search", "pattern", "pattern: expected a regular expression (RE2)"))
		return
	}
	out := []wireMatch{}
	err = walk(r, root, func(path string, d fs.DirEntry) bool {
		if d.Type().IsRegular() {
			out = matches(out, root, path, pattern)
		}
		return len(out) < maxMatches
	})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, out)
}

func matches(out []wireMatch, root *os.Root, path string, pattern *regexp.Regexp) []wireMatch {
	f, err := root.Open(path)
	if err != nil {
		return out
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxFileShown))
	lines.Buffer(nil, 1<<20)
	offset := int64(0)
	for n := 1; lines.Scan() && len(out) < maxMatches; n++ {
		line := lines.Bytes()
		if slices.Contains(line, 0) {
			return out // binary
		}
		if at := pattern.FindAllIndex(line, 20); at != nil && utf8.Valid(line) {
			m := wireMatch{Path: wireSpanText{path}, Lines: wireSpanText{string(line) + "\n"}, LineNumber: n, AbsoluteOffset: offset}
			for _, span := range at {
				m.Submatches = append(m.Submatches, wireSubmatch{wireSpanText{string(line[span[0]:span[1]])}, span[0], span[1]})
			}
			out = append(out, m)
		}
		offset += int64(len(line)) + 1
	}
	return out
}
