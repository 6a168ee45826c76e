package diagnostics

import (
	"encoding/json"
	"strings"
)

// logfmt reads the layout of OpenCode since 1.17: one line of key=value.
func (r *Record) logfmt(s string) Reason {
	if control(s) {
		return ReasonMalformed
	}
	f, reason := fields(s)
	if reason != "" {
		return reason
	}
	level, hasLevel := f["level"]
	message, hasMessage := f["message"]
	switch {
	case !hasLevel || !hasMessage:
		return ReasonMissing
	case level != "ERROR":
		return ReasonNotError
	case message == "process":
		r.process = true
		r.text = f["error"]
	case message == "stream error":
		if r.text = f["error.error"]; r.text == "" {
			r.text = f["error.error.message"]
		}
	default:
		return ReasonOther
	}
	r.kind, r.code, r.name = f["error.error.type"], f["error.error.code"], f["error.error.name"]
	r.session, r.provider, r.model = f["session.id"], f["providerID"], f["modelID"]
	r.agent, r.small = f["agent"], f["small"]
	r.link, r.linked = f["action_url"]
	return r.whole(f["timestamp"], true)
}

// fields reads a whole line of key=value tokens. The first thing that is wrong
// is the reason.
func fields(s string) (map[string]string, Reason) {
	f := make(map[string]string, 16)
	for s = strings.TrimRight(s, " "); s != ""; {
		key, value, rest, ok := token(s)
		if !ok {
			return nil, ReasonMalformed
		}
		if _, twice := f[key]; twice {
			return nil, ReasonDuplicate
		}
		f[key] = value
		s = rest
	}
	return f, ""
}

// token reads one key=value, the value bare or a JSON string, and the spaces
// behind it.
func token(s string) (key, value, rest string, ok bool) {
	n := keyLength(s)
	if n == 0 {
		return "", "", s, false
	}
	key, rest = s[:n], s[n+1:]
	if strings.HasPrefix(rest, `"`) {
		end := quoted(rest)
		if end == 0 {
			return "", "", s, false
		}
		value, rest = rest[:end], rest[end:]
		if strings.IndexByte(value, '\\') < 0 {
			value = value[1 : len(value)-1]
		} else if json.Unmarshal([]byte(value), &value) != nil {
			return "", "", s, false
		}
	} else {
		end := strings.IndexByte(rest, ' ')
		if end < 0 {
			end = len(rest)
		}
		value, rest = rest[:end], rest[end:]
		if value == "" || strings.ContainsAny(value, `="\`) {
			return "", "", s, false
		}
	}
	if rest != "" && rest[0] != ' ' {
		return "", "", s, false
	}
	return key, value, strings.TrimLeft(rest, " "), true
}

// keyLength is the length of the key that s starts with, in front of "=", or 0.
func keyLength(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case letter(c), c == '_', i > 0 && (digit(c) || c == '.' || c == '-'):
		case c == '=':
			return i
		default:
			return 0
		}
	}
	return 0
}

// quoted is the length of the JSON string that s starts with, or 0.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}
