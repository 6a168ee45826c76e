package limits

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxBody  = 1 << 20 // a larger body is opaque: only status and headers count
	maxDepth = 2       // error objects inside each other
	maxNest  = 3       // levels of JSON inside a message of JSON
	maxCode  = 200     // bytes of a code; a longer one is a text in the wrong place
)

// facts is what evidence says, taken apart.
type facts struct {
	provider string
	status   int
	headers  http.Header
	base     time.Time // relative times count from here
	zone     string
	codes    []string
	texts    []string // messages as they were
	plain    string   // all messages, flattened, one a line
	text     string   // the same in lower case, same indices
	raw      string   // metadata.raw, folded
	docs     []map[string]any
	quotas   []string // ids of violated quotas
	model    string   // of an agent's record
	about    string   // the model that the structure names
	window   string   // the exhausted window, where it is structured
	category string   // of a typed session failure, with its severity
	retries  bool     // the record says that the agent itself tries again
	channel  Channel

	rejectedEvent bool // a rejected rate_limit_event was read
	agyError      bool // an AGY_ERROR record was read
}

// extract takes evidence apart; false for evidence that proves nothing.
func extract(e Evidence) (facts, bool) {
	x := facts{provider: e.Provider, base: e.At, zone: e.HostZone, channel: e.Channel}
	if !x.read(e) {
		return x, false
	}
	if len(x.headers) > 0 {
		x.claim(x.headers.Get(unifiedPrefix + "Representative-Claim"))
	}
	x.join()
	if x.status < 400 { // an error inside a stream carries its status as code
		for _, c := range x.codes {
			if n := number(c); len(c) == 3 && digits(c) == 3 && n >= 400 && n <= 599 {
				x.status = n
			}
		}
	}
	return x, !x.cancelled()
}

// read takes the evidence's one payload.
func (x *facts) read(e Evidence) bool {
	switch e.Channel {
	case HTTP:
		if e.HTTP == nil {
			return false
		}
		x.status, x.headers = e.HTTP.Status, e.HTTP.Headers
		return x.answer(e.HTTP.Body)
	case SSE, ACPError:
		doc := eventOf(e.Event)
		if len(doc) == 0 {
			return false
		}
		x.document(doc, 0, 0)
		if e.Channel == ACPError {
			x.acp(doc)
			x.acp(object(doc, "error"))
		}
		x.envelope(doc)
		return true
	case ACPUpdate:
		return x.update(eventOf(e.Event))
	case SDKEvent:
		return x.sdk(eventOf(e.Event))
	case Stderr:
		return x.record(e)
	case Text:
		x.say(e.Text)
		return e.Trusted
	}
	return false
}

// join makes the comparable forms of the messages, one message a line, so that
// no rule reads across the end of one.
func (x *facts) join() {
	if len(x.texts) > 1 && x.texts[0] == "Internal error" { // JSON-RPC's filler; the next one says what
		x.texts = x.texts[1:]
	}
	for i, t := range x.texts {
		t = flatten(t)
		if i == 0 {
			x.plain = t
			continue
		}
		x.plain += "\n" + t
	}
	x.text = lower(x.plain)
	if x.is(zaiFamily...) {
		x.bracketCodes()
	}
}

// cancelled reports that the call was ended by ourselves.
func (x *facts) cancelled() bool {
	if x.has("-32800") {
		return true
	}
	for _, says := range []string{"context cancel", "request was aborted", "request cancel", "operation cancel"} {
		if each(x.text, says, func(end int) bool {
			rest := x.text[end:]
			return !strings.HasSuffix(says, "cancel") || strings.HasPrefix(rest, "led") || strings.HasPrefix(rest, "ed")
		}) {
			return true
		}
	}
	for m := range strings.SplitSeq(x.plain, "\n") {
		if alone(m, "aborted") {
			return true
		}
	}
	return false
}

// failed reports an error object in the body.
func (x *facts) failed() bool {
	if len(x.docs) == 0 {
		return false
	}
	d := x.docs[0]
	switch d["error"].(type) {
	case map[string]any, string:
		return true
	}
	return d["error_code"] != nil || d["type"] == "error"
}

