package native

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rouse"
)

var readTool = tool{
	name: "read",
	description: `Reads a file, with line numbers, or lists a directory. Up to 2000 lines from offset (the first line is 1); long lines are cut.
Pictures and PDFs are shown as they are. Binary files are refused.`,
	schema: schemaOf("filePath*:string:The file or directory, absolute or relative to the working directory",
		"offset:number:The first line to read, from 1", "limit:number:How many lines to read"),
	run: runRead,
}

// readState is the metadata of a call.
type readState struct {
	Preview   string   `json:"preview"`
	Truncated bool     `json:"truncated"`
	Loaded    []string `json:"loaded"`
}

func runRead(k *call) (result, error) {
	var in struct {
		FilePath      string
		Offset, Limit float64
	}
	if err := k.decode(&in); err != nil {
		return result{}, err
	}
	if in.FilePath == "" {
		return result{}, k.missing("filePath")
	}
	path := k.t.resolve(in.FilePath)
	info, statErr := os.Stat(path)
	if err := k.enter(path, statErr == nil && info.IsDir()); err != nil {
		return result{}, err
	}
	if err := k.permit(wish{permission: "read", patterns: []string{path}, always: []string{"*"}, metadata: map[string]string{"filepath": path}}); err != nil {
		return result{}, err
	}
	k.running("", nil)
	switch {
	case errors.Is(statErr, os.ErrNotExist):
		return result{}, toolError("There is no file " + path + "." + similar(path))
	case statErr != nil:
		return result{}, toolError("The file " + path + " cannot be read: " + reason(statErr))
	case info.IsDir():
		list := listing(path)
		return result{title: k.t.relative(path), output: "<directory path=\"" + path + "\">\n" + list + "</directory>",
			metadata: readState{Preview: clipPreview(list), Loaded: []string{}}}, nil
	case !info.Mode().IsRegular():
		return result{}, toolError(path + " is no regular file.")
	}
	return k.readFile(path, info, int(in.Offset), int(in.Limit))
}

func (k *call) readFile(path string, info os.FileInfo, offset, limit int) (result, error) {
	f, err := os.Open(path)
	if err != nil {
		return result{}, toolError("The file " + path + " cannot be read: " + reason(err))
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 8<<10)
	head, _ := r.Peek(8000) // a short file gives less
	if info.Size() <= maxAttached {
		if _, ok := attachment(path, head); ok {
			b, err := io.ReadAll(r)
			if err != nil {
				return result{}, toolError("The file " + path + " cannot be read: " + reason(err))
			}
			a, _ := attachment(path, b)
			return result{title: k.t.relative(path), output: "The file is shown as an attachment.", files: []rouse.File{a},
				metadata: readState{Preview: "attachment", Loaded: []string{}}}, nil
		}
	}
	if binary(head) {
		return result{}, toolError("The file " + path + " is binary.")
	}
	k.t.remember(path, info)
	if limit <= 0 || limit > maxLines {
		limit = maxLines
	}
	text, last, more, err := numbered(r, max(1, offset), limit)
	switch {
	case err != nil:
		return result{}, toolError("The file " + path + " cannot be read: " + reason(err))
	case text == "" && offset > 1:
		return result{}, toolError(fmt.Sprintf("The file %s has fewer than %d lines.", path, offset))
	}
	out := "<file path=\"" + path + "\">\n" + text
	if more {
		out += fmt.Sprintf("(The file goes on: read again with offset %d.)\n", last+1)
	}
	return result{title: k.t.relative(path), output: out + "</file>", metadata: readState{Preview: clipPreview(text), Truncated: more, Loaded: []string{}}}, nil
}

// numbered reads lines from offset on, each with its number, within the bounds.
func numbered(r *bufio.Reader, offset, limit int) (text string, last int, more bool, err error) {
	var b strings.Builder
	for n := 1; ; n++ {
		line, cut, err := oneLine(r)
		if err == io.EOF {
			return b.String(), last, false, nil
		}
		if err != nil {
			return "", 0, false, err
		}
		if n < offset {
			continue
		}
		if n >= offset+limit || b.Len() >= maxText {
			return b.String(), last, true, nil
		}
		if cut {
			line += "…"
		}
		fmt.Fprintf(&b, "%d: %s\n", n, strings.ToValidUTF8(line, "\ufffd"))
		last = n
	}
}

// oneLine reads a line without its end; what is beyond the bound is skipped.
func oneLine(r *bufio.Reader) (line string, cut bool, err error) {
	var b []byte
	for {
		piece, err := r.ReadSlice('\n')
		if room := maxLine + 1 - len(b); room > 0 {
			b = append(b, piece[:min(room, len(piece))]...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(b) == 0:
			return "", false, io.EOF
		case err != nil && err != io.EOF:
			return "", false, err
		}
		s := strings.TrimRight(string(b), "\r\n")
		if len(s) > maxLine {
			return rouse.Clip(s, maxLine), true, nil
		}
		return s, false, nil
	}
}

// similar names files that may have been meant.
func similar(path string) string {
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	want := strings.ToLower(filepath.Base(path))
	var names []string
	for _, e := range list {
		n := strings.ToLower(e.Name())
		if len(names) < 3 && (strings.Contains(n, want) || strings.Contains(want, n)) {
			names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	if names == nil {
		return ""
	}
	return " Did you mean " + strings.Join(names, " or ") + "?"
}

// reason is the cause of a file error, without the path that is named already.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func clipPreview(s string) string { return s[:nthLine(s, 20)] }
