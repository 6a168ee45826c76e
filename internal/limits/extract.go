package limits

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxBody bounds what is read of a body; a larger one is opaque.
const maxBody = 1 << 20

// facts is what evidence says, taken apart.
type facts struct {
	provider string
	status   int
	headers  http.Header
	base     time.Time // relative times count from here
	zone     string
	codes    []string
	texts    []string // messages as they were
	text     string   // all messages, folded for matching
	plain    string   // the same with its capitals: names of zones have them
	raw      string   // metadata.raw, folded
	docs     []map[string]any
	model    string // of an agent's record
	window   string // the exhausted window, where it is structured
	category string // of a typed session failure, with its severity
	retries  bool   // the record says that the agent itself tries again
	channel  Channel
}

func (x *facts) message() string { return strings.Join(x.texts, " ") }

// extract takes evidence apart; false for evidence that proves nothing.
func extract(e Evidence) (facts, bool) {
	x := facts{provider: e.Provider, base: e.At, zone: e.HostZone, channel: e.Channel}
	switch e.Channel {
	case HTTP:
		if e.HTTP == nil {
			return x, false
		}
		x.status, x.headers = e.HTTP.Status, e.HTTP.Headers
		x.body(e.HTTP.Body)
		if x.status >= 200 && x.status < 300 && !x.failed() {
			return x, false
		}
		if t, _, _ := strings.Cut(x.headers.Get("X-Amzn-Errortype"), ":"); t != "" {
			x.code(t)
		}
	case SSE, ACPError:
		doc := decode(e.Event)
		if len(doc) == 0 {
			return x, false
		}
		x.document(doc, 0)
		if e.Channel == ACPError {
			x.acp(doc)
		}
		x.envelope(doc)
	case ACPUpdate:
		if !x.update(decode(e.Event)) {
			return x, false
		}
	case SDKEvent:
		if !x.sdk(decode(e.Event)) {
			return x, false
		}
	case Stderr:
		if !x.record(e) {
			return x, false
		}
	case Text:
		if !e.Trusted {
			return x, false
		}
		x.say(e.Text)
	default:
		return x, false
	}
	var plain []string
	for _, t := range x.texts {
		plain = append(plain, flatten(t))
	}
	x.plain = strings.Join(plain, " ")
	x.text = strings.ToLower(x.plain)
	if x.status >= 200 && x.status < 300 || x.status == 0 { // an error inside a stream carries its status as code
		for _, c := range x.codes {
			if n, err := strconv.Atoi(c); err == nil && n >= 400 && n <= 599 {
				x.status = n
			}
		}
	}
	return x, !cancelled.MatchString(x.text) && !x.has("-32800")
}

var cancelled = regexp.MustCompile(`context canceled|request was aborted|request cancelled|operation cancelled|^\W*aborted\W*$`)

// failed reports an error object in the body.
func (x *facts) failed() bool {
	for _, d := range x.docs {
		switch d["error"].(type) {
		case map[string]any, string:
			return true
		}
		if d["error_code"] != nil || d["type"] == "error" {
			return true
		}
	}
	return false
}

// body reads an answer's body: JSON, plain text, or opaque.
func (x *facts) body(b []byte) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	b = bytes.TrimSpace(b)
	if len(b) == 0 || len(b) > maxBody || b[0] == '<' || bytes.IndexByte(b, 0) >= 0 {
		return
	}
	switch b[0] {
	case '{', '[':
		if doc := decode(b); doc != nil {
			x.document(doc, 0)
		}
	case '"':
		var s string
		if json.Unmarshal(b, &s) == nil {
			x.say(s)
		}
	default:
		if utf8.Valid(b) {
			x.say(string(b))
		}
	}
}

// decode gives a JSON object, or the first object of an array; nil for all
// else. Numbers stay as they were written.
func decode(b []byte) map[string]any {
	if !json.Valid(b) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	m, _ := v.(map[string]any)
	return m
}

// document collects codes and messages of an error document.
func (x *facts) document(d map[string]any, depth int) {
	if depth > 4 {
		return
	}
	x.docs = append(x.docs, d)
	if r, ok := d["response"].(map[string]any); ok && d["type"] == "response.failed" {
		x.document(r, depth+1)
		return
	}
	inner, isObject := d["error"].(map[string]any)
	for _, k := range []string{"code", "error_code", "__type", "status_code", "terminal_reason"} {
		x.code(d[k])
	}
	if !isObject {
		x.code(d["type"])
		x.code(d["status"])
	}
	if s, ok := d["error"].(string); ok {
		x.speak(s, depth)
	}
	for _, k := range []string{"message", "error_msg"} {
		if s, ok := d[k].(string); ok {
			x.speak(s, depth)
		}
	}
	if m, ok := d["metadata"].(map[string]any); ok {
		x.docs = append(x.docs, m)
		if s, ok := m["raw"].(string); ok {
			x.raw += fold(s)
		}
	}
	if list, ok := d["details"].([]any); ok {
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				x.code(m["reason"])
				x.docs = append(x.docs, m)
				if meta, ok := m["metadata"].(map[string]any); ok {
					x.docs = append(x.docs, meta)
				}
				x.violations(m)
			}
		}
	}
	if isObject {
		x.document(inner, depth+1)
	}
}

// violations keeps the dimensions of a quota failure (google.rpc.QuotaFailure).
func (x *facts) violations(m map[string]any) {
	list, _ := m["violations"].([]any)
	for _, v := range list {
		if o, ok := v.(map[string]any); ok {
			x.docs = append(x.docs, o)
			if dims, ok := o["quotaDimensions"].(map[string]any); ok {
				x.docs = append(x.docs, dims)
			}
		}
	}
}

// acp reads what only an ACP error has.
func (x *facts) acp(d map[string]any) {
	if n, ok := d["code"].(json.Number); ok {
		if i, err := strconv.Atoi(n.String()); err == nil && i >= 100 && i <= 599 {
			x.status = i
		}
	}
	data, _ := d["data"].(map[string]any)
	if data == nil {
		return
	}
	x.docs = append(x.docs, data)
	x.errorInfo(data)
	for _, k := range []string{"message", "details"} {
		if s, ok := data[k].(string); ok {
			x.speak(s, 1)
		}
	}
}

// code notes a code.
func (x *facts) code(v any) {
	s := ""
	switch v := v.(type) {
	case string:
		s = v
	case json.Number:
		s = v.String()
	}
	if i := strings.LastIndexByte(s, '#'); i >= 0 {
		s = s[i+1:]
	}
	if s != "" && len(s) <= 200 {
		x.codes = append(x.codes, s)
	}
}

// speak notes a message; one that is a document itself is read as such.
func (x *facts) speak(s string, depth int) {
	s = strings.TrimPrefix(s, "Internal error: ")
	if t := strings.TrimSpace(s); strings.HasPrefix(t, "{") {
		if doc := decode([]byte(t)); doc != nil {
			x.document(doc, depth+1)
			return
		}
	}
	x.say(s)
}

func (x *facts) say(s string) {
	if s = strings.TrimSpace(s); s != "" {
		x.texts = append(x.texts, s)
	}
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// fold makes text comparable: flat and in lower case.
func fold(s string) string { return strings.ToLower(flatten(s)) }

// flatten leaves no colour codes, plain quotes and dots, single spaces.
func flatten(s string) string {
	s = ansi.ReplaceAllString(s, "")
	var b strings.Builder
	space := false
	for _, r := range s {
		switch r {
		case '‘', '’', '‛', 'ʼ':
			r = '\''
		case '∙', '•':
			r = '·'
		}
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}
