package diagnostics

import (
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
	f, said, found, whole := header(s[len(head[0]):])
	switch {
	case f.first["service"] == "session.processor":
		if found && aborted(processorText(said)) {
			return ReasonAborted
		}
		return ReasonOldProcess
	case f.first["service"] != "llm" || !found:
		return ReasonOther
	case !whole:
		return ReasonMalformed
	}
	var failed failedCall
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
	r.call(&failed.Error)
	return r.whole(head[2], false)
}

// tokens are those in front of an old record's error.
type tokens struct {
	first map[string]string
	twice bool
}

// header reads the tokens up to error=, and what follows that. whole says that
// there was nothing else between them.
func header(s string) (f tokens, said string, found, whole bool) {
	f.first = make(map[string]string, 8)
	for s = strings.TrimLeft(s, " "); s != ""; {
		if said, ok := strings.CutPrefix(s, "error="); ok {
			return f, said, true, true
		}
		key, value, rest, ok := token(s)
		if !ok {
			_, said, found = strings.Cut(s, " error=")
			return f, said, found, false
		}
		if _, ok := f.first[key]; ok {
			f.twice = true
		} else {
			f.first[key] = value
		}
		s = rest
	}
	return f, "", false, true
}

// processorText is the error of an old session.processor record, which is not
// quoted.
func processorText(said string) string {
	said, _, _ = strings.Cut(said, " stack=")
	return strings.TrimSuffix(strings.TrimRight(said, " "), " process")
}

// failedCall is the JSON of an old record, as far as it is of use. What has
// another type than expected is left out, not refused.
type failedCall struct{ Error callError }

type callError struct {
	Name, Message, ResponseBody string
	StatusCode                  float64
	Data                        struct{ Error apiError }
	Errors                      []callError // of AI_RetryError, one for each attempt
	RequestBodyValues           request
}

type apiError struct {
	Message    string
	Type, Code any // texts or numbers
}

// request is where the wires of providers keep the system text.
type request struct {
	System, Instructions any
	SystemInstruction    any
	Messages, Input      json.RawMessage
}

// decode reads one JSON value into v; rest is what follows it.
func decode(s string, v any) (rest string, ok bool) {
	d := json.NewDecoder(strings.NewReader(s))
	var other *json.UnmarshalTypeError
	if err := d.Decode(v); err != nil && !errors.As(err, &other) {
		return "", false
	}
	return s[d.InputOffset():], true
}

// call takes the text and what else is known from a failed call.
func (r *Record) call(e *callError) {
	r.name = e.Name
	r.title = e.RequestBodyValues.asksForTitle()
	if n := len(e.Errors); e.Name == retryError && n > 0 {
		e = &e.Errors[n-1]
		r.title = r.title || e.RequestBodyValues.asksForTitle()
	}
	r.status = int(min(max(e.StatusCode, 0), 999))
	api := e.Data.Error
	if body, ok := bodyError(e.ResponseBody); ok {
		api.Message = cmp.Or(api.Message, body.Message)
		if api.Type == nil && api.Code == nil {
			api.Type, api.Code = body.Type, body.Code
		}
	}
	r.text = cmp.Or(api.Message, e.Message, e.Name)
	r.kind, r.code = scalar(api.Type), scalar(api.Code)
}

// bodyError reads what a provider answered: {"error": {…}}, {"error": "…"} or
// {"message": "…"}.
func bodyError(body string) (apiError, bool) {
	var b struct {
		apiError
		Error json.RawMessage
	}
	if _, ok := decode(body, &b); !ok {
		return apiError{}, false
	}
	var inner apiError
	if len(b.Error) > 0 && b.Error[0] == '"' {
		_ = json.Unmarshal(b.Error, &inner.Message) // a JSON string, as was seen
	} else if len(b.Error) > 0 {
		_, _ = decode(string(b.Error), &inner) // what cannot be taken stays empty
	}
	if inner.Message == "" {
		inner.Message = b.Message
	}
	if inner.Type == nil && inner.Code == nil {
		inner.Type, inner.Code = b.Type, b.Code
	}
	return inner, true
}

// scalar is a text or a number as text.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		b, _ := json.Marshal(v) // a float64 from JSON
		return string(b)
	}
	return ""
}

func (q *request) asksForTitle() bool {
	if startsTitle(q.System) || startsTitle(q.Instructions) || startsTitle(q.SystemInstruction) {
		return true
	}
	for _, list := range []json.RawMessage{q.Messages, q.Input} {
		var messages []struct {
			Role    string
			Content any
		}
		if len(list) == 0 || !strings.Contains(string(list), titleWords) {
			continue
		}
		if _, ok := decode(string(list), &messages); !ok {
			continue
		}
		for _, m := range messages {
			if (m.Role == "system" || m.Role == "developer") && startsTitle(m.Content) {
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
