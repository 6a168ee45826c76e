package provider

import (
	"bytes"
	"encoding/json"
	"strings"
)

// openaiDecoder reads chat completions: chunks of {"choices":[{"delta":…}]},
// ended by "[DONE]".
type openaiDecoder struct {
	fold
	scan  scanner
	usage []byte // the newest usage object, read at the end
}

func (d *openaiDecoder) event(ev event) error {
	data := bytes.TrimSpace(ev.data)
	if len(data) == 0 {
		return nil
	}
	if string(data) == "[DONE]" {
		return errDone
	}
	d.size += ev.size
	if string(ev.name) == "error" {
		return errInStream
	}
	if c, ok := d.quick(data); ok {
		d.begin()
		d.reasoning(c.reasoning)
		d.text(c.text)
		if c.finish != "" {
			d.end = openaiFinish(c.finish)
		}
		return nil
	}
	return d.chunk(data)
}

// quickChunk is what the usual chunk carries.
type quickChunk struct{ text, reasoning, finish string }

// quick reads a chunk with one choice whose delta holds text only. It says no
// to every other shape, and then changed nothing.
func (d *openaiDecoder) quick(data []byte) (c quickChunk, ok bool) {
	s := &d.scan
	s.b, s.i = data, 0
	if !s.eat('{') || s.peek() == '}' {
		return c, false
	}
	var choices, usage bool
	var use []byte
	for {
		k, ok := s.key()
		if !ok {
			return c, false
		}
		switch k {
		case "choices":
			if choices || !s.eat('[') || !s.choice(&c) || !s.eat(']') {
				return c, false
			}
			choices = true
		case "usage":
			if usage {
				return c, false
			}
			usage = true
			if s.peek() != '{' {
				if !s.literal("null") {
					return c, false
				}
				break
			}
			from := s.i
			if !s.skip(0) {
				return c, false
			}
			use = data[from:s.i]
		case "error":
			if !s.literal("null") {
				return c, false
			}
		case "type":
			return c, false
		default:
			if !s.skip(0) {
				return c, false
			}
		}
		if s.eat(',') {
			continue
		}
		if !s.eat('}') || !s.end() || !choices {
			return c, false
		}
		if use != nil {
			d.usage = append(d.usage[:0], use...)
		}
		return c, true
	}
}

// choice reads {"index":0,"delta":{…},"finish_reason":…}.
func (s *scanner) choice(c *quickChunk) bool {
	if !s.eat('{') || s.peek() == '}' {
		return false
	}
	var delta, finish, index bool
	for {
		k, ok := s.key()
		if !ok {
			return false
		}
		switch k {
		case "delta":
			if delta || !s.delta(c) {
				return false
			}
			delta = true
		case "finish_reason":
			if finish || !s.nullable(&c.finish) {
				return false
			}
			finish = true
		case "index":
			if index || !s.eat('0') { // other choices than the first are not asked for
				return false
			}
			index = true
		case "message", "text":
			return false
		default:
			if !s.skip(0) {
				return false
			}
		}
		if s.eat(',') {
			continue
		}
		return s.eat('}') && delta
	}
}

// delta reads {"role":"assistant","content":"…"}.
func (s *scanner) delta(c *quickChunk) bool {
	if !s.eat('{') {
		return false
	}
	if s.eat('}') {
		return true
	}
	var content, reasoning bool
	for {
		k, ok := s.key()
		if !ok {
			return false
		}
		switch k {
		case "content":
			if content || !s.nullable(&c.text) {
				return false
			}
			content = true
		case "reasoning_content", "reasoning", "reasoning_text":
			if reasoning || !s.nullable(&c.reasoning) {
				return false
			}
			reasoning = true
		case "tool_calls", "function_call":
			if !s.literal("null") {
				return false
			}
		default:
			if !s.skip(0) {
				return false
			}
		}
		if s.eat(',') {
			continue
		}
		return s.eat('}')
	}
}

// nullable reads a string or null.
func (s *scanner) nullable(out *string) bool {
	if s.peek() == 'n' {
		return s.literal("null")
	}
	v, ok := s.raw()
	if ok {
		*out = string(v)
	}
	return ok
}

// chunk reads any chunk with encoding/json.
func (d *openaiDecoder) chunk(data []byte) error {
	var c openaiChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	if c.failed() {
		return errInStream
	}
	if len(c.Usage) > 0 && c.Usage[0] == '{' {
		d.usage = append(d.usage[:0], c.Usage...)
	}
	if len(c.Choices) == 0 {
		if c.Usage != nil || c.ID != nil || c.Object != nil || c.Model != nil {
			d.begin()
		}
		return nil
	}
	d.begin()
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 {
			continue
		}
		body := &ch.Delta
		if ch.Message != nil {
			body = ch.Message
		}
		d.reasoning(body.thinking())
		d.text(string(body.Content) + ch.Text)
		for j := range body.ToolCalls {
			d.call(&body.ToolCalls[j], ch.Message != nil)
		}
		if f := body.FunctionCall; f != nil { // the shape before tool_calls
			d.call(&openaiCall{Index: new(int), Function: *f}, false)
		}
		if ch.Finish != nil && *ch.Finish != "" {
			d.end = openaiFinish(*ch.Finish)
		}
	}
	return nil
}

// whole reads an answer that did not stream.
func (d *openaiDecoder) whole(body []byte) error {
	d.size = len(body)
	body = bytes.TrimSpace(body)
	if bytes.HasPrefix(body, []byte("[")) { // an array of one error object
		var list []json.RawMessage
		if err := json.Unmarshal(body, &list); err != nil || len(list) == 0 {
			return errNoAnswer
		}
		body = list[0]
	}
	return d.chunk(body)
}

// call folds a fragment of a tool call. Fragments without an index belong to
// the newest call unless they bring another id; some servers give every call
// index 0 and only the id tells them apart.
func (d *openaiDecoder) call(c *openaiCall, whole bool) {
	at := -1
	for i := len(d.calls) - 1; i >= 0 && !whole; i-- {
		o := d.calls[i]
		if c.Index != nil && o.index != *c.Index {
			continue
		}
		if c.ID == "" || c.ID == o.id || c.Function.Name == "" {
			at = i
		}
		break
	}
	if at < 0 {
		index := len(d.calls)
		if c.Index != nil {
			index = *c.Index
		}
		at = d.open(index, c.ID, c.Function.Name)
	}
	if o := d.calls[at]; o.name == "" {
		o.name = c.Function.Name
	}
	d.input(at, string(c.Function.Arguments))
}

func (d *openaiDecoder) finish() Result {
	if len(d.usage) > 0 {
		var u openaiUsage
		if json.Unmarshal(d.usage, &u) == nil {
			d.res.Tokens = u.tokens()
		}
	}
	return d.fold.finish()
}

func openaiFinish(s string) string {
	switch strings.ToLower(s) {
	case "stop", "eos", "end_turn":
		return FinishStop
	case "length", "max_tokens":
		return FinishLength
	case "tool_calls", "function_call", "tool_use":
		return FinishTools
	case "content_filter", "safety":
		return FinishFilter
	default:
		return FinishOther
	}
}
