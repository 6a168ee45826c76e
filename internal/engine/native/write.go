package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"rouse/internal/linediff"
)

var writeTool = tool{
	name: "write", permission: "edit",
	description: `Writes a whole file, new or over an old one; folders are made. To change part of a file use edit.`,
	schema:      schemaOf("filePath*:string:The file, absolute or relative to the working directory", "content*:string:The whole content"),
	run:         runWrite,
}

func runWrite(k *call) (result, error) {
	var in struct {
		FilePath string
		Content  *string
	}
	if err := k.decode(&in); err != nil {
		return result{}, err
	}
	switch {
	case in.FilePath == "":
		return result{}, k.missing("filePath")
	case in.Content == nil:
		return result{}, k.missing("content")
	}
	path := k.t.resolve(in.FilePath)
	old, exists, err := k.before(path)
	if err != nil {
		return result{}, err
	}
	d := linediff.Unified(k.t.relative(path), old, *in.Content)
	if err := k.change(path, d); err != nil {
		return result{}, err
	}
	if err := k.put(path, *in.Content); err != nil {
		return result{}, err
	}
	return result{title: k.t.relative(path), output: fmt.Sprintf("Wrote %d bytes.", len(*in.Content)), metadata: map[string]any{
		"diagnostics": map[string]any{}, "filepath": path, "exists": exists, "diff": d.Text, "truncated": false}}, nil
}

// before reads what a change would replace, after asking for the place.
func (k *call) before(path string) (old string, exists bool, err error) {
	if err := k.enter(path, false); err != nil {
		return "", false, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, toolError("The file " + path + " cannot be read: " + reason(err))
	case !info.Mode().IsRegular():
		return "", false, toolError(path + " is no regular file.")
	case info.Size() > 16<<20:
		return "", false, toolError(path + " is too large to be changed here.")
	case k.t.changedSince(path, info):
		return "", false, toolError("The file " + path + " changed since you read it. Read it again first.")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", false, toolError("The file " + path + " cannot be read: " + reason(err))
	}
	return string(b), true, nil
}

// change asks for a change of a file.
func (k *call) change(path string, d linediff.Diff) error {
	err := k.permit(wish{permission: "edit", patterns: []string{k.t.relative(path)}, always: []string{"*"},
		metadata: map[string]any{"filepath": path, "diff": d.Text}})
	if err == nil {
		k.running("", nil)
	}
	return err
}

// put writes a file and remembers it as the model knows it.
func (k *call) put(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return toolError("The folder of " + path + " cannot be made: " + reason(err))
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return toolError("The file " + path + " cannot be written: " + reason(err))
	}
	if info, err := os.Stat(path); err == nil {
		k.t.remember(path, info)
	}
	return nil
}

// remember notes a file as the model saw it.
func (t *turn) remember(path string, info os.FileInfo) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.c.seen[path] = stampOf(info)
}

// changedSince reports that a file is not as the model last saw it.
func (t *turn) changedSince(path string, info os.FileInfo) bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	s, ok := t.c.seen[path]
	return ok && s != stampOf(info)
}
