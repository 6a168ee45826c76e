package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// Neutral makes messages fit to be shown to anybody: what people and models
// wrote, paths, addresses, keys and the arguments and results of tools are
// gone, ids have other names (the same ones for the same ids), and what an end
// is judged by is as it was. What is not known to be harmless is hidden. The
// zero Neutral is ready; it is for one goroutine.
type Neutral struct {
	names map[string]string
}

// hidden stands for a text.
const hidden = "…"

// called is another name for an id, the same one each time.
func (n *Neutral) called(kind, id string) string {
	if id == "" {
		return ""
	}
	if n.names == nil {
		n.names = map[string]string{}
	}
	name := n.names[kind+id]
	if name == "" {
		name = fmt.Sprintf("%s_%026d", kind, len(n.names)+1)
		n.names[kind+id] = name
	}
	return name
}

// Session is another name for a session.
func (n *Neutral) Session(id string) string { return n.called("ses", id) }

// Message is a line without what is private; ok is false for a line that is no
// message, of which nothing may be kept.
func (n *Neutral) Message(line []byte) (out []byte, ok bool) {
	m, err := wire.Parse(line)
	if err != nil {
		return nil, false
	}
	w := rewriter{n: n, m: m, in: json.NewDecoder(bytes.NewReader(line))}
	w.in.UseNumber()
	w.value(nil)
	return w.out.Bytes(), !w.failed
}

// rewriter copies one message, value by value.
type rewriter struct {
	n      *Neutral
	m      *wire.Message
	in     *json.Decoder
	out    bytes.Buffer
	failed bool
	// spoken: the chunk's text stands already, in the first of its blocks.
	spoken bool
}

func (w *rewriter) value(path []string) {
	t, err := w.in.Token()
	if err != nil {
		w.failed = true
		return
	}
	switch t := t.(type) {
	case json.Delim:
		w.container(t, path)
	case string:
		w.put(w.text(path, t))
	default:
		w.put(t)
	}
}

func (w *rewriter) container(open json.Delim, path []string) {
	w.out.WriteString(open.String())
	for i := 0; w.in.More() && !w.failed; i++ {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if open == '[' {
			w.value(path)
			continue
		}
		t, err := w.in.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			w.failed = true
			return
		}
		inner := append(slices.Clone(path), key)
		if len(inner) == 3 && key == "content" {
			w.spoken = false // of two of that name the last counts
		}
		if !word(key) {
			key = w.n.called("key", key)
		}
		w.put(key)
		w.out.WriteByte(':')
		if w.private(inner) {
			w.empty()
		} else {
			w.value(inner)
		}
	}
	end, err := w.in.Token()
	if w.failed = w.failed || err != nil; !w.failed {
		w.out.WriteString(end.(json.Delim).String())
	}
}

// put writes a string, number, true, false or null.
func (w *rewriter) put(v any) {
	enc := json.NewEncoder(&w.out)
	enc.SetEscapeHTML(false)
	w.failed = enc.Encode(v) != nil || w.failed
	w.out.Truncate(w.out.Len() - 1) // the newline
}

// isChunk reports a piece of a person's, a model's or an adapter's text.
func (w *rewriter) isChunk() bool {
	if w.m.Update == nil {
		return false
	}
	switch w.m.Update.Kind {
	case wire.KindMessage, wire.KindThought, wire.KindUserMessage:
		return true
	}
	return false
}

// private reports what holds arguments, results and files, in any shape.
func (w *rewriter) private(path []string) bool {
	switch path[len(path)-1] {
	case "rawInput", "rawOutput", "locations", "mcpServers", "env", "headers":
		return true
	case "content":
		return slices.Contains(path, "toolCall") || w.m.Update != nil && w.m.Update.Tool != nil
	}
	return false
}

