package cli

import (
	"fmt"
	"strings"
	"time"

	"rouse"
	"rouse/internal/client"
)

type waitCmd struct {
	Session string        `arg:"" help:"The session's id."`
	For     []string      `default:"settled" help:"What to wait for, whichever comes first: settled, idle, verdict:<code>, wall, needs_person." placeholder:"WHAT"`
	Timeout time.Duration `default:"0" help:"Give up after this long (default: never); exit 124." placeholder:"DURATION"`
	JSON    bool          `name:"json" help:"Print the server's answer."`
}

func (waitCmd) Help() string {
	return `Prints what was reached and exits by how it went: 0 done (or the verdict that was
waited for), 3 failed, 4 a usage limit, 5 cancelled or interrupted, 7 a person is
needed, 124 the timeout. "settled" is the end of the turn that runs, or of the next
one; "idle" is that nothing is queued either.

Examples:
  rouse wait ses_0123
  rouse wait ses_0123 --for=settled,needs_person --timeout 10m
  rouse wait ses_0123 --for=verdict:hung --timeout 1h && rouse rescue ses_0123`
}

// onceMost is how long one call to the server waits.
const onceMost = 60 * time.Second

// Run waits.
func (c *waitCmd) Run(a *app) error {
	if err := c.conditions(); err != nil {
		return err
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	began := time.Now()
	for {
		most := onceMost
		if c.Timeout > 0 {
			// The server counts in seconds; what is left over is waited at most once more.
			most = min(most, max(0, c.Timeout-time.Since(began)).Round(time.Second))
		}
		out, raw, err := cl.Wait(a.ctx, c.Session, c.For, most)
		if err != nil {
			return err
		}
		over := c.Timeout > 0 && time.Since(began) >= c.Timeout-time.Second/2
		if !out.Reached && !over {
			continue
		}
		if c.JSON {
			if err := a.printJSON(raw); err != nil {
				return err
			}
		} else if out.Reached {
			if _, err := fmt.Fprintln(a.out, oneLine(out.Matched+" "+firstText(out.Outcome, out.Verdict))); err != nil {
				return rouse.Wrap("cli: print", err)
			}
		}
		return c.end(out)
	}
}

// conditions refuses what no session will ever reach.
func (c *waitCmd) conditions() error {
	if strings.TrimSpace(strings.Join(c.For, "")) == "" {
		return usage("--for: name what to wait for: %s", waitable())
	}
	for i, what := range c.For {
		what = strings.TrimSpace(what)
		c.For[i] = what
		code, verdict := strings.CutPrefix(what, "verdict:")
		_, known := rouse.VerdictCode(code).Kind()
		switch {
		case what == "settled", what == "idle", what == "wall", what == "needs_person", verdict && known:
		case what == "":
			return usage("--for %s: something is missing between the commas", strings.Join(c.For, ","))
		case verdict:
			return usage("--for: there is no verdict %q; use one of %s", rouse.Clip(code, 60), rouse.VerdictCodes())
		default:
			return usage("--for: %q cannot be waited for; use %s", rouse.Clip(what, 60), waitable())
		}
	}
	return nil
}

// waitable is what can be waited for, in words.
func waitable() string {
	return "settled, idle, wall, needs_person, or verdict: with one of " + rouse.VerdictCodes()
}

// end is the exit code of what was reached.
func (c *waitCmd) end(out client.WaitAnswer) error {
	with := func(code int, format string, args ...any) error {
		return &exit{code, rouse.Errorf(rouse.Upstream, "wait", format, args...)}
	}
	switch {
	case !out.Reached:
		return with(exitTimeout, "%s did not come within %s; the session is %s (%s)", strings.Join(c.For, ", "), c.Timeout, out.State, firstText(out.Verdict, "no turn yet"))
	case out.Matched == "needs_person":
		return with(exitNeedsPerson, "the session needs a person: %s", out.Verdict)
	case out.Matched == "wall":
		return with(exitWall, "the session met a usage limit%s", resets(out))
	case strings.HasPrefix(out.Matched, "verdict:"):
		return nil
	}
	switch rouse.TurnState(out.Outcome) {
	case rouse.TurnFailed:
		if out.Wall != nil {
			return with(exitWall, "the turn met a usage limit%s", resets(out))
		}
		return with(exitFailed, "the turn failed; rouse health %s says why", c.Session)
	case rouse.TurnCancelled, rouse.TurnInterrupted:
		return with(exitAborted, "the turn was %s", out.Outcome)
	}
	return nil
}

func resets(out client.WaitAnswer) string {
	if out.Wall == nil || out.Wall.ResetAt.IsZero() {
		return ""
	}
	return " that resets at " + clock(out.Wall.ResetAt)
}
