package cli

import (
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"rouse/internal/client"
)

// maxPrompt bounds what is read for one prompt, so that it fits into the
// server's bound for a body when it is encoded.
const maxPrompt = 7 << 20

// parts builds the prompt from the words of the command line, what is piped
// in, and files.
func (c *runCmd) parts(a *app) ([]client.PartInput, error) {
	text := strings.Join(c.Message, " ")
	piped, err := a.piped()
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(piped) != "" {
		if text != "" {
			text += "\n\n"
		}
		text += piped
	}
	if strings.TrimSpace(text) == "" {
		return nil, usage("there is no prompt: give one as an argument or pipe it in")
	}
	if err := readable(text); err != nil {
		return nil, err
	}
	parts := []client.PartInput{{Type: "text", Text: text}}
	total := len(text)
	for _, name := range c.File {
		p, n, err := filePart(name)
		if err != nil {
			return nil, err
		}
		if total += n; total > maxPrompt {
			return nil, usage("the prompt with its files is larger than %d MB", maxPrompt>>20)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// readable refuses a prompt that could only be sent mutilated.
func readable(prompt string) error {
	if utf8.ValidString(prompt) {
		return nil
	}
	return usage("the prompt is not valid UTF-8: convert it first (iconv -t utf-8)")
}

// piped reads stdin when it is a pipe or a file, and nothing when it is a
// terminal or a device.
func (a *app) piped() (string, error) {
	if f, ok := a.in.(*os.File); ok {
		st, err := f.Stat()
		if err != nil || st.Mode()&os.ModeCharDevice != 0 {
			return "", nil
		}
	}
	return read(a.in, "stdin")
}

func read(r io.Reader, what string) (string, error) {
	if r == nil {
		return "", nil
	}
	data, err := io.ReadAll(io.LimitReader(r, maxPrompt+1))
	switch {
	case err != nil:
		return "", usage("%s cannot be read", what)
	case len(data) > maxPrompt:
		return "", usage("%s is larger than %d MB", what, maxPrompt>>20)
	}
	return string(data), nil
}

// filePart attaches a file by its content, so that it also reaches a server
// on another machine.
func filePart(name string) (client.PartInput, int, error) {
	f, err := os.Open(name)
	if err != nil {
		return client.PartInput{}, 0, usage("--file %s: the file cannot be opened", name)
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return client.PartInput{}, 0, usage("--file %s: it is a directory", name)
	}
	text, err := read(f, "--file "+name)
	if err != nil {
		return client.PartInput{}, 0, err
	}
	kind := mimeOf(name, text)
	return client.PartInput{
		Type: "file", Mime: kind, Filename: filepath.Base(name),
		URL: fmt.Sprintf("data:%s;base64,%s", kind, base64.StdEncoding.EncodeToString([]byte(text))),
	}, len(text), nil
}

// mimeOf tells images and PDFs by their content; every text is text/plain,
// whatever its language.
func mimeOf(name, text string) string {
	kind, _, _ := strings.Cut(http.DetectContentType([]byte(text)), ";")
	switch {
	case strings.HasPrefix(kind, "text/"):
		return "text/plain"
	case kind == "application/octet-stream":
		if byName, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(name)), ";"); byName != "" {
			return byName
		}
	}
	return kind
}

// absolute makes a path absolute; "" is the current directory.
func absolute(dir string) (string, error) { return filepath.Abs(firstText(dir, ".")) }