// answer reads an answer whose status and headers are known; false for one that
// is no failure.
func (x *facts) answer(body []byte) bool {
	x.body(body)
	if x.status >= 200 && x.status < 300 {
		if !x.failed() {
			return false
		}
		x.statusInside(x.docs[0])
	}
	x.amazonCode()
	return true
}

// body reads an answer's body: JSON, plain text, or opaque.
func (x *facts) body(b []byte) {
	if len(b) > maxBody {
		return
	}
	b = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\xef\xbb\xbf")))
	if len(b) == 0 || b[0] == '<' {
		return
	}
	switch b[0] {
	case '{', '[':
		if doc := decode(b); doc != nil {
			x.document(doc, 0, 0)
		}
		return
	case '"':
		var s string
		if json.Unmarshal(b, &s) == nil {
			x.speak(s, 0)
			return
		} // plain text that begins with a quotation
	}
	if utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
		x.say(string(b))
	}
}

// decode gives a JSON object, or the first object of an array; nil for all
// else. Numbers stay as they were written.
func decode(b []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	if _, err := d.Token(); err != io.EOF { // something follows
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		return v
	case []any:
		for _, item := range v {
			if m, ok := item.(map[string]any); ok {
				return m
			}
		}
	}
	return nil
}

// document collects codes and messages of an error document. depth counts the
// documents that d is the error object of: error.error is read, and nothing
// deeper. nest counts the levels of JSON in messages that led here.
func (x *facts) document(d map[string]any, depth, nest int) {
	x.docs = append(x.docs, d)
	if r, ok := d["response"].(map[string]any); ok && d["type"] == "response.failed" {
		x.document(r, depth, nest)
		return
	}
	deeper, isObject := d["error"].(map[string]any)
	x.code(d["code"])
	x.code(d["error_code"])
	x.code(d["__type"])
	if depth > 0 || !isObject {
		x.code(d["type"])
		x.code(d["status"])
	}
	if s, ok := d["error"].(string); ok {
		x.speak(s, nest)
	}
	for _, k := range [2]string{"message", "error_msg"} {
		if s, ok := d[k].(string); ok {
			x.speak(s, nest)
		}
	}
	if m, ok := d["metadata"].(map[string]any); ok {
		x.docs = append(x.docs, m)
		if s, ok := m["raw"].(string); ok {
			x.raw += lower(flatten(bounded(s)))
		}
	}
	if list, ok := d["details"].([]any); ok {
		for _, v := range list {
			if m, ok := v.(map[string]any); ok && len(x.docs) < maxCandidates {
				x.detail(m)
			}
		}
	}
	if isObject && depth < maxDepth && len(x.docs) < maxCandidates {
		x.document(deeper, depth+1, nest)
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
	if s != "" && len(s) <= maxCode && len(x.codes) < maxCandidates {
		x.codes = append(x.codes, s)
	}
}

// has reports a code.
func (x *facts) has(code string) bool {
	for _, c := range x.codes {
		if c == code {
			return true
		}
	}
	return false
}

// is reports one of the providers.
func (x *facts) is(ids ...string) bool {
	for _, id := range ids {
		if x.provider == id {
			return true
		}
	}
	return false
}

// named keeps the model that the evidence's structure names; the first counts.
func (x *facts) named(model string) {
	if x.about == "" {
		x.about = model
	}
}

// speak notes a message; one that is a document itself, or a list of them, is
// read in its place.
func (x *facts) speak(s string, nest int) {
	s = strings.TrimPrefix(s, "Internal error: ")
	if t := strings.TrimSpace(s); nest < maxNest && len(t) <= maxBody && t != "" && (t[0] == '{' || t[0] == '[') {
		if doc := decode([]byte(t)); doc != nil {
			x.document(doc, 0, nest+1)
			return
		}
	}
	x.say(s)
}

func (x *facts) say(s string) {
	if s = strings.TrimSpace(s); s != "" && len(x.texts) < maxCandidates {
		x.texts = append(x.texts, bounded(s))
	}
}
