package diagnostics

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"rouse"
)

// piece is bytes as a case writes them: a text, {"b64": "…"}, or
// {"gen": {prefix, repeat, count, suffix}} for what is too long to write out.
type piece []byte

func (p *piece) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		*p = piece(s)
		return err
	}
	var w struct {
		B64 *string
		Gen *struct {
			Prefix, Repeat, Suffix string
			Count                  int
		}
	}
	if err := json.Unmarshal(raw, &w); err != nil || (w.B64 == nil) == (w.Gen == nil) {
		return errors.New(`a line or chunk is a text, {"b64": "…"} or {"gen": {"prefix", "repeat", "count", "suffix"}}`)
	}
	if w.B64 != nil {
		b, err := base64.StdEncoding.DecodeString(*w.B64)
		if err != nil {
			return errors.New("b64 is not base64")
		}
		*p = b
		return nil
	}
	g := w.Gen
	if g.Count < 0 || g.Count > MaxCases/max(1, len(g.Repeat)) {
		return fmt.Errorf("count: it is negative, or the text would be longer than %d bytes", MaxCases)
	}
	*p = piece(g.Prefix + strings.Repeat(g.Repeat, g.Count) + g.Suffix)
	return nil
}

// wireEvent is an entry of a timeline: {"at": …, KEY: …}.
type wireEvent map[string]json.RawMessage

// happenings are the keys that an entry of a timeline may have beside its
// time.
var happenings = map[string]Via{"line": "", "genuine": ViaProgress, "noise": ViaNoise, "tick": ViaWait, "result": ViaResult, "error": ViaError, "exit": ViaExit,
	"process_exit": ViaExit}

func (e wireEvent) happening() (h Happening, err error) {
	at, ok := e["at"]
	if !ok {
		return h, errors.New("at is missing")
	}
	if err := json.Unmarshal(at, &h.At); err != nil {
		return h, errors.New("at is not an RFC 3339 time, like 2026-03-03T10:00:00Z")
	}
	given := 0
	for key, value := range e {
		what, ok := happenings[key]
		if !ok {
			continue
		}
		given++
		h.What = what
		if key == "line" {
			err = (*piece)(&h.Line).UnmarshalJSON(value)
		}
		if key == "error" {
			h.Class = errorClass(value)
		}
	}
	if given != 1 {
		return h, errors.New("give the time and one of " + strings.Join(keys(), ", "))
	}
	return h, err
}

func keys() []string {
	var out []string
	for key := range happenings {
		out = append(out, key)
	}
	sort.Strings(out)
	return out
}

// errorClass is the class of an RPC error: a text, or an object whose texts and
// keys count and whose code decides when they say nothing.
func errorClass(raw json.RawMessage) rouse.Class {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return rouse.ClassNone
	}
	var b strings.Builder
	texts(v, &b)
	if c := ClassOf(b.String()); c != rouse.ClassNone {
		return c
	}
	object, _ := v.(map[string]any)
	code, _ := object["code"].(float64)
	return ClassOfCode(int(min(max(code, -1e9), 1e9)))
}

func texts(v any, b *strings.Builder) {
	switch v := v.(type) {
	case string:
		b.WriteString(v + "\n")
	case []any:
		for _, one := range v {
			texts(one, b)
		}
	case map[string]any:
		for key, one := range v {
			b.WriteString(key + "\n")
			texts(one, b)
		}
	}
}
