package drill

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// geminiAPI is Google's API, which Gemini CLI speaks: the model is in the
// path.
var geminiAPI = dialect{parse: parseGemini, frames: geminiFrames, limited: func(w http.ResponseWriter, _ time.Time, left time.Duration, model string) {
	writeJSON(w, http.StatusTooManyRequests, map[string]any{"error": map[string]any{"code": http.StatusTooManyRequests, "status": "RESOURCE_EXHAUSTED",
		"message": "You exceeded your current quota for the model `" + model + "`, please check your plan and billing details.",
		"details": []any{
			map[string]any{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{map[string]string{
				"quotaMetric": "generativelanguage.googleapis.com/generate_content_requests", "quotaId": "GenerateRequestsPerDayPerProjectPerModel"}}},
			map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", int(math.Ceil(left.Seconds())))},
		}}})
}}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text     string          `json:"text"`
		Response json.RawMessage `json:"functionResponse"`
	} `json:"parts"`
}

func parseGemini(body []byte, r *http.Request) (*request, error) {
	var in struct {
		Contents json.RawMessage `json:"contents"`
		Tools    []struct {
			Functions []struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
				Schema     json.RawMessage `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	out := &request{model: model, stream: method == "streamGenerateContent", purpose: r.Header.Get(PurposeHeader), tools: map[string]json.RawMessage{}, size: len(body)}
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			out.tools[f.Name] = f.Parameters
			if f.Parameters == nil {
				out.tools[f.Name] = f.Schema
			}
		}
	}
	var contents []geminiContent
	if err := json.Unmarshal(in.Contents, &contents); err != nil {
		return nil, err
	}
	for _, c := range contents {
		var parts []string
		result := false
		for _, p := range c.Parts {
			result = result || p.Response != nil
			if p.Text != "" {
				parts = append(parts, p.Text)
			}
		}
		switch {
		case result:
			out.answered = true
		case c.Role == "user" && len(parts) > 0:
			out.says(strings.Join(parts, "\n"))
		}
	}
	out.key = attemptKey(r.Header, model, in.Contents)
	return out, nil
}

// gemini writes chunks of generated content.
type gemini struct {
	out
	stream bool
	parts  []any // of an answer that is no stream
}

func geminiFrames(w http.ResponseWriter, r *request) frames {
	if !r.stream {
		return &gemini{out: out{w: w, rc: http.NewResponseController(w), size: r.size}}
	}
	return &gemini{out: newOut(w, r), stream: true}
}

func (g *gemini) begin() {}

func (g *gemini) part(p map[string]any) {
	g.tokens++
	if !g.stream {
		g.parts = append(g.parts, p)
		return
	}
	g.chunk(map[string]any{"candidates": []any{map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": []any{p}}}}})
}

func (g *gemini) chunk(body map[string]any) {
	body["modelVersion"], body["responseId"] = "drill", "drill"
	b, err := json.Marshal(body)
	if err != nil {
		g.err = err
		return
	}
	g.buf = fmt.Appendf(g.buf, "data: %s\r\n\r\n", b)
}

func (g *gemini) text(s string)      { g.part(map[string]any{"text": s}) }
func (g *gemini) reasoning(s string) { g.part(map[string]any{"text": s, "thought": true}) }

func (g *gemini) words(n int) {
	for range n {
		g.text(fillers[g.tokens%len(fillers)])
	}
}

func (g *gemini) call(name, input string) {
	g.part(map[string]any{"functionCall": map[string]any{"id": "call_" + number(), "name": name, "args": rawJSON(input)}})
}

func (g *gemini) finish(string) {
	in := 1 + g.size/4
	end := map[string]any{"candidates": []any{map[string]any{"index": 0, "finishReason": "STOP", "content": map[string]any{"role": "model", "parts": g.last()}}},
		"usageMetadata": map[string]int{"promptTokenCount": in, "candidatesTokenCount": g.tokens, "totalTokenCount": in + g.tokens}}
	if !g.stream {
		writeJSON(g.w, http.StatusOK, end)
		return
	}
	g.chunk(end)
	_ = g.flush()
}

// last is what the closing chunk holds: all, where nothing was streamed.
func (g *gemini) last() []any {
	if g.stream || len(g.parts) == 0 {
		return []any{map[string]any{"text": ""}}
	}
	return g.parts
}

// countTokens answers Google's question how long a text is.
func countTokens(w http.ResponseWriter, body []byte) {
	writeJSON(w, http.StatusOK, map[string]int{"totalTokens": 1 + len(body)/4})
}
