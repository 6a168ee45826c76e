package native

import (
	"fmt"
	"strings"

	"rouse/internal/linediff"
)

var editTool = tool{
	name: "edit",
	description: `Replaces text in a file. oldString must occur exactly once, so give enough lines around it, with the file's own indentation and without the line numbers of read; or set replaceAll.
With an empty oldString a file that does not exist is made.`,
	schema: schemaOf("filePath*:string:The file, absolute or relative to the working directory", "oldString*:string:The text to replace",
		"newString*:string:What stands there afterwards", "replaceAll:boolean:Replace every occurrence"),
	run: runEdit,
}

func runEdit(k *call) (result, error) {
	var in struct {
		FilePath             string
		OldString, NewString *string
		ReplaceAll           bool
	}
	if err := k.decode(&in); err != nil {
		return result{}, err
	}
	switch {
	case in.FilePath == "":
		return result{}, k.missing("filePath")
	case in.OldString == nil:
		return result{}, k.missing("oldString")
	case in.NewString == nil:
		return result{}, k.missing("newString")
	case *in.OldString == *in.NewString:
		return result{}, toolError("oldString and newString are the same.")
	}
	path := k.t.resolve(in.FilePath)
	old, exists, err := k.before(path)
	if err != nil {
		return result{}, err
	}
	now, n, err := replaced(path, old, exists, *in.OldString, *in.NewString, in.ReplaceAll)
	if err != nil {
		return result{}, err
	}
	d := linediff.Unified(k.t.relative(path), old, now)
	if err := k.change(path, d); err != nil {
		return result{}, err
	}
	if err := k.put(path, now); err != nil {
		return result{}, err
	}
	return result{title: k.t.relative(path), output: fmt.Sprintf("Replaced %d occurrence(s).", n), metadata: map[string]any{
		"diagnostics": map[string]any{}, "diff": d.Text, "truncated": false,
		"filediff": map[string]any{"file": path, "patch": d.Text, "additions": d.Added, "deletions": d.Removed}}}, nil
}

// replaced gives the file's text after the change and how often it was made.
func replaced(path, text string, exists bool, from, to string, all bool) (string, int, error) {
	switch {
	case from == "" && exists && text != "":
		return "", 0, toolError("The file " + path + " exists: oldString must not be empty.")
	case from == "":
		return to, 1, nil
	case !exists:
		return "", 0, toolError("There is no file " + path + ".")
	}
	n := strings.Count(text, from)
	if n == 0 && strings.Contains(text, "\r\n") { // models write plain line ends
		from, to = strings.ReplaceAll(from, "\n", "\r\n"), strings.ReplaceAll(to, "\n", "\r\n")
		n = strings.Count(text, from)
	}
	switch {
	case n == 0:
		return "", 0, toolError("oldString does not occur in " + path + ". It must match exactly, blanks and line ends included; read the file again.")
	case n > 1 && !all:
		return "", 0, toolError(fmt.Sprintf("oldString occurs %d times in %s. Give more lines around it, or set replaceAll.", n, path))
	case all:
		return strings.ReplaceAll(text, from, to), n, nil
	}
	return strings.Replace(text, from, to, 1), 1, nil
}
