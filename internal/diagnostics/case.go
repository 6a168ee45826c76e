package diagnostics

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"rouse"
)

// Case is a piece of standard error, or a prompt's timeline, as people write
// it down: what `rouse explain stderr` reads and what the tests are made of.
type Case struct {
	ID      string
	Context Context
	// Reads are the stream, read by read; End says that it ends behind them.
	Reads [][]byte
	End   bool
	// Timeline is what happened to one prompt; nil for a case of lines.
	Timeline []Happening
}

// Happening is one entry of a timeline. What is empty did not happen.
type Happening struct {
	At    time.Time
	Line  []byte
	What  Via // what happened, if it is no line
	Class rouse.Class
}

// MaxCases bounds cases that are read, and any text that they have generated,
// in bytes.
const MaxCases = 64 << 20

// ReadCases reads cases in JSON: one object, an array of them, {"cases": […]},
// or several of these one after the other. Errors are Invalid and say which
// case is wrong and why.
func ReadCases(r io.Reader) ([]Case, error) {
	const op = "diagnostics: read cases"
	d := json.NewDecoder(io.LimitReader(r, MaxCases))
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
		list, err := listed(raw)
		if err != nil {
			return nil, rouse.Errorf(rouse.Invalid, op, "%s", unread(err))
		}
		for _, item := range list {
			c, err := readCase(item)
			if err != nil {
				return nil, rouse.Errorf(rouse.Invalid, op, "case %d%s: %s", len(out)+1, called(item), unread(err))
			}
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, rouse.Errorf(rouse.Invalid, op, "there is no case in the input")
	}
	return out, nil
}

// listed is the cases of one JSON value.
func listed(raw json.RawMessage) ([]json.RawMessage, error) {
	list := []json.RawMessage{raw}
	if raw[0] == '[' {
		return list, json.Unmarshal(raw, &list)
	}
	var file struct{ Cases *[]json.RawMessage }
	if raw[0] == '{' {
		if err := json.Unmarshal(raw, &file); err != nil {
			return nil, err
		}
	}
	if file.Cases != nil {
		return *file.Cases, nil
	}
	return list, nil
}

// called is how a case is named in an error.
func called(raw json.RawMessage) string {
	var c struct{ ID any }
	_ = json.Unmarshal(raw, &c) // a case that cannot be read has no name
	if id, ok := c.ID.(string); ok && id != "" {
		return " (" + rouse.Clip(id, 60) + ")"
	}
	return ""
}

type wireCase struct {
	ID      string `json:"id"`
	Context struct {
		Agent   *string   `json:"agent_type"`
		Session string    `json:"acp_session_id"`
		Active  *int      `json:"active_prompts"`
		Started time.Time `json:"prompt_started_at"`
		Settled time.Time `json:"settled_at"`
		Now     time.Time `json:"now"`
	} `json:"context"`
	Lines    *[]piece     `json:"lines"`
	Chunks   *[]piece     `json:"chunks"`
	EOF      bool         `json:"eof"`
	Timeline *[]wireEvent `json:"timeline"`
}

func readCase(raw json.RawMessage) (Case, error) {
	var w wireCase
	if len(raw) == 0 || raw[0] != '{' {
		return Case{}, errors.New("a case is an object")
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return Case{}, err
	}
	c := Case{ID: w.ID, End: w.EOF, Context: Context{AgentType: Agent, SessionID: w.Context.Session, ActivePrompts: 1,
		PromptStarted: w.Context.Started, Settled: !w.Context.Settled.IsZero(), Now: w.Context.Now}}
	if w.Context.Agent != nil {
		c.Context.AgentType = *w.Context.Agent
	}
	if w.Context.Active != nil {
		c.Context.ActivePrompts = *w.Context.Active
	}
	given := 0
	if w.Lines != nil {
		given++
		for _, p := range *w.Lines {
			c.Reads = append(c.Reads, p, []byte("\n"))
		}
	}
	if w.Chunks != nil {
		given++
		for _, p := range *w.Chunks {
			c.Reads = append(c.Reads, p)
		}
	}
	if w.Timeline != nil {
		given++
		c.Timeline = make([]Happening, 0, len(*w.Timeline))
		for i, e := range *w.Timeline {
			h, err := e.happening()
			if err != nil {
				return Case{}, rouse.Errorf(rouse.Invalid, "case", "timeline %d: %s", i+1, unread(err))
			}
			c.Timeline = append(c.Timeline, h)
		}
	}
	if given != 1 {
		return Case{}, errors.New("give one of lines, chunks and timeline")
	}
	return c, nil
}

// unread says what could not be read.
func unread(err error) string {
	var field *json.UnmarshalTypeError
	var at *time.ParseError
	switch {
	case rouse.SafeMessage(err) != "":
		return rouse.SafeMessage(err)
	case errors.As(err, &field):
		return strings.TrimPrefix(field.Field, ".") + ": not expected to be a " + field.Value
	case errors.As(err, &at):
		return "a time is not RFC 3339, like 2026-03-03T10:00:00Z: " + rouse.Clip(at.Value, 40)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// Findings judges the lines of the case for one prompt.
func (c Case) Findings() []Finding {
	var f Framer
	var p Prompt
	out := []Finding{}
	judge := func(l Line) { out = append(out, p.Judge(Parse(l), c.Context)) }
	for _, read := range c.Reads {
		f.Feed(read, judge)
	}
	if c.End {
		f.Close(judge)
	}
	return out
}

// Decisions folds the timeline of the case, whose clock is its entries'.
func (c Case) Decisions() []Decision {
	var g Grace
	if c.Context.Settled {
		g.prompt.Settle()
	}
	out := []Decision{}
	for _, h := range c.Timeline {
		out = append(out, g.happens(h, c.Context))
	}
	return out
}

func (g *Grace) happens(h Happening, c Context) Decision {
	switch h.What {
	case ViaProgress:
		return g.Progress(h.At)
	case ViaNoise:
		return g.Noise(h.At)
	case ViaWait:
		return g.Tick(h.At)
	case ViaResult:
		return g.Result(h.At)
	case ViaError:
		return g.Error(h.At, h.Class)
	case ViaExit:
		return g.Exit(h.At)
	}
	c.Now = h.At
	line := Line{Text: h.Line}
	if len(h.Line) > MaxLine {
		line = Line{Fault: Oversize}
	}
	return g.Line(h.At, Parse(line), c)
}

// IsCases reports whether text looks like cases rather than like the standard
// error of a program.
func IsCases(text []byte) bool {
	const space = " \t\r\n"
	text = bytes.TrimLeft(text, space)
	if list, ok := bytes.CutPrefix(text, []byte("[")); ok {
		text = bytes.TrimLeft(list, space)
		return len(text) == 0 || text[0] == '{' || text[0] == ']'
	}
	return len(text) > 0 && text[0] == '{'
}
