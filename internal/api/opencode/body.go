package opencode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"rouse"
	"rouse/internal/api"
)

const opBody = "read body"

// fields reads a JSON object field by field. The first fault is kept in err
// with the path of the field; after it every reader returns its zero value,
// so a parser checks err once at its end. Unknown fields are ignored, as
// OpenCode does; null is the same as a missing field.
type fields struct {
	raw  map[string]json.RawMessage
	path string // "" at the root, else "model." or "parts[0]."
	err  *error // shared with the fields of inner objects
}

// parseObject reads a body. An empty body is an empty object: OpenCode's
// clients send none where every field is optional.
func parseObject(body []byte) (*fields, error) {
	f := &fields{raw: map[string]json.RawMessage{}, err: new(error)}
	if len(bytes.TrimSpace(body)) == 0 {
		return f, nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&f.raw); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return nil, rouse.Errorf(rouse.Invalid, opBody, "the body is not valid JSON: at byte %d", syntax.Offset)
		case errors.As(err, &kind):
			return nil, rouse.Errorf(rouse.Invalid, opBody, "expected a JSON object as the body, got %s", kind.Value)
		default:
			return nil, rouse.Errorf(rouse.Invalid, opBody, "the body is not valid JSON: it ends too early")
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, rouse.Errorf(rouse.Invalid, opBody, "the body is not valid JSON: something follows the object at byte %d", dec.InputOffset())
	}
	if at, found := api.Undecodable(body); found {
		return nil, rouse.FieldError(opBody, at, "%s: it is not valid UTF-8", cmp.Or(at, "the body"))
	}
	if f.raw == nil {
		f.raw = map[string]json.RawMessage{} // the body was null
	}
	return f, nil
}

// fault keeps the first error.
func (f *fields) fault(name, format string, args ...any) {
	if *f.err == nil {
		at := f.path + name
		*f.err = rouse.FieldError(opBody, at, "%s: %s", at, fmt.Sprintf(format, args...))
	}
}

// expected reports a field of the wrong type.
func (f *fields) expected(what, name string, got json.RawMessage) {
	shown := rouse.Clip(strings.Join(strings.Fields(string(got)), " "), 60)
	f.fault(name, "expected %s, got %s", what, shown)
}

// has reports whether the field is there and not null.
func (f *fields) has(name string) bool {
	raw, ok := f.raw[name]
	return ok && string(raw) != "null"
}

// need reports a missing field.
func (f *fields) need(names ...string) {
	for _, name := range names {
		if !f.has(name) {
			f.fault(name, "is missing")
		}
	}
}

func (f *fields) text(name string) string {
	var s string
	if f.has(name) && json.Unmarshal(f.raw[name], &s) != nil {
		f.expected("a string", name, f.raw[name])
	}
	return s
}

func (f *fields) flag(name string) bool {
	var b bool
	if f.has(name) && json.Unmarshal(f.raw[name], &b) != nil {
		f.expected("true or false", name, f.raw[name])
	}
	return b
}

// integer reads a whole number from min to max.
func (f *fields) integer(name string, min, max int64) int64 {
	if !f.has(name) {
		return 0
	}
	n, err := strconv.ParseInt(string(f.raw[name]), 10, 64)
	if err != nil || n < min || n > max {
		f.expected(fmt.Sprintf("an integer from %d to %d", min, max), name, f.raw[name])
		return 0
	}
	return n
}

// millis reads a point in time; null, missing and 0 are none.
func (f *fields) millis(name string) int64 {
	return f.integer(name, 0, math.MaxInt64/int64(1e6))
}

// inner reads an object field; nil when it is missing or faulty.
func (f *fields) inner(name string) *fields {
	if !f.has(name) {
		return nil
	}
	in := &fields{path: f.path + name + ".", err: f.err}
	if json.Unmarshal(f.raw[name], &in.raw) != nil {
		f.expected("an object", name, f.raw[name])
		return nil
	}
	return in
}

// list reads an array of objects; nil when it is missing or faulty.
func (f *fields) list(name string) []*fields {
	if !f.has(name) {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(f.raw[name], &items) != nil {
		f.expected("an array", name, f.raw[name])
		return nil
	}
	out := make([]*fields, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", name, i)
		in := &fields{path: f.path + at + ".", err: f.err}
		if json.Unmarshal(item, &in.raw) != nil || in.raw == nil {
			f.expected("an object", at, item)
			return nil
		}
		out[i] = in
	}
	return out
}

// object reads an object field as it is.
func (f *fields) object(name string) json.RawMessage {
	if !f.has(name) {
		return nil
	}
	if o := object(f.raw[name]); o != nil {
		return o
	}
	f.expected("an object", name, f.raw[name])
	return nil
}

// flags reads an object of booleans.
func (f *fields) flags(name string) map[string]bool {
	if !f.has(name) {
		return nil
	}
	var m map[string]bool
	if json.Unmarshal(f.raw[name], &m) != nil {
		f.expected("an object of true and false", name, f.raw[name])
		return nil
	}
	return m
}

// model reads {"providerID", "modelID"} (a session's own record says "id"),
// or "provider/model" split at the first '/'.
func (f *fields) model(name string) rouse.ModelRef {
	if !f.has(name) {
		return rouse.ModelRef{}
	}
	var s string
	if json.Unmarshal(f.raw[name], &s) == nil {
		ref, err := rouse.ParseModelRef(s)
		if err != nil {
			f.fault(name, "%q names no provider: use {\"providerID\":…,\"modelID\":…} or \"provider/model\"", rouse.Clip(s, 60))
		}
		return ref
	}
	var probe map[string]json.RawMessage
	if json.Unmarshal(f.raw[name], &probe) != nil {
		f.expected("{\"providerID\":…,\"modelID\":…} or \"provider/model\"", name, f.raw[name])
		return rouse.ModelRef{}
	}
	in := f.inner(name)
	ref := rouse.ModelRef{Provider: in.text("providerID"), Model: in.text("modelID"), Variant: in.text("variant")}
	if ref.Model == "" {
		ref.Model = in.text("id")
	}
	if ref.Variant == "default" {
		ref.Variant = "" // opencode 1.18.33 writes it for "none chosen"
	}
	switch {
	case ref.Provider == "":
		in.fault("providerID", "is missing")
	case ref.Model == "":
		in.fault("modelID", "is missing")
	}
	return ref
}

// rules reads permission rules.
func (f *fields) rules(name string) []rouse.PermissionRule {
	var out []rouse.PermissionRule
	for _, in := range f.list(name) {
		in.need("permission", "pattern", "action")
		rule := rouse.PermissionRule{Permission: in.text("permission"), Pattern: in.text("pattern"), Action: rouse.Action(in.text("action"))}
		if err := rule.Validate(); err != nil && *f.err == nil {
			in.fault("action", "%s", rouse.SafeMessage(err))
		}
		out = append(out, rule)
	}
	return out
}

// messageID reads the id of a message.
func (f *fields) messageID(name string, needed bool) string {
	if needed {
		f.need(name)
	}
	id := f.text(name)
	if id != "" && rouse.CheckID(rouse.MessagePrefix, id) != nil {
		f.fault(name, "expected an id that starts with %q, got %q", rouse.MessagePrefix, rouse.Clip(id, 40))
	}
	return id
}
