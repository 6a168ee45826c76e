package provider

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"

	"rouse"
)

var errNoAnswer = errors.New("a JSON document that is no answer")

// The answer's shapes, lenient where servers differ.
type (
	openaiChunk struct {
		ID      any             `json:"id"`
		Object  any             `json:"object"`
		Model   any             `json:"model"`
		Type    any             `json:"type"`
		Choices []openaiChoice  `json:"choices"`
		Usage   json.RawMessage `json:"usage"`
		Error   json.RawMessage `json:"error"`
	}
	openaiChoice struct {
		Index   int          `json:"index"`
		Delta   openaiDelta  `json:"delta"`
		Message *openaiDelta `json:"message"` // an answer that does not stream
		Text    string       `json:"text"`    // legacy completions
		Finish  *string      `json:"finish_reason"`
	}
	openaiDelta struct {
		Content      looseText    `json:"content"`
		ReasonText   *string      `json:"reasoning_content"`
		Reasoning    *string      `json:"reasoning"`
		ReasonOther  *string      `json:"reasoning_text"`
		ToolCalls    []openaiCall `json:"tool_calls"`
		FunctionCall *openaiFunc  `json:"function_call"`
	}
	openaiCall struct {
		Index    *int       `json:"index"`
		ID       string     `json:"id"`
		Function openaiFunc `json:"function"`
	}
	openaiFunc struct {
		Name      string    `json:"name"`
		Arguments looseArgs `json:"arguments"`
	}
	openaiUsage struct {
		Prompt     count `json:"prompt_tokens"`
		Completion count `json:"completion_tokens"`
		PromptMore struct {
			Cached count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionMore struct {
			Reasoning count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		CacheHit count `json:"prompt_cache_hit_tokens"` // DeepSeek
	}
)

// thinking is the first of the fields that servers use for it.
func (d *openaiDelta) thinking() string {
	for _, s := range []*string{d.ReasonText, d.Reasoning, d.ReasonOther} {
		if s != nil && *s != "" {
			return *s
		}
	}
	return ""
}

// failed reports an error object inside an answer.
func (c *openaiChunk) failed() bool {
	if len(c.Error) > 0 && string(c.Error) != "null" && string(c.Error) != "false" && string(c.Error) != `""` {
		return true
	}
	t, _ := c.Type.(string)
	return t == "error"
}

// tokens counts prompt and completion without what their details count.
func (u *openaiUsage) tokens() rouse.Tokens {
	cached := max(int64(u.PromptMore.Cached), int64(u.CacheHit))
	reasoning := int64(u.CompletionMore.Reasoning)
	return rouse.Tokens{
		Input:     max(0, int64(u.Prompt)-cached),
		Output:    max(0, int64(u.Completion)-reasoning),
		Reasoning: reasoning,
		CacheRead: cached,
	}
}

// count is a number of tokens; what is no plausible number is 0.
type count int64

func (c *count) UnmarshalJSON(b []byte) error {
	var f float64
	if json.Unmarshal(b, &f) == nil && f > 0 && f < 1e15 {
		*c = count(math.Round(f))
	}
	return nil
}

// looseText is a string, null, or a list of {"type":"text","text":…} (Mistral).
type looseText string

func (t *looseText) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			*t += looseText(p.Text)
		}
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

// looseArgs is a string, or the arguments themselves (servers that do not
// encode them twice).
type looseArgs string

func (a *looseArgs) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(a))
	}
	if string(b) != "null" {
		*a = looseArgs(b)
	}
	return nil
}

// openaiWire writes requests for chat completions.
type openaiWire struct{}

func (openaiWire) path() string { return "/chat/completions" }

func (openaiWire) authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

func (openaiWire) decoder(yield func(Delta)) decoder {
	return &openaiDecoder{fold: fold{yield: yield}}
}
