package drill

import (
	"encoding/json"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
)

// request is one call, the same for both wires.
type request struct {
	model    string
	plays    string   // the model whose ways it has: the same, unless the prompt names one
	prompt   string   // text of the last user message
	said     []string // texts of all of them
	answered bool     // tool results came after it
	tools    map[string]json.RawMessage
	forced   string // the tool that must be called
	stream   bool
	purpose  string
	key      string // the same for every attempt of one call or turn
	size     int    // bytes of the body, for the usage
}

// says takes a text of the person's.
func (r *request) says(text string) {
	r.prompt, r.answered, r.said = text, false, append(r.said, text)
}

// structuredTool is the tool by which a structured answer is given.
const structuredTool = "StructuredOutput"

// wireMessage fits a message of either wire.
type wireMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type wireBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// texts gives a message's text and whether it brings a tool's result. A message
// may hold both: the next prompt of a turn that was ended.
func (m *wireMessage) texts() (text string, result bool) {
	if m.Role == "tool" {
		return "", true
	}
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s, false
	}
	var blocks []wireBlock
	_ = json.Unmarshal(m.Content, &blocks)
	var parts []string
	for _, b := range blocks {
		switch b.Type {
		case "tool_result":
			result = true
		case "text":
			if result && strings.HasPrefix(b.Text, "<system-reminder>") { // Claude Code's own, not the person's
				continue
			}
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n"), result
}

// parseRequest reads a call of either wire.
func parseRequest(body []byte, call *http.Request) (*request, error) {
	h := call.Header
	var in struct {
		Model    string        `json:"model"`
		Messages []wireMessage `json:"messages"`
		Stream   bool          `json:"stream"`
		Tools    []struct {
			Name     string          `json:"name"`
			Schema   json.RawMessage `json:"input_schema"`
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
		Choice json.RawMessage `json:"tool_choice"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	r := &request{model: in.Model, stream: in.Stream, purpose: h.Get(PurposeHeader), tools: map[string]json.RawMessage{}, size: len(body)}
	for _, t := range in.Tools {
		if t.Function.Name != "" {
			r.tools[t.Function.Name] = t.Function.Parameters
		} else if t.Name != "" {
			r.tools[t.Name] = t.Schema
		}
	}
	var choice struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(in.Choice, &choice) == nil {
		r.forced = choice.Name + choice.Function.Name
	}
	if _, structured := r.tools[structuredTool]; structured && r.forced == "" {
		r.forced = structuredTool
	}
	for i := range in.Messages {
		m := &in.Messages[i]
		text, result := m.texts()
		switch {
		case result && text == "":
			r.answered = true
		case m.Role == "user" && text != "":
			r.says(text)
		}
	}
	contents := make([][]byte, len(in.Messages))
	for i := range in.Messages {
		contents[i] = in.Messages[i].Content
	}
	r.key = attemptKey(h, in.Model, contents...)
	return r, nil
}

// attemptKey is the same for every attempt: attempts of one call send the same
// messages.
func attemptKey(h http.Header, model string, contents ...[]byte) string {
	key := h.Get(TurnHeader)
	if key == "" {
		sum := fnv.New64a()
		for _, c := range contents {
			_, _ = sum.Write(c)
		}
		key = strconv.FormatUint(sum.Sum64(), 36)
	}
	return model + " " + key
}
