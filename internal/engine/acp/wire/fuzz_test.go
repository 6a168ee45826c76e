package wire

import (
	"encoding/json"
	"errors"
	"testing"
)

// FuzzParse compares the scanner with encoding/json: what is JSON, what is an
// object, and what a string says.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi \ud83d\ude00 \u00e4"}}}}`,
		`{"id":1,"result":{"stopReason":"end_turn"}}`, `{"id":"x","error":{"code":-32603,"message":"m","data":[1,2.5e3,"x"]}}`,
		`{"method":"session/request_permission","id":0,"params":{"toolCall":{"toolCallId":"c","content":[{"type":"diff"}]},"options":[{}]}}`,
		update(`{"sessionUpdate":"tool_call","locations":[{"path":1}],"content":{"type":"content"}}`), `[]`, `{"method":"\ud800x"}`, "{\"method\":\"\xff\"}", `nul`, `-`, `{"a":-0.1e+}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := Parse(line)
		if valid := json.Valid(line); valid == errors.Is(err, ErrNotJSON) {
			t.Fatalf("valid %t, but %v", valid, err)
		}
		if err != nil {
			return
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(line, &fields) != nil {
			t.Fatal("accepted what is no object")
		}
		var method string
		if json.Unmarshal(fields["method"], &method) == nil && method != m.Method {
			t.Fatalf("method %q, want %q", m.Method, method)
		}
		for _, raw := range []json.RawMessage{m.ID, m.Params, m.Result} {
			if raw != nil && !json.Valid(raw) {
				t.Fatalf("a piece that is no JSON: %q", raw)
			}
		}
		Words(m.Params, func(string) {})
		Positive(m.Params)
		_, _ = Decode[Initialize](m.Result)
		_, _ = Decode[Session](m.Result)
		if p, err := Decode[PromptResult](m.Result); err == nil {
			p.Tokens()
		}
	})
}

var chunkLine = []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"00000000-0000-4000-8000-000000000001","update":{"sessionUpdate":"agent_message_chunk","messageId":"msg_mock","content":{"type":"text","text":"Hello "}}}}`)

// BenchmarkChunk is the line that an agent sends most.
func BenchmarkChunk(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(chunkLine)))
	for b.Loop() {
		if _, err := Parse(chunkLine); err != nil {
			b.Fatal(err)
		}
	}
}
