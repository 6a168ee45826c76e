package drill

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDialects: the newer OpenAI API and Google's, as Codex and Gemini CLI
// speak them: text, a call under the name of the shell that is offered, its
// result, and a plan's limit.
func TestDialects(t *testing.T) {
	srv := httptest.NewServer(NewProvider(Options{}))
	defer srv.Close()
	for _, c := range []struct {
		name, path, body string
		status           int
		want             []string
	}{
		{"responses, text", "/v1/responses", `{"model":"echo","stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello there"}]}]}`, 200,
			[]string{"event: response.created", `"delta":"hello there"`, "event: response.output_item.done", "event: response.completed", `"total_tokens"`}},
		{"responses, call", "/v1/responses", `{"model":"tool","stream":true,"tools":[{"type":"function","name":"exec_command","parameters":{}}],"input":[{"type":"message","role":"user","content":"go"}]}`, 200,
			[]string{`"type":"function_call"`, `"name":"exec_command"`, `{\"cmd\":\"echo drill\"}`}},
		{"responses, result", "/v1/responses", `{"model":"tool","stream":true,"tools":[{"type":"function","name":"shell","parameters":{}}],"input":[{"role":"user","content":"go"},{"type":"function_call_output","call_id":"c","output":"drill"}]}`, 200,
			[]string{"The tool drill is done."}},
		{"responses, another model", "/v1/responses", `{"model":"quota","stream":true,"input":"[[drill model=echo]] go"}`, 200, []string{`"delta":"go"`}},
		{"responses, recall", "/v1/responses", `{"model":"recall","stream":true,"input":[{"role":"user","content":"one"},{"role":"assistant","content":"x"},{"role":"user","content":"two"}]}`, 200, []string{`"delta":"one\ntwo"`}},
		{"responses, limit", "/v1/responses", `{"model":"quota","stream":true,"input":"go"}`, 429, []string{"usage_limit_reached", "resets_in_seconds", "resets_at"}},
		{"gemini, text", "/v1beta/models/echo:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hello there"}]}]}`, 200,
			[]string{`"text":"hello there"`, `"finishReason":"STOP"`, "usageMetadata"}},
		{"gemini, whole", "/v1beta/models/echo:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hello there"}]}]}`, 200, []string{`"text":"hello there"`, `"finishReason":"STOP"`}},
		{"gemini, call", "/v1beta/models/tool:streamGenerateContent", `{"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}],"contents":[{"role":"user","parts":[{"text":"go"}]}]}`, 200,
			[]string{`"functionCall"`, `"name":"run_shell_command"`, `"command":"echo drill"`}},
		{"gemini, result", "/v1beta/models/tool:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"user","parts":[{"functionResponse":{"name":"x"}}]}]}`, 200, []string{"The tool drill is done."}},
		{"gemini, limit", "/v1beta/models/quota:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"go"}]}]}`, 429, []string{"RESOURCE_EXHAUSTED", "retryDelay"}},
		{"gemini, recall", "/v1beta/models/echo:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"one"}]},{"role":"user","parts":[{"text":"[[drill model=recall]] two"}]}]}`, 200, []string{`"text":"one\n`}},
		{"gemini, count", "/v1beta/models/echo:countTokens", `{"contents":[]}`, 200, []string{"totalTokens"}},
		{"gemini, no such model", "/v1beta/models/nosuch:streamGenerateContent", `{"contents":[]}`, 404, []string{"model_not_found"}},
		{"not JSON", "/v1/responses", `{`, 400, []string{"invalid_json"}},
	} {
		res, err := http.Post(srv.URL+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != c.status {
			t.Errorf("%s: %d, %v: %s", c.name, res.StatusCode, err, b)
		}
		for _, w := range c.want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s: no %s in\n%s", c.name, w, b)
			}
		}
	}
}
