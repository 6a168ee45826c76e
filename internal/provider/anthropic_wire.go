package provider

import (
	"encoding/json"
	"net/http"
	"strings"

	"rouse"
)

// The answer's shapes.
type (
	anthropicEvent struct {
		Type    string           `json:"type"`
		Index   int              `json:"index"`
		Block   anthropicContent `json:"content_block"`
		Delta   anthropicDelta   `json:"delta"`
		Usage   *anthropicUsage  `json:"usage"`
		Error   json.RawMessage  `json:"error"`
		Message struct {
			Usage *anthropicUsage `json:"usage"`
		} `json:"message"`
	}
	anthropicContent struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	}
	anthropicDelta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	}
	anthropicUsage struct {
		Input      count `json:"input_tokens"`
		Output     count `json:"output_tokens"`
		CacheRead  count `json:"cache_read_input_tokens"`
		CacheWrite count `json:"cache_creation_input_tokens"`
	}
)

// merge takes the newer counts; fields that an event leaves out stay.
func (u *anthropicUsage) merge(n *anthropicUsage) {
	if n == nil {
		return
	}
	for _, p := range [][2]*count{{&u.Input, &n.Input}, {&u.Output, &n.Output}, {&u.CacheRead, &n.CacheRead}, {&u.CacheWrite, &n.CacheWrite}} {
		if *p[1] > 0 {
			*p[0] = *p[1]
		}
	}
}

// anthropicWire writes requests for messages.
type anthropicWire struct{}

func (anthropicWire) path() string { return "/messages" }

func (anthropicWire) authorize(h http.Header, key string) {
	h.Set("anthropic-version", anthropicVersion)
	if key != "" {
		h.Set("x-api-key", key)
	}
}

func (anthropicWire) decoder(yield func(Delta)) decoder {
	return &anthropicDecoder{fold: fold{yield: yield}}
}

// anthropicVersion is the version of the wire, sent as "anthropic-version".
const anthropicVersion = "2023-06-01"

// anthropicDefaultTokens bounds an answer whose request names no bound: the
// wire demands one.
const anthropicDefaultTokens = 8192

// anthropicEffort is the thinking budget, in tokens, of each variant.
var anthropicEffort = map[string]int64{"low": 2048, "medium": 8192, "high": 16000, "max": 31999}

