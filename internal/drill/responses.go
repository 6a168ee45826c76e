package drill

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// responsesAPI is OpenAI's newer API, which Codex speaks.
var responsesAPI = dialect{parse: parseResponses, frames: responsesFrames, limited: func(w http.ResponseWriter, now time.Time, left time.Duration, model string) {
	writeJSON(w, http.StatusTooManyRequests, map[string]any{"error": map[string]any{"type": "usage_limit_reached",
		"message": "The usage limit of the model `" + model + "` has been reached.", "plan_type": "plus",
		"resets_in_seconds": int(math.Ceil(left.Seconds())), "resets_at": now.Add(left).Unix()}})
}}

// responsesItem is one piece of the input.
type responsesItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

func parseResponses(body []byte, r *http.Request) (*request, error) {
	var in struct {
		Model  string          `json:"model"`
		Input  json.RawMessage `json:"input"`
		Stream bool            `json:"stream"`
		Tools  []struct {
			Type       string          `json:"type"`
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	out := &request{model: in.Model, stream: in.Stream, purpose: r.Header.Get(PurposeHeader), tools: map[string]json.RawMessage{}, size: len(body)}
	for _, t := range in.Tools {
		if t.Type == "function" {
			out.tools[t.Name] = t.Parameters
		}
	}
	var text string
	var items []responsesItem
	if json.Unmarshal(in.Input, &text) == nil {
		out.says(text)
	} else if err := json.Unmarshal(in.Input, &items); err != nil {
		return nil, err
	}
	for _, item := range items {
		switch {
		case strings.HasSuffix(item.Type, "_output"):
			out.answered = true
		case item.Role == "user":
			if text := responsesText(item.Content); text != "" {
				out.says(text)
			}
		}
	}
	out.key = attemptKey(r.Header, in.Model, in.Input)
	return out, nil
}

func responsesText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []wireBlock
	_ = json.Unmarshal(content, &blocks) // what is no list has no text
	var parts []string
	for _, b := range blocks {
		if b.Type == "input_text" || b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// responses writes that API's events.
type responses struct {
	out
	item int
	open string // text so far of the open message
	in   bool   // a message is open
}

func responsesFrames(w http.ResponseWriter, r *request) frames {
	return &responses{out: newOut(w, r)}
}

func (o *responses) event(name string, body map[string]any) {
	body["type"] = name
	b, err := json.Marshal(body)
	if err != nil {
		o.err = err
		return
	}
	o.buf = fmt.Appendf(o.buf, "event: %s\ndata: %s\n\n", name, b)
}

func (o *responses) begin() {
	o.event("response.created", map[string]any{"response": map[string]any{"id": "resp_" + o.id, "object": "response", "status": "in_progress", "output": []any{}}})
}

func (o *responses) itemID() string { return fmt.Sprintf("msg_%s_%d", o.id, o.item) }

func (o *responses) message(text string) map[string]any {
	return map[string]any{"type": "message", "id": o.itemID(), "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}}}
}

func (o *responses) text(s string) {
	if !o.in {
		o.in, o.open = true, ""
		open := o.message("")
		open["status"], open["content"] = "in_progress", []any{}
		o.event("response.output_item.added", map[string]any{"output_index": o.item, "item": open})
	}
	o.tokens++
	o.open += s
	o.event("response.output_text.delta", map[string]any{"item_id": o.itemID(), "output_index": o.item, "content_index": 0, "delta": s})
}

func (o *responses) words(n int) {
	for range n {
		o.text(fillers[o.tokens%len(fillers)])
	}
}

func (o *responses) reasoning(s string) {
	o.tokens++
	o.event("response.reasoning_summary_text.delta", map[string]any{"item_id": "rs_drill", "output_index": o.item, "summary_index": 0, "delta": s})
}

func (o *responses) leave() {
	if o.in {
		o.event("response.output_item.done", map[string]any{"output_index": o.item, "item": o.message(o.open)})
		o.in = false
		o.item++
	}
}

func (o *responses) call(name, input string) {
	o.leave()
	o.tokens++
	n := number()
	o.event("response.output_item.done", map[string]any{"output_index": o.item, "item": map[string]any{"type": "function_call",
		"id": "fc_" + n, "call_id": "call_" + n, "name": name, "arguments": input, "status": "completed"}})
	o.item++
}

func (o *responses) finish(string) {
	o.leave()
	in := 1 + o.size/4
	o.event("response.completed", map[string]any{"response": map[string]any{"id": "resp_" + o.id, "object": "response", "status": "completed", "output": []any{},
		"usage": map[string]any{"input_tokens": in, "input_tokens_details": map[string]int{"cached_tokens": 0}, "output_tokens": o.tokens,
			"output_tokens_details": map[string]int{"reasoning_tokens": 0}, "total_tokens": in + o.tokens}}})
	_ = o.flush()
}
