package acp

import (
	"encoding/json"
	"strings"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
	"rouse/internal/linediff"
)

// toolCall is what is known of a call; agents tell it piece by piece, and some
// only its permission and its end (gemini 0.61.0).
type toolCall struct {
	name, title string
	input       json.RawMessage
	output      string
	diff        string
	running     bool
	ended       bool
}

// toolNames are the tools of a kind under the names that OpenCode's clients
// draw and that permission rules use. Agents' own names stay in the title.
var toolNames = map[string]string{"execute": "bash", "edit": "edit", "delete": "edit", "move": "edit", "read": "read",
	"search": "grep", "fetch": "webfetch", "think": "task"}

// tool folds what a message tells of a call and says what changed.
func (c *Conversation) tool(w *wire.Tool, meta json.RawMessage) []engine.Body {
	if w.ID == "" {
		return nil
	}
	call := c.tools[w.ID]
	if call == nil {
		call = &toolCall{}
		c.tools[w.ID] = call
	}
	if call.ended {
		return nil
	}
	changed := call.learn(w, meta)
	var out []engine.Body
	running := w.Status == "in_progress" || w.Status == "completed" || w.Status == "failed" || w.Status == "cancelled"
	switch {
	case running && !call.running, call.running && changed:
		call.running = true
		out = append(out, call.started(w.ID, rouse.ToolRunning))
	case !call.running && changed:
		out = append(out, call.started(w.ID, rouse.ToolPending))
	}
	switch w.Status {
	case "completed":
		call.ended = true
		out = append(out, engine.ToolEnded{CallID: w.ID, Title: call.title, Output: call.output, Metadata: call.metadata()})
	case "failed", "cancelled":
		call.ended = true
		out = append(out, engine.ToolEnded{CallID: w.ID, Title: call.title, Error: orElse(call.output, "the tool failed"), Metadata: call.metadata()})
	default:
		if len(out) == 0 {
			out = append(out, engine.ToolProgress{CallID: w.ID, Title: call.title, Metadata: call.metadata()})
		}
	}
	return out
}

// learn takes what is new and says whether the call itself changed, not only
// its output.
func (t *toolCall) learn(w *wire.Tool, meta json.RawMessage) (changed bool) {
	if t.name == "" || w.Kind != "" && t.name == "tool" {
		name := toolNames[w.Kind]
		if name == "" {
			name = orElse(w.Name, orElse(w.Kind, "tool"))
		}
		changed = changed || t.name != name
		t.name = name
	}
	if w.Title != "" && w.Title != t.title {
		t.title, changed = w.Title, true
	}
	if len(w.RawInput) > 0 || t.input == nil {
		input := inputOf(w)
		changed = changed || string(input) != string(t.input)
		t.input = input
	}
	for _, part := range w.Content {
		if part.Type == "diff" {
			t.diff = linediff.Unified(part.Path, part.OldText, part.Text).Text
		}
	}
	if text := outputOf(w); text != "" {
		t.output = text
	} else if more := wire.Text(wire.At(meta, "terminal_output_delta", "data")); more != "" { // codex-acp 2.6
		t.output += more
	}
	return changed
}

func (t *toolCall) started(id string, state rouse.ToolState) engine.ToolStarted {
	return engine.ToolStarted{CallID: id, Name: t.name, Title: t.title, State: state, Input: t.input}
}

// metadata is what clients draw beside the input: output so far and diff.
func (t *toolCall) metadata() json.RawMessage {
	m := map[string]string{"output": t.output}
	if t.title != "" {
		m["description"] = t.title
	}
	if t.diff != "" {
		m["diff"] = t.diff
	}
	return metadata(m)
}

// inputOf is a call's arguments as a JSON object, with the names that clients
// know beside the agent's own.
func inputOf(w *wire.Tool) json.RawMessage {
	in := rawObject{}
	if json.Unmarshal(w.RawInput, &in) != nil {
		in = rawObject{}
		if len(w.RawInput) > 0 {
			in["input"] = w.RawInput
		}
	}
	if in["filePath"] == nil {
		for _, key := range []string{"file_path", "path", "absolute_path", "abs_path", "fileName", "notebook_path"} {
			if p := wire.Text(in[key]); p != "" {
				in["filePath"] = metadata(p)
				break
			}
		}
		if in["filePath"] == nil && len(w.Locations) > 0 && w.Kind != "execute" && w.Kind != "search" {
			in["filePath"] = metadata(w.Locations[0].Path)
		}
	}
	for own, theirs := range map[string]string{"oldString": "old_string", "newString": "new_string"} {
		if in[own] == nil && in[theirs] != nil {
			in[own] = in[theirs]
		}
	}
	if cmd := in["command"]; len(cmd) > 0 && cmd[0] == '[' { // codex-acp 0.16: an argument vector
		var argv []string
		if json.Unmarshal(cmd, &argv) == nil && len(argv) > 0 {
			in["command"] = metadata(commandLine(argv))
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

// outputOf is what a call has shown.
func outputOf(w *wire.Tool) string {
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
	for _, key := range []string{"output", "content", "formatted_output", "stdout", "error"} {
		if s := wire.Text(wire.At(w.RawOutput, key)); s != "" {
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

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
