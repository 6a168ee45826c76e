package acp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
)

// What agents tell of a call, message by message, and how clients draw it.
func TestDrawn(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages []string // updates
		tool     string
		input    string // as JSON, of the keys that are drawn
		output   string
		diff     string
	}{
		{"opencode, a search for files", []string{`{"title":"glob","kind":"search","status":"pending","rawInput":{}}`,
			`{"title":"*.txt","kind":"search","status":"in_progress","rawInput":{"pattern":"*.txt"}}`}, "glob", `{"pattern":"*.txt"}`, "", ""},
		{"opencode, an edit keeps the lines around it", []string{`{"title":"edit","kind":"edit","status":"pending","rawInput":{}}`,
			`{"kind":"edit","status":"in_progress","rawInput":{"filepath":"/a","filePath":"/a","oldString":"b","newString":"c","diff":"Index: /a\n===\n--- /a\n+++ /a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"}}`,
			`{"status":"completed","content":[{"type":"diff","path":"/a","oldText":"b","newText":"c"}],"rawOutput":{"output":"done"}}`},
			"edit", `{"filePath":"/a","oldString":"b","newString":"c"}`, "done", "--- /a\n+++ /a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		{"opencode, its tasks", []string{`{"title":"todowrite","kind":"other","status":"pending","rawInput":{}}`,
			`{"title":"1 todos","kind":"other","status":"in_progress","rawInput":{"todos":[{"content":"x"}]}}`}, "todowrite", `{}`, "", ""},
		{"claude, a new file", []string{`{"title":"Write","name":"Write","kind":"edit","status":"pending","rawInput":{}}`,
			`{"title":"Write a","rawInput":{"file_path":"/a"},"content":[{"type":"diff","path":"/a","oldText":null,"newText":"new\n"}]}`},
			"write", `{"filePath":"/a","content":"new\n"}`, "", "--- /a\n+++ /a\n@@ -0,0 +1,1 @@\n+new\n"},
		{"claude, a command", []string{`{"title":"Terminal","name":"Bash","kind":"execute","status":"pending","rawInput":{}}`, `{"title":"ls","rawInput":{"command":"ls"}}`,
			"{\"status\":\"completed\",\"rawOutput\":\"a\",\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"```console\\na\\n```\"}}]}"},
			"bash", `{"command":"ls"}`, "a", ""},
		{"gemini, a command that only its title tells", []string{`{"title":"ls","kind":"execute","status":"pending"}`, `{"title":"ls","kind":"execute","status":"completed","content":[]}`},
			"bash", `{"command":"ls"}`, "", ""},
		{"qwen, what was printed and not how it says so", []string{`{"title":"Shell","kind":"execute","status":"pending","rawInput":{}}`, `{"title":"ls","rawInput":{"command":"ls"}}`,
			`{"status":"completed","content":[{"type":"content","content":{"type":"text","text":"Command: ls\nOutput: a"}}],"rawOutput":{"type":"shell_result","output":"a"}}`},
			"bash", `{"command":"ls"}`, "a", ""},
		{"copilot, the description stays", []string{`{"title":"List","kind":"execute","status":"pending","rawInput":{"command":"ls","description":"List"}}`, `{"rawInput":{"command":"ls","commands":["ls"]}}`,
			`{"status":"completed","content":[{"type":"content","content":{"type":"text","text":"a\n<shellId: 0 completed with exit code 0>"}}]}`},
			"bash", `{"command":"ls","description":"List"}`, "a\n", ""},
		{"codex, an argument vector", []string{`{"title":"ls","kind":"execute","status":"in_progress","rawInput":{"command":["/bin/bash","-lc","ls | wc"]}}`}, "bash", `{"command":"ls | wc"}`, "", ""},
		{"a tool that nobody knows", []string{`{"title":"Ask the oracle","name":"oracle_ask","kind":"other","status":"pending","rawInput":{"question":"why"}}`}, "oracle_ask", `{"question":"why"}`, "", ""},
		{"a tool without a name", []string{`{"title":"Ask the oracle","status":"pending"}`}, "tool", `{}`, "", ""},
	} {
		call := &toolCall{}
		if c.output == "a\n" {
			call.printed = copilot.Printed
		}
		for _, m := range c.messages {
			line := `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t",` + m[1:] + `}}`
			msg, err := wire.Parse([]byte(line))
			if err != nil || msg.Update.Tool == nil {
				t.Fatalf("%s: %v %s", c.name, err, line)
			}
			call.learn(msg.Update.Tool, msg.Update.Meta)
		}
		if call.name != c.tool || call.output != c.output || call.diff != c.diff {
			t.Errorf("%s: drawn as %s, output %q, diff %q", c.name, call.name, call.output, call.diff)
		}
		var want map[string]string
		if err := json.Unmarshal([]byte(c.input), &want); err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			if got := wire.Text(wire.At(call.input, key)); got != value {
				t.Errorf("%s: %s is %q in %s", c.name, key, got, call.input)
			}
		}
	}
}

// OpenCode tells its list of tasks by its tool alone.
func TestTodos(t *testing.T) {
	c := &Conversation{e: New(openCode, Options{}), tools: map[string]*toolCall{}}
	c.tool(&wire.Tool{ID: "t", Title: todoTool, Kind: "other", Status: "pending", RawInput: []byte(`{}`)}, nil)
	bodies := c.tool(&wire.Tool{ID: "t", Title: "1 todos", Status: "in_progress", RawInput: []byte(`{"todos":[{"content":"x","status":"pending","priority":"high"}]}`)}, nil)
	for _, b := range bodies {
		if plan, ok := b.(engine.Plan); ok && len(plan.Todos) == 1 && plan.Todos[0].Content == "x" && plan.Todos[0].Priority == "high" {
			return
		}
	}
	t.Errorf("no plan in %+v", bodies)
}

// TestOutputIsBounded: an agent that adds to a call's output for hours, or tells
// all of it again and again, does not grow Rouse, and what is shown stays small.
func TestOutputIsBounded(t *testing.T) {
	c := &Conversation{e: New(Agent{}, Options{}), tools: map[string]*toolCall{}}
	piece := strings.Repeat("é", 2<<10)
	meta := metadata(map[string]any{"terminal_output_delta": map[string]string{"data": piece}})
	for range 1000 {
		for _, b := range c.tool(&wire.Tool{ID: "t", Kind: "execute", Status: "in_progress"}, meta) {
			if p, ok := b.(engine.ToolProgress); ok && len(p.Metadata) > outputShown+1000 {
				t.Fatalf("%d bytes are shown", len(p.Metadata))
			}
		}
		if n := len(c.tools["t"].output); n > 2*outputKept {
			t.Fatalf("%d bytes are kept", n)
		}
	}
	for _, b := range c.tool(&wire.Tool{ID: "t", Status: "completed"}, nil) {
		if e, ok := b.(engine.ToolEnded); ok && (len(e.Output) > outputKept+100 || !strings.Contains(e.Output, "bytes are left out") || !utf8.ValidString(e.Output)) {
			t.Errorf("%d bytes at the end: %.50q", len(e.Output), e.Output)
		}
	}
	if call := c.tools["t"]; !call.ended || call.output != "" || call.input != nil {
		t.Error("an ended call keeps what it had")
	}
}
