package cli

import (
	"fmt"
	"strings"
	"time"

	"rouse"
	"rouse/internal/client"
)

type healthCmd struct {
	Session string `arg:"" help:"The session's id."`
	JSON    bool   `name:"json" help:"Print the server's answer."`
}

func (healthCmd) Help() string {
	return `Says in one sentence what the session does, and shows what that rests on: two
samples of its progress side by side, what runs, what is waited for, and what may
follow. A hung turn is not ended by itself; see rouse rescue and rouse abort.

Examples:
  rouse health ses_0123
  rouse health ses_0123 --json | jq -r .verdict.code`
}

// Run asks and shows.
func (c *healthCmd) Run(a *app) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	h, raw, err := cl.SessionHealth(a.ctx, c.Session)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	return a.showHealth(h, time.Now())
}

func (a *app) showHealth(h client.SessionHealth, now time.Time) error {
	st := styleOf(a.out, a.getenv)
	if h.Verdict == nil {
		_, err := fmt.Fprintf(a.out, "%s: no turn ran yet\n", h.State)
		return rouse.Wrap("cli: print", err)
	}
	v, e := h.Verdict, &h.Evidence
	fmt.Fprintf(a.out, "%s  %s\n", st.severity(v.Severity, v.Code), v.Why)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(a.out, "  %-9s %s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	line("turn", "%s, generation %d, %s", firstText(h.Turn, "-"), h.Generation, h.State)
	if !v.Since.IsZero() {
		line("since", "%s (%s ago)", clock(v.Since), age(now.Sub(v.Since)))
	}
	if !v.Until.IsZero() {
		line("until", "%s (in %s)", clock(v.Until), age(v.Until.Sub(now)))
	}
	if t := e.OpenTool; t != nil {
		line("tool", "%s, for %s", short(t.Title, 80), age(now.Sub(t.Since)))
	}
	if w := e.Waiting; w != nil {
		line("waits for", "%s %s, for %s", w.For, w.ID, age(now.Sub(w.Since)))
	}
	if r := e.Retry; r != nil {
		line("retry", "attempt %d failed (%s), the next at %s", r.Attempt, r.Class, clock(r.NextAt))
	}
	if p := e.Process; p != nil {
		alive := "alive"
		if !p.Alive {
			alive = "gone"
		}
		line("process", "%d, %s, %d MB", p.PID, alive, p.RSSBytes>>20)
		line("diagnostics", "%s", diagnosticsText(e))
	}
	if m := e.ModelConfirmed; m == "false" || m == "unknown" {
		line("model", "%s", map[string]string{"false": "the agent uses another than was asked for", "unknown": "the agent does not say whether it uses the one that was asked for"}[m])
	}
	if n := h.Notice; n != nil && n.Visible {
		line("notice", "still waiting since %s", clock(n.At))
	}
	if i := h.Incident; i != nil {
		line("incident", "%s %s: %s", i.ID, i.Kind, short(i.Message, 200))
		if i.RemediationURL != "" {
			line("link", "%s", i.RemediationURL)
		}
	}
	if h.Queued > 0 {
		line("queued", "%d", h.Queued)
	}
	if len(v.Next) > 0 {
		line("next", "%s", strings.Join(v.Next, ", "))
	}
	return a.showSamples(e)
}

// diagnosticsText is what the process's standard error is worth and brought.
func diagnosticsText(e *client.HealthEvidence) string {
	text := "unsupported"
	if e.Stderr.Supported {
		text = "supported"
	}
	if e.Stderr.LastClass != "" {
		text += ", the last failure was " + e.Stderr.LastClass
	}
	for _, reason := range sorted(e.Stderr.Ignored) {
		text += fmt.Sprintf(", %d lines %s", e.Stderr.Ignored[reason], reason)
	}
	return text
}

// showSamples puts both samples side by side.
func (a *app) showSamples(e *client.HealthEvidence) error {
	if len(e.Samples) == 0 {
		return nil
	}
	head, rows := []string{"SAMPLE"}, [][]string{{"events"}, {"genuine"}, {"text bytes"}, {"output tokens"}, {"parts"}, {"state"}}
	for _, s := range e.Samples {
		c := s.Counters
		head = append(head, clock(s.At))
		for i, cell := range []any{c.Events, c.Genuine, c.TextBytes, c.OutputTokens, c.Parts, s.State} {
			rows[i] = append(rows[i], fmt.Sprint(cell))
		}
	}
	return a.table(head, rows)
}

// severity colours a verdict's code.
func (s style) severity(severity, code string) string {
	switch severity {
	case string(rouse.SeverityFailed):
		return s.red(code)
	case string(rouse.SeverityAction):
		return s.yellow(code)
	case string(rouse.SeverityNotice):
		return s.bold(code)
	}
	return s.green(code)
}

// clock is a time of day as people read it, in their own zone; the date only
// where it is not today's.
func clock(t time.Time) string {
	t = t.Local()
	y, m, d := time.Now().Date()
	if ty, tm, td := t.Date(); ty != y || tm != m || td != d {
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("15:04:05")
}
