package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"rouse"
	"rouse/internal/client"
)

type rescueCmd struct {
	Session string        `arg:"" help:"The session's id."`
	Model   string        `short:"m" help:"Model to wake it with (default: the session's own)." placeholder:"PROVIDER/MODEL"`
	Task    string        `help:"The one thing to do next (default: go on)." placeholder:"TEXT"`
	Facts   string        `help:"File with facts, one a line, at most 50; - is stdin. The server adds its own." placeholder:"FILE"`
	Reason  string        `help:"Why; stored and told to the session." placeholder:"TEXT"`
	Force   bool          `help:"Also when the running turn makes progress or waits, when a client waits for its answer, or a usage limit stands before the model."`
	Timeout time.Duration `default:"2m" help:"How long to wait for the end of the rescue." placeholder:"DURATION"`
	JSON    bool          `name:"json" help:"Print the rescue as the API gives it."`
}

func (rescueCmd) Help() string {
	return `Holds the queue, ends the running turn, verifies that the session is idle, and
wakes it with facts that the server gathers (git, last tools, what was in
flight), one assignment, and the clause that keeps it from hanging again; then
verifies that it generates. Each stage is stored: a rescue survives a crash of
the server. At most 3 in an hour; then a person has to look (exit 7).

Examples:
  rouse rescue ses_0123
  rouse rescue ses_0123 -m anthropic/claude-sonnet-4-6 --task "run the tests, then report"`
}

// Run rescues and waits for the end.
func (c *rescueCmd) Run(a *app) error {
	facts, err := c.facts(a)
	if err != nil {
		return err
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	r, raw, err := cl.Rescue(a.ctx, c.Session, client.RescueRequest{Model: c.Model, Facts: facts, Reassignment: c.Task, Reason: c.Reason, Force: c.Force})
	if refused, ok := client.RefusalOf(err); ok && refused.Name == "NeedsPerson" {
		return &exit{exitNeedsPerson, err}
	}
	if err != nil {
		return err
	}
	r, raw, err = c.follow(a, cl, r, raw)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := a.printJSON(raw); err != nil {
			return err
		}
	}
	if r.Status != "done" {
		return &exit{exitNotGenerating, rouse.Errorf(rouse.Upstream, "rescue", "the rescue failed: %s", lastDetail(r))}
	}
	if c.JSON {
		return nil
	}
	_, err = fmt.Fprintln(a.out, r.Turn)
	return rouse.Wrap("cli: print", err)
}

// facts reads the file: a fact is a line, an empty one is none.
func (c *rescueCmd) facts(a *app) ([]string, error) {
	if c.Facts == "" {
		return nil, nil
	}
	in := a.in
	if c.Facts != "-" {
		f, err := os.Open(c.Facts)
		if err != nil {
			return nil, usage("--facts %s: the file cannot be opened", c.Facts)
		}
		defer f.Close()
		if st, err := f.Stat(); err == nil && st.IsDir() {
			return nil, usage("--facts %s: it is a directory", c.Facts)
		}
		in = f
	}
	const most = rouse.MaxFacts * rouse.MaxFact
	raw, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, usage("--facts %s: it cannot be read", c.Facts)
	case len(raw) > most:
		return nil, c.tooLarge(most)
	}
	var out []string
	n, total := 0, 0
	for line := range strings.Lines(strings.TrimPrefix(string(raw), "\ufeff")) {
		n++
		switch line = strings.TrimSpace(line); {
		case line == "":
			continue
		case !utf8.ValidString(line) || strings.ContainsRune(line, 0):
			return nil, usage("--facts %s: line %d is not UTF-8 text", c.Facts, n)
		case len(line) > rouse.MaxFact:
			return nil, usage("--facts %s: line %d is longer than %d bytes; a fact is a line", c.Facts, n, rouse.MaxFact)
		}
		out = append(out, line)
		total += len(line)
	}
	switch {
	case len(out) > rouse.MaxFacts:
		return nil, usage("--facts %s: it has %d facts; at most %d are told", c.Facts, len(out), rouse.MaxFacts)
	case total > rouse.MaxFactsText:
		return nil, c.tooLarge(rouse.MaxFactsText)
	}
	return out, nil
}

func (c *rescueCmd) tooLarge(most int) error {
	return usage("--facts %s: it is larger than %d kB: give what the session has to know, not all there is", c.Facts, most/1000)
}

// follow tells each stage as it comes, until the end.
func (c *rescueCmd) follow(a *app, cl *client.Client, r client.Rescue, raw json.RawMessage) (client.Rescue, json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(a.ctx, c.Timeout)
	defer cancel()
	told := 0
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		for ; told < len(r.Stages); told++ {
			s := r.Stages[told]
			mark := "✓"
			if !s.OK {
				mark = "✗"
			}
			a.notef("%s", oneLine(mark+" "+s.Name+" "+s.Detail))
		}
		if r.Status != "running" {
			return r, raw, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if a.ctx.Err() != nil {
				a.notef("the rescue %s goes on", r.ID)
				return r, raw, context.Cause(a.ctx)
			}
			return r, raw, &exit{exitTimeout, rouse.Errorf(rouse.Unavailable, "rescue", "the rescue %s is still under way after %s; it goes on", r.ID, c.Timeout)}
		}
		var err error
		id := r.ID
		if r, raw, err = cl.RescueState(a.ctx, id); err != nil {
			if errors.Is(err, client.ErrUnreachable) {
				a.notef("the rescue %s is stored: it goes on when the server runs again", id)
			}
			return r, raw, err
		}
	}
}

func lastDetail(r client.Rescue) string {
	if len(r.Stages) == 0 {
		return "no stage is known"
	}
	s := r.Stages[len(r.Stages)-1]
	return s.Name + ": " + s.Detail
}
