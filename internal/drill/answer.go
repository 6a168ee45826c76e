package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// frames writes an answer on one wire.
type frames interface {
	begin()
	text(s string)
	words(n int) // n tokens of filler text
	reasoning(s string)
	call(name, input string)
	finish(reason string) // stop or tool
	flush() error
	cut() // closes the connection in the middle
}

const filler = 200 // tokens of the models that stream

// answer plays what a model says once it answers.
func (p *simulation) answer(ctx context.Context, f frames, r *request, d *directive) {
	if r.purpose == PurposeTitle {
		f.begin()
		f.text(title(r.prompt))
		f.finish("stop")
		return
	}
	if r.purpose == PurposeCompact {
		f.begin()
		f.text("Summary: the conversation so far was drilled; nothing is open.")
		f.finish("stop")
		return
	}
	if r.forced != "" {
		f.begin()
		f.call(r.forced, sample(r.tools[r.forced], r.prompt, 0))
		f.finish("tool")
		return
	}
	f.begin()
	if name, input, ok := p.calls(r, d); ok {
		f.call(name, input)
		f.finish("tool")
		return
	}
	switch r.plays {
	case Hang, Stalled:
		f.text("Let me think")
		f.text(" about it")
		_ = f.flush()
		<-ctx.Done()
		return
	case Break:
		if p.failed(r.key, 1) {
			f.text("This answer will")
			f.text(" be cut")
			_ = f.flush()
			f.cut()
			return
		}
		f.text("This answer is whole.")
	case EOF:
		f.text("This answer has no end")
		_ = f.flush()
		return
	case Reason:
		f.reasoning("First the question,")
		f.reasoning(" then the answer.")
		f.text("The answer is 42.")
	case Tool, SlowTool, Permission, Question:
		f.text("The " + r.plays + " drill is done.")
	case Recall:
		f.text(strings.Join(r.said, "\n"))
	case Stream:
		p.stream(ctx, f, or(d.tokens, filler), d.rate, 50)
	default:
		if d.tokens >= 0 {
			break
		}
		text := r.prompt
		if text == "" {
			text = "ok"
		}
		f.text(text)
	}
	if d.tokens >= 0 && r.plays != Stream {
		p.stream(ctx, f, d.tokens, d.rate, 0)
	}
	if ctx.Err() == nil {
		f.finish("stop")
	}
}

func or(n, otherwise int) int {
	if n < 0 {
		return otherwise
	}
	return n
}

// calls says which tool a model calls, the first time it is asked.
func (p *simulation) calls(r *request, d *directive) (name, input string, ok bool) {
	if r.answered {
		return "", "", false
	}
	args := map[string]any{}
	switch r.plays {
	case Tool:
		name, args["command"], args["description"] = "bash", "echo drill", "Says drill"
	case SlowTool:
		name, args["command"], args["description"], args["timeout"] = "bash", "sleep 600", "Waits ten minutes", 700_000
	case Permission:
		name, args["command"], args["description"], args["workdir"] = "bash", "echo drill-permission", "Says drill outside the directory", "/"
	case Question:
		name = "question"
		args["questions"] = []map[string]any{{
			"question": "Which way?", "header": "Way", "multiple": false,
			"options": []map[string]string{{"label": "Left", "description": "The short one"}, {"label": "Right", "description": "The long one"}},
		}}
	default:
		return "", "", false
	}
	if d.cmd != "" {
		args["command"] = d.cmd
	}
	if d.tool != "" {
		name, args = d.tool, map[string]any{}
	}
	b, err := json.Marshal(args)
	if err != nil {
		return "", "", false
	}
	if d.input != "" {
		b = []byte(d.input)
	}
	if _, offered := r.tools[name]; !offered && d.tool == "" {
		return r.shellCall(name, args)
	}
	return name, string(b), true
}

// shells are the tools by which agents run a command, with the argument that
// takes it, where it is not Rouse's own.
var shells = []struct{ tool, command string }{
	{"Bash", "command"},              // claude-agent-acp 0.101.0
	{"run_shell_command", "command"}, // gemini 0.61.0, qwen 0.24.4
	{"exec_command", "cmd"},          // codex-acp 2.6.0
	{"shell_command", "command"},     // codex
	{"shell", "command"},
}

// shellCall is a call of the shell under the name that the caller offers.
func (r *request) shellCall(name string, args map[string]any) (string, string, bool) {
	if name != "bash" {
		return "", "", false
	}
	for _, s := range shells {
		if _, offered := r.tools[s.tool]; !offered {
			continue
		}
		own := map[string]any{s.command: args["command"]}
		if s.command == "command" {
			own["description"] = args["description"]
		}
		if s.tool == "shell" { // an argument vector
			own = map[string]any{"command": []any{"bash", "-lc", args["command"]}}
		}
		b, err := json.Marshal(own)
		return s.tool, string(b), err == nil
	}
	return "", "", false
}

// stream sends filler tokens at a rate, late ones together.
func (p *simulation) stream(ctx context.Context, f frames, tokens int, rate, usual float64) {
	if rate < 0 {
		rate = usual
	}
	if rate == 0 {
		const lump = 64
		for sent := 0; sent < tokens && ctx.Err() == nil; sent += lump {
			f.words(min(lump, tokens-sent))
			if f.flush() != nil {
				return
			}
		}
		return
	}
	gap := time.Duration(float64(time.Second) / rate)
	start := time.Now()
	timer := time.NewTimer(gap)
	defer timer.Stop()
	for sent := 0; sent < tokens; {
		due := min(tokens, 1+int(time.Since(start)/gap))
		if due > sent {
			f.words(due - sent)
			sent = due
			if f.flush() != nil {
				return
			}
			continue
		}
		timer.Reset(time.Until(start.Add(time.Duration(sent) * gap)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// title names a conversation by its first words.
func title(prompt string) string {
	words := strings.Fields(strings.TrimPrefix(prompt, "The message:")) // as Rouse asks for titles
	if len(words) > 6 {
		words = words[:6]
	}
	if len(words) == 0 {
		return "Drill"
	}
	return "Drill: " + strings.Join(words, " ")
}

// sample makes a value that fits a JSON schema, roughly: required properties of
// objects, the first of an enumeration, the prompt for strings.
func sample(schema json.RawMessage, prompt string, depth int) string {
	var s struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Items      json.RawMessage            `json:"items"`
		Enum       []json.RawMessage          `json:"enum"`
	}
	if json.Unmarshal(schema, &s) != nil || depth > 8 {
		return "null"
	}
	if len(s.Enum) > 0 {
		return string(s.Enum[0])
	}
	switch fmt.Sprint(s.Type) {
	case "string":
		b, _ := json.Marshal(prompt) // a string always marshals
		return string(b)
	case "number", "integer":
		return "1"
	case "boolean":
		return "true"
	case "array":
		return "[" + sample(s.Items, prompt, depth+1) + "]"
	case "object":
		var b strings.Builder
		b.WriteByte('{')
		for i, name := range s.Required {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:%s", name, sample(s.Properties[name], prompt, depth+1))
		}
		b.WriteByte('}')
		return b.String()
	}
	return "null"
}
