package provider

import (
	"bytes"
	"encoding/json"

	"rouse"
)

// anthropicDecoder reads the messages wire: message_start, content blocks with
// their deltas, message_delta with the stop reason, message_stop.
type anthropicDecoder struct {
	fold
	scan   scanner
	blocks map[int]*anthropicBlock
	usage  anthropicUsage
}

// anthropicBlock is an open content block.
type anthropicBlock struct {
	kind string
	call int // tool_use: number of the call
	seed string
}

func (d *anthropicDecoder) event(ev event) error {
	data := bytes.TrimSpace(ev.data)
	if len(data) == 0 {
		return nil
	}
	if string(data) == "[DONE]" { // some gateways add it
		return errDone
	}
	d.size += ev.size
	if text, thinking, ok := d.quick(data); ok {
		d.text(text)
		d.reasoning(thinking)
		return nil
	}
	var m anthropicEvent
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	if m.Type == "error" || string(ev.name) == "error" || len(m.Error) > 0 && string(m.Error) != "null" {
		return errInStream
	}
	return d.message(&m)
}

// quick reads a content_block_delta with text or thinking, the usual event.
func (d *anthropicDecoder) quick(data []byte) (text, thinking string, ok bool) {
	s := &d.scan
	s.b, s.i = data, 0
	if !s.eat('{') {
		return "", "", false
	}
	var kind, delta, index bool
	for {
		k, ok := s.key()
		if !ok {
			return "", "", false
		}
		switch k {
		case "type":
			v, ok := s.raw()
			if kind || !ok || string(v) != "content_block_delta" {
				return "", "", false
			}
			kind = true
		case "delta":
			if delta || !s.anthropicDelta(&text, &thinking) {
				return "", "", false
			}
			delta = true
		case "index":
			if c := s.peek(); index || c < '0' || c > '9' {
				return "", "", false
			}
			s.i++
			if s.i < len(s.b) && s.b[s.i] != ',' && s.b[s.i] != '}' {
				return "", "", false
			}
			index = true
		case "error", "message", "content_block", "usage":
			return "", "", false
		default:
			if !s.skip(0) {
				return "", "", false
			}
		}
		if s.eat(',') {
			continue
		}
		return text, thinking, s.eat('}') && s.end() && kind && delta
	}
}

// anthropicDelta reads {"type":"text_delta","text":"…"}.
func (s *scanner) anthropicDelta(text, thinking *string) bool {
	if !s.eat('{') {
		return false
	}
	var kind byte
	var seen byte
	for {
		k, ok := s.key()
		if !ok {
			return false
		}
		switch k {
		case "type":
			v, ok := s.raw()
			switch {
			case !ok || kind != 0:
				return false
			case string(v) == "text_delta":
				kind = 't'
			case string(v) == "thinking_delta":
				kind = 'r'
			default:
				return false
			}
		case "text", "thinking":
			v, ok := s.raw()
			if !ok || seen != 0 {
				return false
			}
			if k == "text" {
				seen, *text = 't', string(v)
			} else {
				seen, *thinking = 'r', string(v)
			}
		case "signature", "partial_json", "stop_reason":
			return false
		default:
			if !s.skip(0) {
				return false
			}
		}
		if s.eat(',') {
			continue
		}
		return s.eat('}') && kind != 0 && kind == seen
	}
}

// message folds an event that encoding/json read.
func (d *anthropicDecoder) message(m *anthropicEvent) error {
	switch m.Type {
	case "message_start":
		d.usage.merge(m.Message.Usage)
		d.begin()
	case "content_block_start":
		d.openBlock(m.Index, m.Block)
	case "content_block_delta":
		d.delta(m.Index, m.Delta)
	case "content_block_stop":
		d.closeBlock(m.Index)
	case "message_delta":
		d.usage.merge(m.Usage)
		if m.Delta.StopReason != "" {
			d.end = anthropicFinish(m.Delta.StopReason)
		}
	case "message_stop":
		if d.end == "" {
			d.end = FinishOther
		}
		return errDone
	}
	return nil // ping, and kinds to come
}

func (d *anthropicDecoder) openBlock(index int, b anthropicContent) {
	if d.blocks == nil {
		d.blocks = map[int]*anthropicBlock{}
	}
	o := &anthropicBlock{kind: b.Type}
	d.blocks[index] = o
	switch b.Type {
	case "text":
		d.text(b.Text)
	case "thinking":
		d.reasoning(b.Thinking)
		if b.Signature != "" {
			d.signature("signature", b.Signature)
		}
	case "redacted_thinking":
		d.signature("redacted", b.Data)
	case "tool_use":
		o.call = d.open(index, b.ID, b.Name)
		d.input(o.call, "")
		if in := bytes.TrimSpace(b.Input); len(in) > 2 && in[0] == '{' {
			o.seed = string(in) // complete already; deltas would replace it
		}
	}
}

func (d *anthropicDecoder) delta(index int, m anthropicDelta) {
	switch m.Type {
	case "text_delta":
		d.text(m.Text)
	case "thinking_delta":
		d.reasoning(m.Thinking)
	case "signature_delta":
		d.signature("signature", m.Signature)
	case "input_json_delta":
		if o := d.blocks[index]; o != nil && o.kind == "tool_use" && m.PartialJSON != "" {
			o.seed = ""
			d.input(o.call, m.PartialJSON)
		}
	}
}

func (d *anthropicDecoder) closeBlock(index int) {
	o := d.blocks[index]
	if o == nil {
		return
	}
	delete(d.blocks, index)
	if o.kind == "tool_use" {
		d.input(o.call, o.seed)
		d.complete(o.call)
	}
}

// signature gives a reasoning block's proof, which must be sent back with it.
func (d *anthropicDecoder) signature(name, value string) {
	if value == "" {
		return
	}
	meta, err := json.Marshal(map[string]string{name: value})
	if err == nil {
		d.give(Delta{Kind: Reasoning, Metadata: meta})
	}
}

// whole reads an answer that did not stream.
func (d *anthropicDecoder) whole(body []byte) error {
	d.size = len(body)
	var m struct {
		Type    string             `json:"type"`
		Error   json.RawMessage    `json:"error"`
		Content []anthropicContent `json:"content"`
		Stop    string             `json:"stop_reason"`
		Usage   *anthropicUsage    `json:"usage"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	if m.Type == "error" || len(m.Error) > 0 && string(m.Error) != "null" {
		return errInStream
	}
	if m.Type != "message" {
		return errNoAnswer
	}
	d.usage.merge(m.Usage)
	d.begin()
	for i, b := range m.Content {
		d.openBlock(i, b)
		d.closeBlock(i)
	}
	if m.Stop != "" {
		d.end = anthropicFinish(m.Stop)
	}
	return nil
}

func (d *anthropicDecoder) finish() Result {
	d.res.Tokens = rouse.Tokens{
		Input:      int64(d.usage.Input),
		Output:     int64(d.usage.Output),
		CacheRead:  int64(d.usage.CacheRead),
		CacheWrite: int64(d.usage.CacheWrite),
	}
	return d.fold.finish()
}

func anthropicFinish(s string) string {
	switch s {
	case "end_turn", "stop_sequence":
		return FinishStop
	case "max_tokens", "model_context_window_exceeded":
		return FinishLength
	case "tool_use":
		return FinishTools
	case "refusal":
		return FinishFilter
	default:
		return FinishOther
	}
}
