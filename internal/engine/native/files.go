package native

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"rouse"
	"rouse/internal/provider"
)

// Bounds of what a model is shown of a file.
const (
	maxLines    = 2000
	maxLine     = 2000     // bytes of one line
	maxText     = 50 << 10 // bytes of one tool's output
	maxAttached = 8 << 20  // bytes of an image or document
)

// loadFile gives the model an attached file: text as text, pictures and
// documents as they are.
func (t *turn) loadFile(f rouse.File) []provider.Block {
	text := func(s string) []provider.Block { return []provider.Block{{Kind: provider.TextBlock, Text: s}} }
	name := f.Filename
	switch {
	case strings.HasPrefix(f.URL, "file://"):
		u, err := url.Parse(f.URL)
		if err != nil {
			return text("[the attached file " + name + " has no usable address]")
		}
		return t.localFile(u.Path, f)
	case strings.HasPrefix(f.URL, "data:") && isText(f.Mime):
		head, payload, _ := strings.Cut(strings.TrimPrefix(f.URL, "data:"), ",")
		raw := []byte(payload)
		if strings.HasSuffix(head, ";base64") {
			b, err := base64.StdEncoding.DecodeString(payload)
			if err != nil {
				return text("[the attached file " + name + " could not be decoded]")
			}
			raw = b
		} else if s, err := url.PathUnescape(payload); err == nil {
			raw = []byte(s)
		}
		return text(fileText(name, raw))
	default:
		return []provider.Block{{Kind: provider.FileBlock, File: f}}
	}
}

func isText(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == "application/json" || mime == ""
}

// localFile reads a file of the server's machine that a person attached.
func (t *turn) localFile(path string, f rouse.File) []provider.Block {
	note := func(s string) []provider.Block {
		return []provider.Block{{Kind: provider.TextBlock, Text: "[the attached file " + path + " " + s + "]"}}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return note("could not be read")
	case info.IsDir():
		return []provider.Block{{Kind: provider.TextBlock, Text: "<directory path=\"" + path + "\">\n" + listing(path) + "</directory>"}}
	case info.Size() > maxAttached:
		return note("is too large to be shown; read it in pieces with the read tool")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return note("could not be read")
	}
	if a, ok := attachment(path, b); ok {
		return []provider.Block{{Kind: provider.FileBlock, File: a}}
	}
	if binary(b) {
		return note("is binary")
	}
	return []provider.Block{{Kind: provider.TextBlock, Text: fileText(path, b)}}
}

func fileText(name string, b []byte) string {
	s, cut := clipText(strings.ToValidUTF8(string(b), "\ufffd"))
	if cut {
		s += "\n(the file goes on)"
	}
	return "<file path=\"" + name + "\">\n" + s + "\n</file>"
}

// attachment makes a file that models see as it is: a picture or a PDF.
func attachment(path string, b []byte) (rouse.File, bool) {
	mime := http.DetectContentType(b)
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf":
		return rouse.File{Mime: mime, Filename: filepath.Base(path), URL: "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(b)}, true
	}
	return rouse.File{}, false
}

// binary guesses by the beginning: a zero byte, or too much that is no text.
func binary(b []byte) bool {
	head := b[:min(len(b), 8000)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	bad := 0
	for s := head; len(s) > 0; {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 && len(s) >= utf8.UTFMax {
			bad++
		}
		s = s[n:]
	}
	return bad*10 > len(head)
}

// clipText bounds text by lines and bytes, at a line's end where it can.
func clipText(s string) (string, bool) {
	cut := false
	if n := nthLine(s, maxLines); n < len(s) {
		s, cut = s[:n], true
	}
	if len(s) > maxText {
		s, cut = rouse.Clip(s, maxText), true
		if i := strings.LastIndexByte(s, '\n'); i > maxText/2 {
			s = s[:i+1]
		}
	}
	return s, cut
}

// nthLine is the offset at which line n (from 0) begins; len(s) if there are
// fewer.
func nthLine(s string, n int) int {
	at := 0
	for range n {
		i := strings.IndexByte(s[at:], '\n')
		if i < 0 {
			return len(s)
		}
		at += i + 1
	}
	return at
}

// listing names what is in a folder, folders with a slash.
func listing(dir string) string {
	const most = 500
	list, err := os.ReadDir(dir)
	if err != nil {
		return "(it cannot be read)\n"
	}
	var b strings.Builder
	for i, e := range list {
		if i == most {
			b.WriteString("… and more\n")
			break
		}
		b.WriteString(e.Name())
		if e.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	return b.String()
}
