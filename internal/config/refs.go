package config

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"
)

// maxReference bounds a file that is named by {file:…}: keys and prompts.
const maxReference = 1 << 20

// refs resolves {env:NAME} and {file:PATH} inside strings.
type refs struct {
	getenv func(string) string
	home   string
	open   func(string) (io.ReadCloser, error)
}

func openFile(name string) (io.ReadCloser, error) { return os.Open(name) }

// expand replaces every reference in text. An unset or empty variable gives ""
// and a warning; a file that cannot be read is an error. What comes out of a
// reference is not expanded again.
func (s *source) expand(v *hujson.Value, path, text string) (string, error) {
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '{')
		if i < 0 {
			break
		}
		out.WriteString(text[:i])
		text = text[i:]
		kind, name, rest, ok := reference(text)
		if !ok {
			out.WriteByte('{')
			text = text[1:]
			continue
		}
		text = rest
		if kind == "env" {
			val := s.refs.getenv(name)
			if val == "" {
				s.warnings = append(s.warnings, s.place(v)+": "+path+": the environment variable "+quote(name)+" is not set; an empty text is used")
			}
			out.WriteString(val)
			continue
		}
		val, why := s.refs.file(s.dir, name)
		if why != "" {
			return "", s.errorAt(v, path, "the file %s of {file:…} %s", quote(name), why)
		}
		out.WriteString(val)
	}
	if out.Len() == 0 {
		return text, nil
	}
	out.WriteString(text)
	return out.String(), nil
}

// reference splits a text that begins with "{env:NAME}" or "{file:PATH}".
func reference(text string) (kind, name, rest string, ok bool) {
	for _, kind := range []string{"env", "file"} {
		body, found := strings.CutPrefix(text, "{"+kind+":")
		if !found {
			continue
		}
		name, rest, closed := strings.Cut(body, "}")
		if name = strings.TrimSpace(name); !closed || name == "" || strings.ContainsAny(name, "{\n") {
			return "", "", "", false
		}
		return kind, name, rest, true
	}
	return "", "", "", false
}

// file reads what {file:name} names, without the white space around it. why
// says what is wrong, without any of the content.
func (r refs) file(dir, name string) (text, why string) {
	path := name
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		path = filepath.Join(r.home, rest)
	} else if !filepath.IsAbs(name) {
		path = filepath.Join(dir, name)
	}
	f, err := r.open(path)
	switch {
	case os.IsNotExist(err):
		return "", "does not exist"
	case os.IsPermission(err):
		return "", "may not be read"
	case err != nil:
		return "", "cannot be opened"
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReference+1))
	switch {
	case err != nil:
		return "", "cannot be read"
	case len(data) > maxReference:
		return "", "is larger than 1 MiB"
	}
	return strings.TrimSpace(string(data)), ""
}
