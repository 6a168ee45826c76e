package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"rouse/internal/client"
)

// terminal shows news to a person: the answer on out, all else on side.
type terminal struct {
	out, side io.Writer
	style     style // of side
	thinking  bool  // show reasoning
	names     bool  // several sessions: say whose news it is
	brief     bool  // leave out the warning of a failed turn: its error is told
	now       func() time.Time

	open string // part whose line is not ended yet
	user func(messageID string) bool
}

func (t *terminal) text(p client.Part, piece string, end bool) {
	if p.Synthetic || p.Type == "reasoning" && !t.thinking || isWarning(p) && t.brief {
		return
	}
	if t.user != nil && t.user(p.MessageID) {
		t.line("%s%s", t.who(p.SessionID), t.style.bold("> "+short(oneLine(piece), 500)))
		return
	}
	if t.names {
		// Pieces of several sessions would mix: tell a part when it is whole.
		if end {
			t.line("%s%s", t.who(p.SessionID), short(oneLine(p.Text), 500))
		}
		return
	}
	if t.open != "" && t.open != p.ID {
		t.endLine()
	}
	w := t.out
	if p.Type == "reasoning" {
		w, piece = t.side, t.style.dim(safe(piece))
	} else {
		piece = safe(piece)
	}
	_, _ = io.WriteString(w, piece) // a reader that went away ends the program by SIGPIPE
	if piece != "" {
		t.open = p.ID
		if strings.HasSuffix(piece, "\n") && p.Type != "reasoning" {
			t.open = ""
		}
	}
	if end && t.open == p.ID {
		fmt.Fprintln(w)
		t.open = ""
	}
}

// endLine ends a line of the answer that is still open.
func (t *terminal) endLine() {
	if t.open != "" {
		fmt.Fprintln(t.out)
		t.open = ""
	}
}

// line writes a line about the course of things.
func (t *terminal) line(format string, args ...any) {
	t.endLine()
	fmt.Fprintf(t.side, format+"\n", args...)
}

func (t *terminal) who(session string) string {
	if !t.names {
		return ""
	}
	return t.style.dim(session[max(0, len(session)-8):]) + "  "
}

func (t *terminal) tool(p client.Part) {
	what := p.Tool
	if title := firstText(p.State.Title, subject(p.State.Input)); title != "" {
		what += "  " + short(oneLine(title), 160)
	}
	switch p.State.Status {
	case "running":
		t.line("%s%s", t.who(p.SessionID), t.style.dim("→ "+what))
	case "completed":
		t.line("%s%s", t.who(p.SessionID), t.style.dim("✓ "+what))
	case "error":
		t.line("%s%s", t.who(p.SessionID), t.style.red("✗ "+what+": "+short(oneLine(p.State.Error), 300)))
	}
}

func (t *terminal) step(client.Part) {}

func (t *terminal) retry(session string, s client.Status) {
	wait := time.UnixMilli(s.Status.Next).Sub(t.now()).Round(time.Second)
	t.line("%s%s", t.who(session), t.style.yellow(fmt.Sprintf("… attempt %d failed (%s): %s; next in %s",
		s.Status.Attempt, firstText(string(s.Status.Class), "error"), short(oneLine(s.Status.Message), 200), max(0, wait))))
}

func (t *terminal) failed(session string, e *client.MessageError) {
	t.line("%s%s", t.who(session), t.style.red("✗ "+errorText(e)))
}

func (t *terminal) idle(session string) {
	if t.names {
		t.line("%s%s", t.who(session), t.style.dim("idle"))
	}
}

func (t *terminal) asked(r client.Request) {
	t.line("%s%s", t.who(r.SessionID), t.style.yellow("? "+requestText(r)))
}

// errorText is one line about a turn's error.
func errorText(e *client.MessageError) string {
	text := firstText(oneLine(e.Data.Message), e.Name)
	if e.Data.Class != "" && e.Data.Class != "none" {
		text = string(e.Data.Class) + ": " + text
	}
	if e.Data.ResetAt != 0 {
		text += "; resets at " + time.UnixMilli(e.Data.ResetAt).UTC().Format(time.RFC3339)
	}
	return short(text, 1000)
}

func requestText(r client.Request) string {
	if r.Permission != "" {
		return "permission " + r.Permission + ": " + short(oneLine(strings.Join(r.Patterns, ", ")), 200)
	}
	var texts []string
	for _, q := range r.Questions {
		texts = append(texts, firstText(q.Question, q.Header))
	}
	return "question: " + short(oneLine(strings.Join(texts, " / ")), 300)
}

// subject picks what a tool works on out of its input.
func subject(input json.RawMessage) string {
	var in map[string]any
	if json.Unmarshal(input, &in) != nil {
		return ""
	}
	for _, key := range []string{"command", "filePath", "path", "pattern", "description", "url", "query"} {
		if s, ok := in[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

func firstText(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// isWarning says that a text part is the server's own, about a failed turn.
func isWarning(p client.Part) bool {
	var m struct {
		Error bool `json:"error"`
	}
	return json.Unmarshal(p.Metadata, &m) == nil && m.Error
}
