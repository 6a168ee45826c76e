package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	usualChunk = `{"id":"chatcmpl-9x","object":"chat.completion.chunk","created":1764500000,"model":"m-1","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}`
	usualEvent = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}`
)

// told writes deltas as one line, for comparison.
func told(ds []Delta) string {
	var b strings.Builder
	for _, d := range ds {
		switch d.Kind {
		case Began:
			b.WriteString("began ")
		case Text:
			fmt.Fprintf(&b, "text(%s) ", d.Text)
		case Reasoning:
			fmt.Fprintf(&b, "reasoning(%s%s) ", d.Text, d.Metadata)
		case ToolBegan:
			fmt.Fprintf(&b, "tool%d(%s,%s) ", d.Call, d.ID, d.Name)
		case ToolInput:
			fmt.Fprintf(&b, "input%d(%s) ", d.Call, d.Text)
		case ToolDone:
			fmt.Fprintf(&b, "done%d(%s) ", d.Call, d.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// fed gives events (data only) to a decoder.
func fed(w wire, events ...string) (string, Result, error) {
	var ds []Delta
	d := w.decoder(func(x Delta) { ds = append(ds, x) })
	for _, e := range events {
		if err := d.event(event{data: []byte(e), size: len(e)}); err != nil && !errors.Is(err, errDone) {
			return told(ds), d.finish(), err
		}
	}
	res := d.finish()
	return told(ds), res, nil
}

func oa(delta string) string { return `{"id":"c","choices":[{"index":0,"delta":` + delta + `}]}` }
func oaEnd(reason string) string {
	return `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func TestOpenAIDecoder(t *testing.T) {
	const usage = `{"id":"c","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`
	for _, c := range []struct {
		name   string
		in     []string
		want   string
		finish string
	}{
		{"text", []string{oa(`{"role":"assistant","content":""}`), oa(`{"content":"a"}`), oa(`{"content":"b\n\u00e9"}`), oaEnd("stop"), usage, "[DONE]"},
			"began text(a) text(b\né)", "stop"},
		{"both reasoning fields", []string{oa(`{"reasoning_content":"r"}`), oa(`{"reasoning":"s"}`), oa(`{"content":"t"}`), oaEnd("length")},
			"began reasoning(r) reasoning(s) text(t)", "length"},
		{"split arguments", []string{oa(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"bash","arguments":""}}]}`),
			oa(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}`), oa(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`), oaEnd("tool_calls")},
			`began tool0(c1,bash) input0({"a":) input0(1}) done0({"a":1})`, "tool-calls"},
		{"two calls, interleaved", []string{oa(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"x","arguments":"{"}},{"index":1,"id":"c2","function":{"name":"y","arguments":"{"}}]}`),
			oa(`{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}`), oa(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`), oaEnd("tool_calls")},
			`began tool0(c1,x) input0({) tool1(c2,y) input1({) input1(}) input0(}) done0({}) done1({})`, "tool-calls"},
		{"no index", []string{oa(`{"tool_calls":[{"id":"c1","function":{"name":"x","arguments":"{"}}]}`), oa(`{"tool_calls":[{"function":{"arguments":"}"}}]}`),
			oa(`{"tool_calls":[{"id":"c2","function":{"name":"y","arguments":"{}"}}]}`), oaEnd("stop")},
			`began tool0(c1,x) input0({) input0(}) tool1(c2,y) input1({}) done0({}) done1({})`, "tool-calls"},
		{"index 0 for all", []string{oa(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"x","arguments":"{}"}}]}`),
			oa(`{"tool_calls":[{"index":0,"id":"c2","function":{"name":"x","arguments":"{}"}}]}`), oaEnd("tool_calls")},
			`began tool0(c1,x) input0({}) tool1(c2,x) input1({}) done0({}) done1({})`, "tool-calls"},
		{"id repeated with each fragment", []string{oa(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"x","arguments":"{"}}]}`),
			oa(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"x","arguments":"}"}}]}`), oaEnd("tool_calls")},
			`began tool0(c1,x) input0({) input0(}) done0({})`, "tool-calls"},
		{"arguments as object", []string{oa(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"x","arguments":{"a":1}}}]}`), oaEnd("stop")},
			`began tool0(c1,x) input0({"a":1}) done0({"a":1})`, "tool-calls"},
		{"no arguments", []string{oa(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"x"}}]}`), oaEnd("tool_calls")},
			`began tool0(c1,x) done0({})`, "tool-calls"},
		{"content as list", []string{oa(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`), oaEnd("stop")}, "began text(ab)", "stop"},
		{"cut off", []string{oa(`{"content":"a"}`)}, "began text(a)", ""},
		{"a second choice is not asked for", []string{`{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}`, oaEnd("stop")}, "began text(a)", "stop"},
	} {
		got, res, err := fed(openaiWire{}, c.in...)
		if err != nil || got != c.want || res.Finish != c.finish {
			t.Errorf("%s:\n got %s, finish %q, %v\nwant %s, finish %q", c.name, got, res.Finish, err, c.want, c.finish)
		}
	}
	_, res, _ := fed(openaiWire{}, oa(`{"content":"a"}`), oaEnd("stop"), usage)
	if k := res.Tokens; k.Input != 6 || k.CacheRead != 4 || k.Output != 5 || k.Reasoning != 2 {
		t.Errorf("tokens: %+v", k)
	}
	for _, e := range []string{`{"error":{"message":"x"}}`, `{"error":"x","choices":[]}`, `{"type":"error","message":"x"}`} {
		if _, _, err := fed(openaiWire{}, e); !errors.Is(err, errInStream) {
			t.Errorf("%s: %v, want an error inside the stream", e, err)
		}
	}
	if _, _, err := fed(openaiWire{}, `{"choices":[{`); err == nil || errors.Is(err, errInStream) {
		t.Errorf("broken JSON: %v", err)
	}
}

func TestLegacyFunctionCall(t *testing.T) {
	got, res, err := fed(openaiWire{}, oa(`{"function_call":{"name":"x","arguments":"{"}}`), oa(`{"function_call":{"arguments":"}"}}`), oaEnd("function_call"))
	if err != nil || len(res.Calls) != 1 || res.Calls[0].Name != "x" || res.Calls[0].Input != "{}" || !strings.HasPrefix(res.Calls[0].ID, "call_") || res.Finish != FinishTools {
		t.Fatalf("%s %+v %v", got, res, err)
	}
}

func TestAnthropicDecoder(t *testing.T) {
	start := `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":1}}}`
	end := func(reason string) []string {
		return []string{`{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`}
	}
	text := []string{start, `{"type":"ping"}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, usualEvent, `{"type":"content_block_stop","index":0}`}
	for _, c := range []struct {
		name   string
		in     []string
		want   string
		finish string
	}{
		{"text", append(text, end("end_turn")...), "began text( token)", "stop"},
		{"max tokens", append(text, end("max_tokens")...), "began text( token)", "length"},
		{"refusal", append([]string{start}, end("refusal")...), "began", "content-filter"},
		{"cut off", text, "began text( token)", ""},
		{"thinking, then a tool", append([]string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"bash","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}`,
			`{"type":"content_block_stop","index":1}`}, end("tool_use")...),
			`began reasoning(hm) reasoning({"signature":"sig"}) tool0(t1,bash) input0({"a") input0(:1}) done0({"a":1})`, "tool-calls"},
		{"input given at once", append([]string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"x","input":{"a":1}}}`, `{"type":"content_block_stop","index":0}`}, end("tool_use")...),
			`began tool0(t1,x) input0({"a":1}) done0({"a":1})`, "tool-calls"},
		{"redacted thinking", append([]string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"zz"}}`, `{"type":"content_block_stop","index":0}`}, end("end_turn")...),
			`began reasoning({"redacted":"zz"})`, "stop"},
	} {
		got, res, err := fed(anthropicWire{}, c.in...)
		if err != nil || got != c.want || res.Finish != c.finish {
			t.Errorf("%s:\n got %s, finish %q, %v\nwant %s, finish %q", c.name, got, res.Finish, err, c.want, c.finish)
		}
	}
	_, res, _ := fed(anthropicWire{}, append(text, end("end_turn")...)...)
	if k := res.Tokens; k.Input != 10 || k.CacheRead != 3 || k.CacheWrite != 2 || k.Output != 9 {
		t.Errorf("tokens: %+v", k)
	}
	if _, _, err := fed(anthropicWire{}, start, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`); !errors.Is(err, errInStream) {
		t.Errorf("error event: %v", err)
	}
}

// FuzzOpenAIChunk: what the quick reader takes, it reads as encoding/json does.
func FuzzOpenAIChunk(f *testing.F) {
	for _, s := range []string{usualChunk, oa(`{"content":"\u00e9\ud83d\ude00"}`), oaEnd("stop"), oa(`{"content":null,"reasoning":"x"}`), `{"choices":[{"delta":{"content":"a","content":"b"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"x"}],"usage":{"prompt_tokens":1}}`, `{"error":null,"choices":[{"delta":{"Content":"a"}}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, b []Delta
		q := &openaiDecoder{fold: fold{yield: func(d Delta) { a = append(a, d) }}}
		c, ok := q.quick(in)
		if !ok {
			return
		}
		q.begin()
		q.reasoning(c.reasoning)
		q.text(c.text)
		if c.finish != "" {
			q.end = openaiFinish(c.finish)
		}
		j := &openaiDecoder{fold: fold{yield: func(d Delta) { b = append(b, d) }}}
		if err := j.chunk(in); err != nil {
			t.Fatalf("%q: quick took what encoding/json refuses: %v", in, err)
		}
		if told(a) != told(b) || q.end != j.end || string(q.usage) != string(j.usage) {
			t.Fatalf("%q: quick %s %s %s, encoding/json %s %s %s", in, told(a), q.end, q.usage, told(b), j.end, j.usage)
		}
	})
}

// FuzzAnthropicEvent: the same for the other wire.
func FuzzAnthropicEvent(f *testing.F) {
	for _, s := range []string{usualEvent, `{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"\n"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","text":"b"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, b []Delta
		q := &anthropicDecoder{fold: fold{yield: func(d Delta) { a = append(a, d) }}}
		text, thinking, ok := q.quick(in)
		if !ok {
			return
		}
		q.text(text)
		q.reasoning(thinking)
		j := &anthropicDecoder{fold: fold{yield: func(d Delta) { b = append(b, d) }}}
		var m anthropicEvent
		if err := json.Unmarshal(in, &m); err != nil {
			t.Fatalf("%q: quick took what encoding/json refuses: %v", in, err)
		}
		if err := j.message(&m); err != nil || told(a) != told(b) {
			t.Fatalf("%q: quick %s, encoding/json %s %v", in, told(a), told(b), err)
		}
	})
}

// FuzzDecoders: no input makes a decoder panic or give a call without a name.
func FuzzDecoders(f *testing.F) {
	f.Add([]byte(usualChunk), []byte(oaEnd("stop")))
	f.Add([]byte(oa(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"x","arguments":{}}}]}`)), []byte(oaEnd("tool_calls")))
	f.Add([]byte(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"bash","input":{}}}`), []byte(`{"type":"content_block_stop","index":1}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		for _, w := range []wire{openaiWire{}, anthropicWire{}} {
			d := w.decoder(func(Delta) {})
			_ = d.event(event{data: one})
			_ = d.event(event{data: two})
			for _, c := range d.finish().Calls {
				if c.Name == "" || c.ID == "" || c.Input == "" {
					t.Fatalf("%q %q: call %+v", one, two, c)
				}
			}
			_ = w.decoder(func(Delta) {}).whole(one)
		}
	})
}

func benchToken(b *testing.B, w wire, chunk string) {
	frame := []byte("data: " + chunk + "\n\n")
	s := newSSEReader(&repeat{text: frame})
	n := 0
	d := w.decoder(func(Delta) { n++ })
	b.ReportAllocs()
	for b.Loop() {
		ev, ok := s.next()
		if !ok {
			b.Fatal(s.err)
		}
		if err := d.event(ev); err != nil {
			b.Fatal(err)
		}
	}
	if n < b.N {
		b.Fatalf("%d deltas of %d", n, b.N)
	}
}

func BenchmarkTokenOpenAI(b *testing.B)    { benchToken(b, openaiWire{}, usualChunk) }
func BenchmarkTokenAnthropic(b *testing.B) { benchToken(b, anthropicWire{}, usualEvent) }

// BenchmarkTokenSlow is the path of unusual chunks: a tool's arguments.
func BenchmarkTokenSlow(b *testing.B) {
	benchToken(b, openaiWire{}, oa(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"bash","arguments":"x"}}]}`))
}
