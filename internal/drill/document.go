package drill

import (
	"net/http"
	"strings"
)

// document is an answer to a caller that does not want a stream.
type document struct {
	w       http.ResponseWriter
	r       *request
	openai  bool
	content strings.Builder
	tokens  int
	calls   [][2]string
}

func (d *document) begin()            {}
func (d *document) reasoning(string)  { d.tokens++ }
func (d *document) call(n, in string) { d.calls = append(d.calls, [2]string{n, in}) }
func (d *document) flush() error      { return nil }
func (d *document) cut()              { panic(http.ErrAbortHandler) } // net/http's way to close a connection
func (d *document) text(s string)     { d.tokens++; d.content.WriteString(s) }
func (d *document) words(n int) {
	for range n {
		d.text(fillers[d.tokens%len(fillers)])
	}
}

func (d *document) finish(reason string) {
	in := 1 + d.r.size/4
	if d.openai {
		message := map[string]any{"role": "assistant", "content": d.content.String()}
		var calls []map[string]any
		for _, c := range d.calls {
			calls = append(calls, map[string]any{"id": "call_" + number(), "type": "function", "function": map[string]string{"name": c[0], "arguments": c[1]}})
		}
		if calls != nil {
			message["tool_calls"] = calls
			reason = "tool_calls"
		}
		writeJSON(d.w, http.StatusOK, map[string]any{
			"id": "drill", "object": "chat.completion", "created": 1764500000, "model": d.r.model,
			"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}},
			"usage":   map[string]int{"prompt_tokens": in, "completion_tokens": d.tokens, "total_tokens": in + d.tokens},
		})
		return
	}
	var content []map[string]any
	if d.content.Len() > 0 {
		content = append(content, map[string]any{"type": "text", "text": d.content.String()})
	}
	stop := "end_turn"
	for _, c := range d.calls {
		content = append(content, map[string]any{"type": "tool_use", "id": "toolu_" + number(), "name": c[0], "input": rawJSON(c[1])})
		stop = "tool_use"
	}
	writeJSON(d.w, http.StatusOK, map[string]any{
		"id": "msg_" + number(), "type": "message", "role": "assistant", "model": d.r.model, "content": content,
		"stop_reason": stop, "usage": map[string]int{"input_tokens": in, "output_tokens": d.tokens},
	})
}

// rawJSON writes what is JSON already.
type rawJSON string

// MarshalJSON gives the text itself.
func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }
