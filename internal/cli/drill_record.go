package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rouse"
	"rouse/internal/drill/record"
)

type drillRecord struct {
	Out     string   `default:"." placeholder:"DIR|FILE" help:"Where to: a new .jsonl file, or a folder in which one is made for each run."`
	Command []string `arg:"" help:"The agent's command line, behind --."`
}

func (drillRecord) Help() string {
	return `Stands between an agent program and its client, hands everything on as it is, and
writes what passed as a recording that drill replay can play. Use it as an
agent's command. Texts of prompts and answers, paths, addresses, keys, command
lines and what tools took and gave are left out and ids are renamed; how a
prompt's end is judged stays the same.

Examples:
  rouse drill record --out recordings -- claude-agent-acp
  rouse drill record --out quota.jsonl -- opencode acp --print-logs --log-level ERROR`
}

// Run records one run of the agent and ends as it ended.
func (c *drillRecord) Run(a *app) error {
	path := c.Out
	if !strings.HasSuffix(path, ".jsonl") {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return &exit{exitUsage, &rouse.Error{Kind: rouse.Invalid, Op: "drill: record", Msg: "The folder " + path + " cannot be made.", Err: err}}
		}
		path = filepath.Join(path, fmt.Sprintf("%s-%s-%d.jsonl", filepath.Base(c.Command[0]), time.Now().UTC().Format("20060102T150405"), os.Getpid()))
	}
	j, err := record.Create(path)
	if err != nil {
		return err
	}
	end, err := record.Proxy{Argv: c.Command, In: a.in, Out: a.out, Err: a.err, Journal: j}.Run(a.ctx)
	if lost := j.Close(); err == nil && lost != nil {
		fmt.Fprintln(a.err, "rouse: "+rouse.SafeMessage(lost))
	}
	switch {
	case err != nil: // nothing was started, so nothing was recorded
		_ = os.Remove(path)
		_ = os.Remove(strings.TrimSuffix(path, ".jsonl") + ".stderr.txt")
		return err
	case end.Signal != "":
		return dieBy(record.SignalName(end.Signal))
	case end.Code != 0:
		return &exit{code: end.Code}
	}
	return nil
}
