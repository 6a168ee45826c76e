package acp

import (
	"encoding/json"
	"maps"
	"strings"

	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
	"rouse/internal/linediff"
)

// permissions are the names by which rules speak of a kind of tool.
var permissions = map[string]string{"execute": "bash", "edit": "edit", "delete": "edit", "move": "edit", "read": "read",
	"search": "grep", "fetch": "webfetch", "think": "task"}

// drawnAs is the tool's name as OpenCode's clients know it, so that they draw
// it as their own. What they do not know keeps the agent's name for it; they
// draw that with its arguments.
func (t *toolCall) drawnAs() string {
	has := func(key string) bool { return wire.Text(wire.At(t.input, key)) != "" }
	switch t.kind {
	case "execute":
		return "bash"
	case "read":
		if has("filePath") {
			return "read"
		}
	case "edit":
		if has("content") && !has("oldString") {
			return "write"
		}
		return "edit"
	case "search":
		switch own := strings.ToLower(t.own); {
		case strings.Contains(own, "glob"):
			return "glob"
		case has("pattern") && (own == "" || strings.Contains(own, "grep") || strings.Contains(own, "search")):
			return "grep"
		}
	case "fetch":
		if has("url") {
			return "webfetch"
		}
		if has("query") {
			return "websearch"
		}
	case "think":
		if has("description") && has("prompt") {
			return "task"
		}
	}
	return orElse(t.own, orElse(t.kind, "tool"))
}

// todoTool is OpenCode's own tool for its list of tasks; opencode 1.18.33 tells
// that list by nothing else.
const todoTool = "todowrite"

// todosOf reads that tool's arguments.
func todosOf(input json.RawMessage) (engine.Plan, bool) {
	var in struct{ Todos []wire.PlanEntry }
	if json.Unmarshal(input, &in) != nil || in.Todos == nil {
		return engine.Plan{}, false
	}
	return planOf(in.Todos), true
}

// ownName is the agent's name of a tool: told, in a vendor's field, or as the
// title of a call that has just begun (opencode 1.18.33).
func ownName(w *wire.Tool, meta json.RawMessage) string {
	for _, name := range []string{w.Name, wire.Text(wire.At(meta, "claudeCode", "toolName")), wire.Text(wire.At(meta, "toolName"))} {
		if name != "" {
			return name
		}
	}
	if w.Status != "pending" || strings.ContainsFunc(w.Title, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return ""
	}
	return w.Title
}

// diffOf is what a call changes: the agent's own diff, which has the lines
// around it, or else the two texts that the protocol brings.
func (t *toolCall) diffOf(w *wire.Tool) string {
	if diff := wire.Text(wire.At(t.input, "diff")); diff != "" {
		if i := strings.Index(diff, "--- "); i > 0 {
			diff = diff[i:]
		}
		return diff
	}
	for _, part := range w.Content {
		if part.Type == "diff" {
			return linediff.Unified(part.Path, part.OldText, part.Text).Text
		}
	}
	return ""
}

// inputNames are the arguments that clients draw, with what agents call them.
var inputNames = map[string][]string{
	"filePath":  {"file_path", "path", "absolute_path", "abs_path", "fileName", "notebook_path"},
	"oldString": {"old_string", "old_str"},
	"newString": {"new_string", "new_str"},
	"content":   {"file_text", "contents"},
	"command":   {"cmd"},
}

// inputOf is a call's arguments as a JSON object, those that were told before
// and the new ones, with the names that clients know beside the agent's own.
func (t *toolCall) inputOf(w *wire.Tool) json.RawMessage {
	fresh, in := rawObject{}, rawObject{}
	if json.Unmarshal(w.RawInput, &fresh) != nil {
		fresh = rawObject{}
		if len(w.RawInput) > 0 {
			fresh["input"] = w.RawInput
		}
	}
	if cmd := fresh["command"]; len(cmd) > 0 && cmd[0] == '[' { // codex-acp 0.16: an argument vector
		var argv []string
		if json.Unmarshal(cmd, &argv) == nil && len(argv) > 0 {
			fresh["command"] = metadata(commandLine(argv))
		}
	}
	for known, others := range inputNames {
		for _, other := range others {
			if fresh[known] == nil && wire.Text(fresh[other]) != "" {
				fresh[known] = fresh[other]
			}
		}
	}
	if t.toldInput && t.input != nil {
		_ = json.Unmarshal(t.input, &in) // our own, an object
	}
	maps.Copy(in, fresh)
	switch t.kind {
	case "execute":
		if !t.toldInput && in["command"] == nil { // gemini 0.61.0 tells it in the title alone
			in["command"] = metadata(t.title)
		}
	case "search":
		if !t.toldInput && in["pattern"] == nil {
			in["pattern"] = metadata(strings.Trim(t.title, "'"))
		}
	case "read", "edit", "delete", "move":
		if in["filePath"] == nil && len(w.Locations) > 0 {
			in["filePath"] = metadata(w.Locations[0].Path)
		}
		for _, part := range w.Content {
			if part.Type != "diff" {
				continue
			}
			if in["filePath"] == nil {
				in["filePath"] = metadata(part.Path)
			}
			if part.OldText == "" && in["content"] == nil && in["oldString"] == nil { // claude-agent-acp 0.101.0 keeps it to the diff
				in["content"] = metadata(part.Text)
			}
		}
	}
	return metadata(in)
}

// commandLine is what a vector runs: the script of a shell, or its words.
func commandLine(argv []string) string {
	if n := len(argv); n >= 3 && strings.HasPrefix(argv[n-2], "-") && strings.HasSuffix(argv[n-2], "c") {
		return argv[n-1]
	}
	return strings.Join(argv, " ")
}

// outputOf is what a call has shown. What a command printed stands in its raw
// output where an agent wraps it in words of its own (qwen 0.24.4).
func (t *toolCall) outputOf(w *wire.Tool) string {
	if t.kind == "execute" {
		if s := printed(w.RawOutput, "output", "formatted_output", "stdout"); s != "" {
			return s
		}
	}
	var parts []string
	for _, p := range w.Content {
		if p.Type == "content" && p.Text != "" {
			parts = append(parts, unfenced(p.Text))
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, "\n")
	}
	if s := wire.Text(w.RawOutput); s != "" {
		return s
	}
	return printed(w.RawOutput, "output", "content", "formatted_output", "stdout", "error")
}

// printed is the first of the fields that has text.
func printed(raw json.RawMessage, keys ...string) string {
	for _, key := range keys {
		if s := wire.Text(wire.At(raw, key)); s != "" {
			return s
		}
	}
	return ""
}

// unfenced drops a code fence that is around the whole text.
func unfenced(s string) string {
	rest, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	_, rest, ok = strings.Cut(rest, "\n")
	body, closed := strings.CutSuffix(strings.TrimRight(rest, "\n"), "```")
	if !ok || !closed {
		return s
	}
	return strings.TrimSuffix(body, "\n")
}
