package cli

import (
	"bytes"
	"encoding/json"
	"io"

	"rouse"
	"rouse/internal/diagnostics"
)

type explainStderrCmd struct {
	File    string `arg:"" optional:"" help:"File with the agent's standard error, or with cases in JSON; - or nothing is stdin." placeholder:"FILE"`
	Session string `help:"With plain text: judge it for this session (ses_…) only." placeholder:"ID"`
}

func (explainStderrCmd) Help() string {
	return `Reads what 'opencode acp --print-logs --log-level ERROR' wrote to its standard
error and says what each line proves: terminal (the prompt failed),
attempt_failed or retrying (the agent may go on), or ignore, and why. Nothing of
a line is printed but these fields, the message without keys, links, ids and
paths. No server and no network are needed.

Plain text: a line of JSON for each record, with the number of its line and its
session; each session is judged as one prompt of its own, so what comes after a
terminal record is "settled". The last line counts what was no record; text
behind the last newline is "torn".

Cases in JSON (an object, an array, or {"cases": […]}): a line of JSON for each
case. A case has lines, chunks (raw reads, with eof) or a timeline, and a
context: agent_type, acp_session_id, active_prompts, prompt_started_at,
settled_at, now. A line is a text, {"b64": …} or {"gen": {prefix, repeat, count,
suffix}}. An entry of a timeline is {"at": TIME} and one of line, genuine, noise,
tick, result, error, process_exit.

Exit codes: 0 explained, whatever was found; 2 the input cannot be read.

Examples:
  opencode acp --print-logs --log-level ERROR 2> stderr.txt
  rouse explain stderr stderr.txt
  rouse explain stderr --session ses_1 - < stderr.txt
  echo '{"context":{"acp_session_id":"ses_1"},"lines":["timestamp=2026-11-30T12:56:23Z
    level=ERROR message=process session.id=ses_1 error=Overloaded"]}' | tr -d '\n' | rouse explain stderr`
}

// proof is a finding as it is printed; what is unknown is null.
type proof struct {
	Action         diagnostics.Action `json:"action"`
	Reason         diagnostics.Reason `json:"reason"`
	Class          *string            `json:"class"`
	Provider       *string            `json:"provider_id"`
	Model          *string            `json:"model_id"`
	Message        *string            `json:"message"`
	OccurredAt     stamp              `json:"occurred_at"`
	ResetAt        stamp              `json:"reset_at"`
	RemediationURL *string            `json:"remediation_url"`
}

func proofOf(f diagnostics.Finding) proof {
	return proof{Action: f.Action, Reason: f.Reason, Class: className(f.Class), Provider: known(f.Provider), Model: known(f.Model), Message: known(f.Message),
		OccurredAt: stamp(f.OccurredAt), ResetAt: stamp(f.ResetAt), RemediationURL: known(f.RemediationURL)}
}

// className is the contract's name of a class: null where none is meant.
func className(c rouse.Class) *string {
	if c == rouse.ClassNone {
		c = "unknown"
	}
	return known(string(c))
}

// decided is one entry of a timeline as it is printed.
type decided struct {
	Decision diagnostics.Outcome `json:"decision"`
	Via      diagnostics.Via     `json:"via"`
	Class    *string             `json:"class"`
}

// Run explains.
func (c *explainStderrCmd) Run(a *app) error {
	from, err := a.evidence(c.File)
	if err != nil {
		return err
	}
	defer from.Close()
	data, err := io.ReadAll(io.LimitReader(from, diagnostics.MaxCases+1))
	switch {
	case err != nil:
		return usage("the input cannot be read")
	case len(data) > diagnostics.MaxCases:
		return usage("the input is larger than %d MB; give a part of it", diagnostics.MaxCases>>20)
	case len(bytes.TrimSpace(data)) == 0:
		return usage("there is nothing in the input")
	case diagnostics.IsCases(data):
		return c.cases(a.jsonLines(), data)
	}
	return c.plain(a.jsonLines(), data)
}

// cases prints a line for each case.
func (c *explainStderrCmd) cases(out *json.Encoder, data []byte) error {
	if c.Session != "" {
		return usage("--session is for plain text; a case names its session in context.acp_session_id")
	}
	cases, err := diagnostics.ReadCases(bytes.NewReader(data))
	if err != nil {
		return brokenJSON(data, err) // Invalid: a mistake in what was given
	}
	for _, one := range cases {
		if err := out.Encode(answerTo(one)); err != nil {
			return rouse.Wrap("cli: print", err)
		}
	}
	return nil
}

func answerTo(c diagnostics.Case) any {
	if c.Timeline != nil {
		timeline := []decided{}
		for _, d := range c.Decisions() {
			timeline = append(timeline, decided{d.Outcome, d.Via, className(d.Class)})
		}
		return struct {
			ID       string    `json:"id"`
			Timeline []decided `json:"timeline"`
		}{c.ID, timeline}
	}
	lines := []proof{}
	for _, f := range c.Findings() {
		lines = append(lines, proofOf(f))
	}
	return struct {
		ID    string  `json:"id"`
		Lines []proof `json:"lines"`
	}{c.ID, lines}
}

// plain prints a line for each record, and how many lines were none.
func (c *explainStderrCmd) plain(out *json.Encoder, data []byte) error {
	prompts := map[string]*diagnostics.Prompt{}
	ignored := map[diagnostics.Reason]int{}
	n := 0
	var failed error
	var framer diagnostics.Framer
	read := func(line diagnostics.Line) {
		n++
		r := diagnostics.Parse(line)
		session := r.Session()
		mine := session
		if c.Session != "" {
			mine = c.Session
		}
		if prompts[mine] == nil {
			prompts[mine] = &diagnostics.Prompt{}
		}
		f := prompts[mine].Judge(r, diagnostics.Context{AgentType: diagnostics.Agent, SessionID: mine, ActivePrompts: 1})
		if session == "" {
			ignored[f.Reason]++
			return
		}
		err := out.Encode(struct {
			Line    int    `json:"line"`
			Session string `json:"session_id"`
			proof
		}{n, session, proofOf(f)})
		if failed == nil {
			failed = err
		}
	}
	framer.Feed(data, read)
	framer.Close(read)
	if err := out.Encode(map[string]any{"ignored": ignored}); failed == nil {
		failed = err
	}
	return rouse.Wrap("cli: print", failed)
}
