package diagnostics

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

var oldHead = regexp.MustCompile(`^([A-Z]+) +(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) +\+\d+ms(?: |$)`)

// titleWords begin the system text of the request that names a session. Old
// versions log it under the main agent and model.
const titleWords = "You are a title generator"

// oldLayout reads the layout of OpenCode 1.0 to 1.15: the level and the time
// in front, the failed call as JSON, and the message at the end.
func (r *Record) oldLayout(s string) Reason {
	if s == "" || s[0] < 'A' || s[0] > 'Z' {
		return ReasonFormat
	}
	head := oldHead.FindStringSubmatch(s[:min(len(s), 200)])
	switch {
	case head == nil:
		return ReasonFormat
	case control(s):
		return ReasonMalformed
	case head[1] != "ERROR":
		return ReasonNotError
	}
	f, said, found := header(s[len(head[0]):])
	switch {
	case f.first["service"] == "session.processor":
		if found && aborted(processorText(said)) {
			return ReasonAborted
		}
		return ReasonOldProcess
	case f.first["service"] != "llm" || !found:
		return ReasonOther
	}
	var failed map[string]object
	rest, ok := decode(said, &failed)
	switch {
	case !ok || strings.TrimSpace(rest) == "":
		return ReasonMalformed
	case strings.TrimSpace(rest) != "stream error":
		return ReasonOther
	case f.twice, f.first["sessionID"] != "" && f.first["session.id"] != "":
		return ReasonDuplicate
	}
	r.old = true
	r.session = cmp.Or(f.first["sessionID"], f.first["session.id"])
	r.provider, r.model = f.first["providerID"], f.first["modelID"]
	r.agent, r.small = f.first["agent"], f.first["small"]
	r.link, r.linked = f.first["action_url"]
	r.call(failed["error"])
	return r.whole(head[2], false)
}

// tokens are those in front of an old record's error.
type tokens struct {
	first map[string]string
	twice bool
}

// header reads the tokens up to error=, and what follows that. Old versions
// quote nothing: words without a key belong to the value in front of them, as
// in agent=code reviewer.
func header(s string) (f tokens, said string, found bool) {
	f.first = make(map[string]string, 8)
	last, from := "", 0 // the key in front, and where its value begins
	for rest := strings.TrimLeft(s, " "); rest != ""; {
		if said, ok := strings.CutPrefix(rest, "error="); ok {
			return f, said, true
		}
		at := len(s) - len(rest)
		key, value, next := unquoted(rest)
		_, seen := f.first[key]
		switch {
		case key != "" && seen:
			f.twice = true
		case key != "":
			f.first[key] = value
			last, from = key, at+len(key)+1
		case last == "":
			return f, "", false // words in front of the first key
		default:
			f.first[last] = s[from : at+len(value)]
		}
		rest = next
	}
	return f, "", false
}

// unquoted reads what token does, or else a word: its value may be empty and
// hold anything, and there may be no key.
func unquoted(s string) (key, value, rest string) {
	if key, value, rest, ok := token(s); ok {
		return key, value, rest
	}
	value, rest, _ = strings.Cut(s, " ")
	if n := keyLength(value); n > 0 {
		key, value = value[:n], value[n+1:]
	}
	return key, value, strings.TrimLeft(rest, " ")
}

// processorText is the error of an old session.processor record, which is not
// quoted.
func processorText(said string) string {
	said, _, _ = strings.Cut(said, " stack=")
	return strings.TrimSuffix(strings.TrimRight(said, " "), " process")
}

// object is a JSON object's members by their exact names, which structs are
// not decoded by: there "Message" is "message", too. What is no object has none.
type object map[string]json.RawMessage

func objectOf(raw json.RawMessage) object {
	var o object
	_ = json.Unmarshal(raw, &o) // what has another type than expected is left out, not refused
	return o
}

func (o object) at(member string) object { return objectOf(o[member]) }

// text is a member that is a text, or "".
func (o object) text(member string) string {
	s, _ := o.value(member).(string)
	return s
}

// scalar is a member that is a text or a number, as text.
func (o object) scalar(member string) string {
	switch v := o.value(member).(type) {
	case string:
		return v
	case float64:
		b, _ := json.Marshal(v) // a float64 from JSON
		return string(b)
	}
	return ""
}

func (o object) value(member string) (v any) {
	if raw := o[member]; len(raw) > 0 && raw[0] != '{' && raw[0] != '[' {
		_ = json.Unmarshal(raw, &v) // a part of what was decoded
	}
	return v
}

// apiError is what a provider said.
type apiError struct{ message, kind, code string }

func (o object) apiError() apiError {
	return apiError{o.text("message"), o.scalar("type"), o.scalar("code")}
}

// decode reads one JSON value into v, as far as it is of v's type; rest is what
// follows it.
func decode(s string, v any) (rest string, ok bool) {
	d := json.NewDecoder(strings.NewReader(s))
	var other *json.UnmarshalTypeError
	if err := d.Decode(v); err != nil && !errors.As(err, &other) {
		return "", false
	}
	return s[d.InputOffset():], true
}

// call takes the text and what else is known from a failed call.
func (r *Record) call(e object) {
	r.name = e.text("name")
	r.title = asksForTitle(e["requestBodyValues"])
	var each []json.RawMessage // of AI_RetryError, one for each attempt
	if r.name == retryError && json.Unmarshal(e["errors"], &each) == nil && len(each) > 0 {
		e = objectOf(each[len(each)-1])
		r.title = r.title || asksForTitle(e["requestBodyValues"])
	}
	if status, ok := e.value("statusCode").(float64); ok {
		r.status = int(min(max(status, 0), 999))
	}
	said := e.at("data").at("error").apiError()
	body := bodyError(e.text("responseBody"))
	r.text = cmp.Or(said.message, body.message, e.text("message"), e.text("name"))
	r.kind, r.code = said.kind, said.code
	if said.kind == "" && said.code == "" {
		r.kind, r.code = body.kind, body.code
	}
}

// bodyError reads what a provider answered: {"error": {…}}, {"error": "…"} or
// {"message": "…"}.
func bodyError(body string) apiError {
	var b object
	if _, ok := decode(body, &b); !ok {
		return apiError{}
	}
	said, top := b.at("error").apiError(), b.apiError()
	said.message = cmp.Or(said.message, b.text("error"), top.message)
	if said.kind == "" && said.code == "" {
		said.kind, said.code = top.kind, top.code
	}
	return said
}

// asksForTitle looks where the wires of providers keep the system text.
func asksForTitle(request json.RawMessage) bool {
	if !bytes.Contains(request, []byte(titleWords)) {
		return false
	}
	q := objectOf(request)
	for _, member := range []string{"system", "instructions", "systemInstruction"} {
		var v any
		if json.Unmarshal(q[member], &v) == nil && startsTitle(v) {
			return true
		}
	}
	for _, member := range []string{"messages", "input"} {
		var messages []json.RawMessage
		_ = json.Unmarshal(q[member], &messages) // as above
		for _, raw := range messages {
			m := objectOf(raw)
			var content any
			if role := m.text("role"); (role == "system" || role == "developer") && json.Unmarshal(m["content"], &content) == nil && startsTitle(content) {
				return true
			}
		}
	}
	return false
}

// startsTitle looks at a text, at texts in a list, and at {"text": …} and
// {"parts": […]}.
func startsTitle(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.HasPrefix(strings.TrimSpace(v), titleWords)
	case []any:
		for _, one := range v {
			if startsTitle(one) {
				return true
			}
		}
	case map[string]any:
		return startsTitle(v["text"]) || startsTitle(v["parts"])
	}
	return false
}