// empty writes an empty value of the type that comes.
func (w *rewriter) empty() {
	var raw json.RawMessage
	if err := w.in.Decode(&raw); err != nil {
		w.failed = true
		return
	}
	switch raw[0] {
	case '{':
		w.out.WriteString("{}")
	case '[':
		w.out.WriteString("[]")
	case '"':
		w.put(hidden)
	default:
		w.out.WriteString("null")
	}
}

// words are the fields whose values are the protocol's or a vendor's names.
var words = map[string]bool{"jsonrpc": true, "method": true, "sessionUpdate": true, "type": true, "kind": true, "status": true, "stopReason": true,
	"priority": true, "outcome": true, "category": true, "severity": true, "role": true, "version": true, "id": true, "name": true, "value": true,
	"currentValue": true, "configId": true, "modelId": true, "currentModelId": true, "model": true, "modeId": true, "currentModeId": true,
	"optionId": true, "methodId": true, "mimeType": true, "currency": true, "timestamp": true, "updatedAt": true}

// ids are the fields whose values are ids, and how these are called.
var ids = map[string]string{"sessionId": "ses", "toolCallId": "call", "messageId": "msg", "requestId": "rpc", "terminalId": "term"}

// text is what is written in the place of a string.
func (w *rewriter) text(path []string, s string) string {
	if len(path) == 0 {
		return hidden
	}
	key := path[len(path)-1]
	switch {
	case len(path) == 1 && key == "id":
		return w.n.called("rpc", s)
	case path[0] == "error":
		return w.fault(key, s)
	case slices.Contains(path, "sessionFailure") && key == "title":
		return said(s)
	case ids[key] != "":
		return w.n.called(ids[key], s)
	case key == "cwd":
		return "/workspace/project"
	case w.isChunk() && len(path) > 2 && path[2] == "content" && (key == "text" || key == "content"):
		if w.spoken {
			return ""
		}
		w.spoken = true
		return chunk(w.m.Update.Content.Text)
	case key == "name" && slices.Contains(path, "agentInfo"):
		return diagnostics.Sanitize(s)
	case words[key] && slices.Contains(path, "options") && key == "name":
		return hidden
	case words[key] && word(s):
		return s
	case words[key]:
		return w.n.called("name", s)
	}
	return hidden
}

// wordlike is a name of the protocol, of a model, a mode or a tool.
var wordlike = regexp.MustCompile(`^[A-Za-z0-9_$-][A-Za-z0-9_.:/@$+()|\[\]-]{0,127}$`)

func word(s string) bool { return wordlike.MatchString(s) && diagnostics.Sanitize(s) == s }

// said is an agent's word on a failure.
func said(s string) string { return diagnostics.Plain(s, diagnostics.ClassOf(s)) }

// told are the fields of an error in which agents say what happened.
var told = map[string]bool{"message": true, "error": true, "details": true, "detail": true, "reason": true, "title": true, "type": true, "code": true,
	"name": true, "status": true, "data": true}

// fault is a string of an error. What else may stand there, such as the whole
// request, leaves no more than the class that it speaks of.
func (w *rewriter) fault(key, s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return s
	case told[key]:
		return said(s)
	case diagnostics.ClassOf(s) != diagnostics.ClassOf(""):
		return diagnostics.Plain(hidden, diagnostics.ClassOf(s))
	}
	return hidden
}

// chunk is a piece of text: nothing of a model's or a person's; of an adapter's
// own what may be shown, if that is still taken for what it was.
func chunk(s string) string {
	notice, failed := judge.Adapters(s)
	switch {
	case strings.TrimSpace(s) == "":
		return s
	case notice:
		for _, plain := range []string{diagnostics.Sanitize(s), diagnostics.Sanitize(s) + "..."} {
			if still, _ := judge.Adapters(plain); still {
				return plain
			}
		}
		return "**Warning:** " + hidden
	case failed:
		plain := said(s)
		if _, still := judge.Adapters(plain); still {
			return plain
		}
		return "Error: " + plain
	}
	return hidden
}
