package drill

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
)

// numbers gives every answer and call an id of its own.
var numbers atomic.Uint64

func number() string { return strconv.FormatUint(numbers.Add(1), 10) }

// out is what all wires share: a buffer of frames and the connection. Agents
// take answers of the same id for one (claude-agent-acp 0.101.0).
type out struct {
	id     string
	w      http.ResponseWriter
	rc     *http.ResponseController
	buf    []byte
	tokens int
	size   int
	err    error
}

func newOut(w http.ResponseWriter, r *request) out {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	return out{id: number(), w: w, rc: http.NewResponseController(w), size: r.size}
}

func (o *out) flush() error {
	if o.err == nil && len(o.buf) > 0 {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf = o.buf[:0]
	if o.err == nil {
		o.err = o.rc.Flush()
	}
	return o.err
}

// cut closes the connection with a reset, as a crashed peer does.
func (o *out) cut() {
	conn, _, err := o.rc.Hijack()
	if err != nil {
		return
	}
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = conn.Close()
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string always marshals
	return b
}

// fillers are the tokens of filler text.
var fillers = [...]string{" the", " drill", " goes", " on", " and", " on", ",", " step", " by", " step"}

// The frame of one token, made once per wire.
var openaiWords, anthropicWords = func() (a, b [len(fillers)][]byte) {
	for i, w := range fillers {
		a[i] = openaiDelta(`{"content":` + string(quoted(w)) + `}`)
		b[i] = anthropicDelta(`{"type":"text_delta","text":` + string(quoted(w)) + `}`)
	}
	return a, b
}()

func openaiDelta(delta string) []byte {
	return []byte(`data: {"id":"drill","object":"chat.completion.chunk","created":1764500000,"model":"drill","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n")
}

// openai writes chat completions.
type openai struct{ out }

func openaiFrames(w http.ResponseWriter, r *request) frames {
	if !r.stream {
		return &document{w: w, r: r, openai: true}
	}
	return &openai{newOut(w, r)}
}

func (o *openai) begin() { o.buf = append(o.buf, openaiDelta(`{"role":"assistant","content":""}`)...) }

func (o *openai) text(s string) {
	o.tokens++
	o.buf = append(o.buf, openaiDelta(`{"content":`+string(quoted(s))+`}`)...)
}

func (o *openai) words(n int) {
	for range n {
		o.buf = append(o.buf, openaiWords[o.tokens%len(fillers)]...)
		o.tokens++
	}
}

func (o *openai) reasoning(s string) {
	o.tokens++
	o.buf = append(o.buf, openaiDelta(`{"reasoning_content":`+string(quoted(s))+`}`)...)
}

func (o *openai) call(name, input string) {
	o.tokens++
	half := len(input) / 2
	o.buf = append(o.buf, openaiDelta(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%s","type":"function","function":{"name":%s,"arguments":""}}]}`, number(), quoted(name)))...)
	for _, part := range []string{input[:half], input[half:]} {
		o.buf = append(o.buf, openaiDelta(fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}`, quoted(part)))...)
	}
}

func (o *openai) finish(reason string) {
	if reason == "tool" {
		reason = "tool_calls"
	}
	o.buf = fmt.Appendf(o.buf, "data: {\"id\":\"drill\",\"object\":\"chat.completion.chunk\",\"created\":1764500000,\"model\":\"drill\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\n", reason)
	in := 1 + o.size/4
	o.buf = fmt.Appendf(o.buf, "data: {\"id\":\"drill\",\"object\":\"chat.completion.chunk\",\"created\":1764500000,\"model\":\"drill\",\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\ndata: [DONE]\n\n", in, o.tokens, in+o.tokens)
	_ = o.flush()
}

// anthropic writes messages.
type anthropic struct {
	out
	block int
	open  string // kind of the open block
}

func anthropicFrames(w http.ResponseWriter, r *request) frames {
	if !r.stream {
		return &document{w: w, r: r}
	}
	return &anthropic{out: newOut(w, r)}
}

func anthropicEvent(name, body string) []byte {
	return []byte("event: " + name + "\ndata: " + body + "\n\n")
}

func anthropicDelta(delta string) []byte {
	return anthropicEvent("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+delta+`}`)
}

func (a *anthropic) event(name, format string, args ...any) {
	a.buf = append(a.buf, anthropicEvent(name, fmt.Sprintf(format, args...))...)
}

func (a *anthropic) begin() {
	a.event("message_start", `{"type":"message_start","message":{"id":"msg_%s","type":"message","role":"assistant","content":[],"model":"drill","usage":{"input_tokens":%d,"output_tokens":1}}}`, a.id, 1+a.size/4)
}

// enter opens a block of a kind, after closing the one before.
func (a *anthropic) enter(kind, content string) {
	if a.open == kind && kind != "tool_use" {
		return
	}
	a.leave()
	a.open = kind
	a.event("content_block_start", `{"type":"content_block_start","index":%d,"content_block":%s}`, a.block, content)
}

func (a *anthropic) leave() {
	if a.open != "" {
		a.event("content_block_stop", `{"type":"content_block_stop","index":%d}`, a.block)
		a.block++
		a.open = ""
	}
}

func (a *anthropic) delta(format string, args ...any) {
	a.event("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":%s}`, a.block, fmt.Sprintf(format, args...))
}

func (a *anthropic) text(s string) {
	a.enter("text", `{"type":"text","text":""}`)
	a.tokens++
	a.delta(`{"type":"text_delta","text":%s}`, quoted(s))
}

func (a *anthropic) words(n int) {
	a.enter("text", `{"type":"text","text":""}`)
	for range n {
		if word := a.tokens % len(fillers); a.block == 0 {
			a.buf = append(a.buf, anthropicWords[word]...)
		} else {
			a.delta(`{"type":"text_delta","text":%s}`, quoted(fillers[word]))
		}
		a.tokens++
	}
}

func (a *anthropic) reasoning(s string) {
	a.enter("thinking", `{"type":"thinking","thinking":"","signature":""}`)
	a.tokens++
	a.delta(`{"type":"thinking_delta","thinking":%s}`, quoted(s))
}

func (a *anthropic) call(name, input string) {
	a.enter("tool_use", fmt.Sprintf(`{"type":"tool_use","id":"toolu_%s","name":%s,"input":{}}`, number(), quoted(name)))
	a.tokens++
	half := len(input) / 2
	for _, part := range []string{input[:half], input[half:]} {
		a.delta(`{"type":"input_json_delta","partial_json":%s}`, quoted(part))
	}
}

func (a *anthropic) finish(reason string) {
	if reason == "tool" {
		reason = "tool_use"
	} else {
		reason = "end_turn"
	}
	if a.open == "thinking" {
		a.delta(`{"type":"signature_delta","signature":"drill"}`)
	}
	a.leave()
	a.event("message_delta", `{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":%d}}`, reason, a.tokens)
	a.event("message_stop", `{"type":"message_stop"}`)
	_ = a.flush()
}
