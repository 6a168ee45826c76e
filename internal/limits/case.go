package limits

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"rouse"
)

// Case is one piece of evidence as people write it down: what `rouse explain
// limits` reads and what the tests' corpus is made of.
type Case struct {
	ID       string
	Evidence Evidence
}

const (
	maxCases     = 64 << 20 // bytes of cases that are read
	maxGenerated = 64 << 20 // bytes that a generated payload may have
)

// ReadCases reads cases in JSON: one object, an array of them, or several of
// either one after the other. at of a case that names none is now. Errors are
// Invalid and say which case is wrong and why.
func ReadCases(r io.Reader, now time.Time) ([]Case, error) {
	const op = "read cases"
	d := json.NewDecoder(io.LimitReader(r, maxCases))
	var out []Case
	for {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, rouse.Errorf(rouse.Invalid, op, "the input is not JSON (at byte %d): give one case as an object, or an array of cases", d.InputOffset())
		}
		list := []json.RawMessage{raw}
		if raw[0] == '[' {
			if err := json.Unmarshal(raw, &list); err != nil {
				return nil, rouse.Errorf(rouse.Invalid, op, "the array of cases cannot be read")
			}
		}
		for _, item := range list {
			c, err := readCase(item, now)
			if err != nil {
				return nil, rouse.Errorf(rouse.Invalid, op, "case %d: %s", len(out)+1, rouse.SafeMessage(err))
			}
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, rouse.Errorf(rouse.Invalid, op, "there is no case in the input")
	}
	return out, nil
}

// generated is a text too long to be written out: prefix, repeat × count,
// suffix.
type generated struct {
	Prefix, Repeat, Suffix string
	Count                  int
}

func (g *generated) text() (string, error) {
	if g.Count < 0 || g.Count*len(g.Repeat)/max(1, len(g.Repeat)) != g.Count || g.Count*len(g.Repeat) > maxGenerated {
		return "", rouse.Errorf(rouse.Invalid, "case", "count: the generated text would be longer than %d bytes", maxGenerated)
	}
	return g.Prefix + strings.Repeat(g.Repeat, g.Count) + g.Suffix, nil
}

// wireCase is a case as it is written.
type wireCase struct {
	ID       string    `json:"id"`
	Provider string    `json:"provider"`
	Agent    string    `json:"agent"`
	Channel  Channel   `json:"channel"`
	At       time.Time `json:"at"`
	HostZone string    `json:"host_zone"`
	HTTP     *struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		B64     string            `json:"body_b64"`
		Gen     *generated        `json:"body_gen"`
	} `json:"http"`
	Event   json.RawMessage `json:"event"`
	Text    *string         `json:"text"`
	TextGen *generated      `json:"text_gen"`
	Trusted bool            `json:"trusted"`
	Bind    struct {
		SessionID string    `json:"session_id"`
		Started   time.Time `json:"prompt_started_at"`
		Aborted   bool      `json:"aborted"`
	} `json:"bind"`
}

// unread says which field of a case could not be read.
func unread(err error) string {
	var field *json.UnmarshalTypeError
	var at *time.ParseError
	switch {
	case errors.As(err, &field):
		return strings.TrimPrefix(field.Field, ".") + ": not expected to be a " + field.Value
	case errors.As(err, &at):
		return "a time is not RFC 3339, like 2026-03-03T10:00:00Z: " + rouse.Clip(at.Value, 40)
	default:
		return strings.TrimPrefix(err.Error(), "json: ")
	}
}

func readCase(raw json.RawMessage, now time.Time) (Case, error) {
	const op = "case"
	var w wireCase
	if len(raw) == 0 || raw[0] != '{' {
		return Case{}, rouse.Errorf(rouse.Invalid, op, "a case is an object")
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return Case{}, rouse.Errorf(rouse.Invalid, op, "%s", unread(err))
	}
	if w.At.IsZero() {
		w.At = now
	}
	e := Evidence{Provider: w.Provider, Agent: w.Agent, Channel: w.Channel, At: w.At, Trusted: w.Trusted, HostZone: w.HostZone, Event: w.Event,
		Bind: Bind{SessionID: w.Bind.SessionID, PromptStarted: w.Bind.Started, Aborted: w.Bind.Aborted}}
	var err error
	switch w.Channel {
	case HTTP:
		if w.HTTP == nil {
			return Case{}, rouse.Errorf(rouse.Invalid, op, "http is missing: channel http needs {status, headers, body}")
		}
		e.HTTP = &Answer{Status: w.HTTP.Status, Headers: http.Header{}, Body: []byte(w.HTTP.Body)}
		for k, v := range w.HTTP.Headers {
			e.HTTP.Headers.Set(k, v)
		}
		if w.HTTP.B64 != "" {
			if e.HTTP.Body, err = base64.StdEncoding.DecodeString(w.HTTP.B64); err != nil {
				return Case{}, rouse.Errorf(rouse.Invalid, op, "body_b64 is not base64")
			}
		}
		if w.HTTP.Gen != nil {
			var s string
			s, err = w.HTTP.Gen.text()
			e.HTTP.Body = []byte(s)
		}
	case SSE, ACPError, ACPUpdate, SDKEvent:
		if w.Event == nil {
			return Case{}, rouse.Errorf(rouse.Invalid, op, "event is missing: channel %s needs it", w.Channel)
		}
	case Stderr, Text:
		switch {
		case w.TextGen != nil:
			e.Text, err = w.TextGen.text()
		case w.Text == nil:
			return Case{}, rouse.Errorf(rouse.Invalid, op, "text is missing: channel %s needs it", w.Channel)
		default:
			e.Text = *w.Text
		}
	default:
		return Case{}, rouse.Errorf(rouse.Invalid, op, "channel %q: use one of http, sse, acp_error, acp_update, sdk_event, stderr, text", rouse.Clip(string(w.Channel), 40))
	}
	return Case{ID: w.ID, Evidence: e}, err
}
