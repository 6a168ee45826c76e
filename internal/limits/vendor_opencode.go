package limits

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// record reads a line of an agent's stderr, where the agent has a grammar that
// can be trusted. Everything else there proves nothing.
func (x *facts) record(e Evidence) bool {
	if len(e.Text) > maxBody {
		return false
	}
	switch e.Agent {
	case "opencode", "kilo":
		if strings.HasPrefix(e.Text, "ERROR ") {
			return x.oldRecord(e)
		}
		return x.logfmtRecord(e)
	case "codex":
		return x.codexLine(e)
	case "antigravity":
		return x.antigravity(e)
	}
	return false
}

// logfmt splits a line of key=value tokens, values bare or JSON-quoted. A
// malformed token or a key said twice rejects the whole line.
func logfmt(line string) (map[string]string, bool) {
	out := map[string]string{}
	s := strings.TrimRight(line, "\r\n")
	for s != "" {
		key, rest, ok := strings.Cut(s, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \"\t") {
			return nil, false
		}
		var value string
		if strings.HasPrefix(rest, `"`) {
			end := quotedEnd(rest)
			if end < 0 || json.Unmarshal([]byte(rest[:end]), &value) != nil {
				return nil, false
			}
			rest = rest[end:]
			if rest != "" && rest[0] != ' ' {
				return nil, false
			}
		} else {
			value, rest, _ = strings.Cut(rest, " ")
			if strings.Contains(value, `"`) {
				return nil, false
			}
			if rest != "" {
				rest = " " + rest
			}
		}
		if _, twice := out[key]; twice {
			return nil, false
		}
		out[key] = value
		s = strings.TrimPrefix(rest, " ")
	}
	return out, len(out) > 0
}

// quotedEnd is the index behind the closing quote of a JSON string.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// trimErrorName drops the class name that OpenCode puts before a message:
// "AI_APICallError: ".
func trimErrorName(s string) string {
	if strings.HasPrefix(s, "AI_") {
		if name, said, ok := strings.Cut(s, ": "); ok && strings.HasSuffix(name, "Error") && !strings.Contains(name, " ") {
			return said
		}
	}
	return s
}

// logfmtRecord is OpenCode's and Kilo's layout (opencode 1.17 and later).
func (x *facts) logfmtRecord(e Evidence) bool {
	f, ok := logfmt(e.Text)
	if !ok || !utf8.ValidString(e.Text) || f["level"] != "ERROR" || f["small"] == "true" || f["agent"] == "title" ||
		f["message"] != "stream error" && f["message"] != "process" {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, f["timestamp"])
	if err != nil || !x.bound(e, f["session.id"], at) {
		return false
	}
	said := ""
	for _, k := range []string{"error.error", "error.error.message", "error"} {
		if said = f[k]; said != "" {
			break
		}
	}
	x.who(f["providerID"], f["modelID"])
	x.speak(trimErrorName(said), 0)
	return true
}

// bound checks that a record is of our session and not older than the prompt;
// relative times then count from the record.
func (x *facts) bound(e Evidence, session string, at time.Time) bool {
	if !strings.HasPrefix(session, "ses_") || session != e.Bind.SessionID || at.Before(e.Bind.PromptStarted) {
		return false
	}
	x.base = at
	return true
}

// who takes provider and model from a record.
func (x *facts) who(provider, model string) {
	if provider != "" {
		x.provider = provider
	}
	x.model = model
}

var oldHead = regexp.MustCompile(`^ERROR +(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) \+\d+ms (service=llm .*?)error=(\{.*\}) stream error$`)

// oldRecord is OpenCode's layout before 1.17: a zone-less UTC time, and the
// failed call as JSON. AI_RetryError is the title request, mis-tagged.
func (x *facts) oldRecord(e Evidence) bool {
	m := oldHead.FindStringSubmatch(strings.TrimRight(e.Text, "\r\n"))
	if m == nil {
		return false
	}
	f, ok := logfmt(strings.TrimSpace(m[2]))
	at, err := time.Parse("2006-01-02T15:04:05", m[1])
	if !ok || err != nil || f["small"] == "true" || f["agent"] == "title" {
		return false
	}
	session := f["sessionID"]
	if session == "" {
		session = f["session.id"]
	}
	if !x.bound(e, session, at) {
		return false
	}
	failed := object(decode([]byte(m[3])), "error")
	if text(failed, "name") != "AI_APICallError" {
		return false
	}
	x.who(f["providerID"], f["modelID"])
	if n, ok := positive(failed["statusCode"]); ok {
		x.status = int(n)
	}
	x.headers = http.Header{}
	for k, v := range object(failed, "responseHeaders") {
		if s, ok := v.(string); ok {
			x.headers.Set(k, s)
		}
	}
	if !x.answer([]byte(text(failed, "responseBody"))) {
		return false
	}
	if len(x.texts) == 0 {
		x.speak(text(failed, "message"), 0)
	}
	return true
}
