package diagnostics

import (
	"bytes"
	"strings"
	"testing"
)

const newLine = `timestamp=2026-11-30T12:56:23.665Z level=ERROR run=00000001 message="stream error" providerID=mock modelID=mock-default session.id=ses_1 ` +
	`small=false agent=build mode=primary error.error="AI_APICallError: 5-hour usage limit reached. Resets in 4hr 59min. To continue using this model now, ` +
	`enable usage from your available balance - https://opencode.ai/workspace/wrk_1/go"`

func oldLine(size int) string {
	return `ERROR 2026-11-30T12:47:29 +5483ms service=llm providerID=mock modelID=mock-default sessionID=ses_1 small=false agent=build mode=primary error=` +
		`{"error":{"name":"AI_APICallError","url":"http://127.0.0.1:4010/v1","requestBodyValues":{"model":"m","messages":[{"role":"system","content":"` +
		strings.Repeat(`All work and no play.\n`, size/23) + `"}]},"statusCode":429,"data":{"error":{"message":"5-hour usage limit reached. Resets in 4hr 59min."}}}} stream error`
}

func benchLine(b *testing.B, line string) {
	c := Context{AgentType: Agent, SessionID: "ses_1", ActivePrompts: 1}
	b.ReportAllocs()
	for b.Loop() {
		var p Prompt
		if f := p.Judge(Parse(Line{Text: []byte(line)}), c); f.Action != Terminal {
			b.Fatal(f)
		}
	}
}

func BenchmarkNewLine(b *testing.B)    { benchLine(b, newLine) }
func BenchmarkOldLine45K(b *testing.B) { benchLine(b, oldLine(45_000)) }

func BenchmarkGarbage(b *testing.B) {
	read := bytes.Repeat([]byte("y"), 32<<10)
	b.SetBytes(int64(len(read)))
	var f Framer
	for b.Loop() {
		f.Feed(read, func(Line) {})
	}
}

func BenchmarkLines300K(b *testing.B) {
	stream := append(bytes.Repeat([]byte("y"), 300_000), '\n')
	b.SetBytes(int64(len(stream)))
	var f Framer
	for b.Loop() {
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), 32<<10)
			f.Feed(rest[:n], func(Line) {})
			rest = rest[n:]
		}
	}
}
