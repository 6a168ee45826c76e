package provider

import (
	"bytes"
	"encoding/json"
	"strings"

	"rouse"
)

func (openaiWire) encode(cfg *Config, policy requestPolicy, r *Request) ([]byte, error) {
	body := map[string]any{
		"model":          r.Model,
		"messages":       openaiMessages(r),
		"stream":         true,
		"stream_options": map[string]bool{"include_usage": true},
	}
	if r.MaxTokens > 0 {
		if policy.completionTokens {
			body["max_completion_tokens"] = r.MaxTokens
		} else {
			body["max_tokens"] = r.MaxTokens
		}
	}
	if r.Temperature != nil {
		body["temperature"] = *r.Temperature
	}
	if r.Effort != "" && r.Effort != "default" {
		body["reasoning_effort"] = r.Effort
	}
	if len(r.Tools) > 0 {
		type function struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters"`
		}
		type tool struct {
			Type     string   `json:"type"`
			Function function `json:"function"`
		}
		tools := make([]tool, len(r.Tools))
		for i, t := range r.Tools {
			tools[i] = tool{"function", function{t.Name, t.Description, t.Schema}}
		}
		body["tools"] = tools
		switch r.ToolChoice {
		case "":
		case "none", "auto", "required":
			body["tool_choice"] = r.ToolChoice
		default:
			body["tool_choice"] = map[string]any{"type": "function", "function": map[string]string{"name": r.ToolChoice}}
		}
	}
	addFields(body, cfg, r)
	return marshalBody(body)
}

// addFields adds the configured fields and the request's own, which win.
func addFields(body map[string]any, cfg *Config, r *Request) {
	for k, v := range cfg.Body {
		body[k] = v
	}
	for k, v := range r.Options {
		body[k] = v
	}
}

func marshalBody(body map[string]any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(body)
	return b.Bytes(), err
}

type openaiMessage struct {
	Role      string           `json:"role"`
	Content   any              `json:"content,omitempty"` // string or []openaiPart
	ToolCalls []openaiSentCall `json:"tool_calls,omitempty"`
	CallID    string           `json:"tool_call_id,omitempty"`
}

type openaiSentCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openaiPart struct {
	Type     string            `json:"type"`
	Text     string            `json:"text,omitempty"`
	ImageURL map[string]string `json:"image_url,omitempty"`
	File     map[string]string `json:"file,omitempty"`
}

func openaiMessages(r *Request) []openaiMessage {
	out := make([]openaiMessage, 0, len(r.Messages)+1)
	if sys := strings.Join(r.System, "\n\n"); sys != "" {
		out = append(out, openaiMessage{Role: "system", Content: sys})
	}
	for _, m := range r.Messages {
		if m.Role == rouse.Assistant {
			if a, ok := openaiAssistant(m); ok {
				out = append(out, a)
			}
			continue
		}
		var parts []openaiPart
		for _, b := range m.Blocks {
			switch b.Kind {
			case ResultBlock:
				text := b.Text
				if text == "" {
					text = "(no output)"
				}
				out = append(out, openaiMessage{Role: "tool", CallID: b.CallID, Content: text})
				for _, f := range b.Files { // tool messages carry text only
					parts = append(parts, openaiFile(f))
				}
			case TextBlock:
				parts = append(parts, openaiPart{Type: "text", Text: b.Text})
			case FileBlock:
				parts = append(parts, openaiFile(b.File))
			}
		}
		switch {
		case len(parts) == 1 && parts[0].Type == "text":
			out = append(out, openaiMessage{Role: "user", Content: parts[0].Text})
		case len(parts) > 0:
			out = append(out, openaiMessage{Role: "user", Content: parts})
		}
	}
	return out
}

func openaiAssistant(m Message) (openaiMessage, bool) {
	a := openaiMessage{Role: "assistant"}
	var text strings.Builder
	for _, b := range m.Blocks {
		switch b.Kind {
		case TextBlock:
			text.WriteString(b.Text)
		case CallBlock:
			c := openaiSentCall{ID: b.CallID, Type: "function"}
			c.Function.Name = b.Name
			c.Function.Arguments = string(objectOr(b.Input))
			a.ToolCalls = append(a.ToolCalls, c)
		}
	}
	if text.Len() > 0 {
		a.Content = text.String()
	}
	return a, text.Len() > 0 || len(a.ToolCalls) > 0
}

func openaiFile(f rouse.File) openaiPart {
	name := f.Filename
	switch {
	case strings.HasPrefix(f.Mime, "image/"):
		return openaiPart{Type: "image_url", ImageURL: map[string]string{"url": f.URL}}
	case f.Mime == "application/pdf" && strings.HasPrefix(f.URL, "data:"):
		if name == "" {
			name = "document.pdf"
		}
		return openaiPart{Type: "file", File: map[string]string{"filename": name, "file_data": f.URL}}
	default:
		return openaiPart{Type: "text", Text: "[attached file " + name + " of type " + f.Mime + " cannot be shown to this model]"}
	}
}

// objectOr gives the input if it is a JSON object, else an empty one: a wire
// refuses a conversation whose earlier call has broken arguments.
func objectOr(in json.RawMessage) json.RawMessage {
	if t := bytes.TrimSpace(in); len(t) > 0 && t[0] == '{' && json.Valid(t) {
		return t
	}
	return json.RawMessage("{}")
}
