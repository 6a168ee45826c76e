package cli

import (
	"context"
	"fmt"

	"rouse"
	"rouse/internal/client"
)

type abortCmd struct{ control }

func (abortCmd) Help() string {
	return `Returns when the turn is settled. Prompts that wait behind it run next; pause
the session first to keep them from it. An idle session is no error.

Example:
  rouse abort ses_0123`
}

// Run aborts.
func (c *abortCmd) Run(a *app) error { return c.do(a, (*client.Client).Abort) }

type pauseCmd struct{ control }

func (pauseCmd) Help() string {
	return `The running turn goes on to its end; new prompts are refused until the session
is resumed.

Example:
  rouse pause ses_0123 && rouse abort ses_0123`
}

// Run pauses.
func (c *pauseCmd) Run(a *app) error { return c.do(a, (*client.Client).Pause) }

type resumeCmd struct{ control }

func (resumeCmd) Help() string {
	return `Example:
  rouse resume ses_0123`
}

// Run resumes.
func (c *resumeCmd) Run(a *app) error { return c.do(a, (*client.Client).Resume) }

// control is a verb on one session.
type control struct {
	Session string `arg:"" help:"The session's id."`
	JSON    bool   `name:"json" help:"Print {session, state, outcome, queued}."`
}

// do acts and prints the state that came of it.
func (c *control) do(a *app, verb func(*client.Client, context.Context, string) error) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := cl.Session(a.ctx, c.Session); err != nil {
		return err // an unknown session is an error here, also where the wire forgives it
	}
	if err := verb(cl, a.ctx, c.Session); err != nil {
		return err
	}
	s, err := cl.Session(a.ctx, c.Session)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(map[string]any{"session": s.ID, "state": s.State, "outcome": s.Outcome, "queued": s.Queued})
	}
	_, err = fmt.Fprintln(a.out, s.State)
	return rouse.Wrap("cli: print", err)
}
