package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
)

// toolCall is what is known of a call; agents tell it piece by piece, and some
// only its permission and its end (gemini 0.61.0).
type toolCall struct {
	kind, own   string // the protocol's kind, the agent's own name of the tool
	name, title string // the name under which clients draw it
	input       json.RawMessage
	toldInput   bool // the agent tells arguments at all
	printed     func(string) string
	output      string
	diff        string
	running     bool
	ended       bool
}

// tool folds what a message tells of a call and says what changed.
func (c *Conversation) tool(w *wire.Tool, meta json.RawMessage) []engine.Body {
	if w.ID == "" {
		return nil
	}
	call := c.tools[w.ID]
	if call == nil {
		call = &toolCall{printed: c.e.agent.Printed}
		if c.e.agent.ToolOf != nil {
			call.own = c.e.agent.ToolOf(w.ID)
		}
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
	if plan, ok := todosOf(call.input); ok && changed && call.name == todoTool {
		out = append(out, plan)
	}
	switch w.Status {
	case "completed":
		out = append(out, engine.ToolEnded{CallID: w.ID, Title: call.title, Output: bounded(call.output, outputKept), Metadata: call.metadata(outputKept)})
		*call = toolCall{ended: true} // a turn may have hundreds
	case "failed", "cancelled":
		out = append(out, engine.ToolEnded{CallID: w.ID, Title: call.title, Error: orElse(call.output, "the tool failed"), Metadata: call.metadata(outputKept)})
		*call = toolCall{ended: true}
	default:
		if len(out) == 0 {
			out = append(out, engine.ToolProgress{CallID: w.ID, Title: call.title, Metadata: call.metadata(outputShown)})
		}
	}
	return out
}

// The bounds of a call's output, in bytes: what is kept, and what is shown
// while it runs. Agents tell it again with every line, or add to it for hours.
const (
	outputKept  = 256 << 10
	outputShown = 32 << 10
)

// bounded keeps the first and the last half of a text.
func bounded(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, tail := s[:most/2], s[len(s)-most/2:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n… %d bytes are left out …\n", len(s)-most) + strings.ToValidUTF8(tail, "")
}

// learn takes what is new and says whether the call itself changed, not only
// its output.
func (t *toolCall) learn(w *wire.Tool, meta json.RawMessage) (changed bool) {
	t.kind, t.own = orElse(w.Kind, t.kind), orElse(t.own, ownName(w, meta))
	if w.Title != "" && w.Title != t.title {
		t.title, changed = w.Title, true
	}
	if len(w.RawInput) > 0 && !t.toldInput {
		t.toldInput, t.input = true, nil
	}
	if len(w.RawInput) > 0 || !t.toldInput {
		input := t.inputOf(w)
		changed = changed || string(input) != string(t.input)
		t.input = input
	}
	if name := t.drawnAs(); name != t.name {
		t.name, changed = name, true
	}
	if diff := t.diffOf(w); diff != "" {
		t.diff = diff
	}
	if text := t.outputOf(w); text != "" {
		if t.output = text; t.printed != nil && t.kind == "execute" {
			t.output = t.printed(text)
		}
	}
	for _, key := range []string{"terminal_output_delta", "terminal_output"} { // codex-acp 2.6, pi-acp 0.0.34
		t.output += wire.Text(wire.At(meta, key, "data"))
	}
	if len(t.output) > 2*outputKept {
		t.output = bounded(t.output, outputKept)
	}
	return changed
}

func (t *toolCall) started(id string, state rouse.ToolState) engine.ToolStarted {
	return engine.ToolStarted{CallID: id, Name: t.name, Title: t.title, State: state, Input: t.input}
}

// metadata is what clients draw beside the input: at most so much of the output
// so far, and the diff.
func (t *toolCall) metadata(most int) json.RawMessage {
	m := map[string]string{"output": bounded(t.output, most)}
	if t.title != "" {
		m["description"] = t.title
	}
	if t.diff != "" {
		m["diff"] = t.diff
		m["filepath"] = wire.Text(wire.At(t.input, "filePath")) // a permission's dialog draws the file by it
	}
	return metadata(m)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