type anthropicSent struct {
	Type      string            `json:"type"`
	Text      string            `json:"text,omitempty"`
	Thinking  *string           `json:"thinking,omitempty"`
	Signature string            `json:"signature,omitempty"`
	Data      string            `json:"data,omitempty"`
	ID        string            `json:"id,omitempty"`
	Name      string            `json:"name,omitempty"`
	Input     json.RawMessage   `json:"input,omitempty"`
	ToolUseID string            `json:"tool_use_id,omitempty"`
	IsError   bool              `json:"is_error,omitempty"`
	Content   any               `json:"content,omitempty"`
	Source    map[string]string `json:"source,omitempty"`
	Cache     map[string]string `json:"cache_control,omitempty"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content []anthropicSent `json:"content"`
}

var ephemeral = map[string]string{"type": "ephemeral"}

func (anthropicWire) encode(cfg *Config, _ requestPolicy, r *Request) ([]byte, error) {
	limit := r.MaxTokens
	if limit <= 0 {
		limit = anthropicDefaultTokens
	}
	body := map[string]any{"model": r.Model, "stream": true, "messages": anthropicMessages(r), "max_tokens": limit}
	if budget := anthropicEffort[r.Effort]; budget > 0 {
		body["thinking"] = map[string]any{"type": "enabled", "budget_tokens": budget}
	}
	if r.Temperature != nil {
		body["temperature"] = *r.Temperature
	}
	var system []anthropicSent
	for _, s := range r.System {
		if s != "" {
			system = append(system, anthropicSent{Type: "text", Text: s})
		}
	}
	if len(system) > 0 {
		system[len(system)-1].Cache = ephemeral
		body["system"] = system
	}
	if len(r.Tools) > 0 {
		type tool struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Schema      json.RawMessage `json:"input_schema"`
		}
		tools := make([]tool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = tool(t)
		}
		body["tools"] = tools
		switch r.ToolChoice {
		case "":
		case "auto", "none":
			body["tool_choice"] = map[string]string{"type": r.ToolChoice}
		case "required":
			body["tool_choice"] = map[string]string{"type": "any"}
		default:
			body["tool_choice"] = map[string]string{"type": "tool", "name": r.ToolChoice}
		}
	}
	addFields(body, cfg, r)
	if err := fitThinking(body, r.ToolChoice); err != nil {
		return nil, err
	}
	return marshalBody(body)
}

// fitThinking makes the rest of a request agree with its thinking: a forced
// tool excludes it, it allows no temperature, and its budget is part of
// max_tokens.
func fitThinking(body map[string]any, choice string) error {
	set, ok := body["thinking"]
	if !ok {
		return nil
	}
	if choice != "" && choice != "auto" && choice != "none" {
		delete(body, "thinking")
		return nil
	}
	raw, err := json.Marshal(set)
	if err != nil {
		return err
	}
	var thinking struct {
		Type   string `json:"type"`
		Budget int64  `json:"budget_tokens"`
	}
	if json.Unmarshal(raw, &thinking) != nil || thinking.Type == "disabled" {
		return nil // an odd option is the provider's to refuse
	}
	delete(body, "temperature")
	if limit, ok := body["max_tokens"].(int64); ok && limit <= thinking.Budget {
		body["max_tokens"] = thinking.Budget + anthropicDefaultTokens
	}
	return nil
}

// anthropicMessages joins neighbours of one role, as the wire demands, and
// marks the end of the conversation for the prompt cache.
func anthropicMessages(r *Request) []anthropicMessage {
	var out []anthropicMessage
	for _, m := range r.Messages {
		var blocks []anthropicSent
		for _, b := range m.Blocks {
			if s, ok := anthropicBlockOf(b); ok {
				blocks = append(blocks, s)
			}
		}
		if len(blocks) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == string(m.Role) {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, anthropicMessage{Role: string(m.Role), Content: blocks})
	}
	for i := len(out) - 1; i >= 0; i-- {
		if out[i].Role == string(rouse.User) {
			out[i].Content[len(out[i].Content)-1].Cache = ephemeral
			break
		}
	}
	return out
}

func anthropicBlockOf(b Block) (anthropicSent, bool) {
	switch b.Kind {
	case TextBlock:
		return anthropicSent{Type: "text", Text: b.Text}, strings.TrimSpace(b.Text) != ""
	case ReasoningBlock:
		var proof struct{ Signature, Redacted string }
		if json.Unmarshal(b.Metadata, &proof) != nil {
			return anthropicSent{}, false
		}
		if proof.Redacted != "" {
			return anthropicSent{Type: "redacted_thinking", Data: proof.Redacted}, true
		}
		return anthropicSent{Type: "thinking", Thinking: &b.Text, Signature: proof.Signature}, proof.Signature != ""
	case FileBlock:
		return anthropicFile(b.File), true
	case CallBlock:
		return anthropicSent{Type: "tool_use", ID: b.CallID, Name: b.Name, Input: objectOr(b.Input)}, true
	case ResultBlock:
		s := anthropicSent{Type: "tool_result", ToolUseID: b.CallID, IsError: b.IsError}
		text := b.Text
		if text == "" {
			text = "(no output)"
		}
		if len(b.Files) == 0 {
			s.Content = text
			return s, true
		}
		content := []anthropicSent{{Type: "text", Text: text}}
		for _, f := range b.Files {
			content = append(content, anthropicFile(f))
		}
		s.Content = content
		return s, true
	}
	return anthropicSent{}, false
}

func anthropicFile(f rouse.File) anthropicSent {
	kind := ""
	switch {
	case strings.HasPrefix(f.Mime, "image/"):
		kind = "image"
	case f.Mime == "application/pdf":
		kind = "document"
	}
	if data, ok := strings.CutPrefix(f.URL, "data:"); ok && kind != "" {
		if head, payload, ok := strings.Cut(data, ","); ok && strings.HasSuffix(head, ";base64") {
			return anthropicSent{Type: kind, Source: map[string]string{"type": "base64", "media_type": f.Mime, "data": payload}}
		}
	} else if strings.HasPrefix(f.URL, "https://") && kind != "" {
		return anthropicSent{Type: kind, Source: map[string]string{"type": "url", "url": f.URL}}
	}
	return anthropicSent{Type: "text", Text: "[attached file " + f.Filename + " of type " + f.Mime + " cannot be shown to this model]"}
}
