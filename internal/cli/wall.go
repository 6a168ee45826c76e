package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"rouse"
	"rouse/internal/client"
)

type wallsCmd struct {
	List  wallsListCmd  `cmd:"" default:"withargs" help:"List the usage limits that are known to stand."`
	Close wallsCloseCmd `cmd:"" help:"Close a wall by hand: what waits for it is tried."`
}

func (wallsCmd) Help() string {
	return `A wall is a usage or billing limit that a provider named. While it stands,
launches are refused, waiting prompts wait, and one prompt at a time tries it.
It opens by itself after its reset, and closes when a prompt completes.

Examples:
  rouse walls
  rouse walls --json | jq -r '.walls[] | .provider + " " + (.reset_at // "unknown")'
  rouse walls close wal_0123`
}

type wallsListCmd struct {
	All  bool `help:"Closed ones too."`
	JSON bool `name:"json" help:"Print the server's answer."`
}

// Run lists walls.
func (c *wallsListCmd) Run(a *app) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	walls, raw, err := cl.Walls(a.ctx, c.All)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	if len(walls) == 0 {
		a.notef("no walls: every provider may be asked")
		return nil
	}
	rows, now := make([][]string, len(walls)), time.Now()
	for i, w := range walls {
		what := firstText(w.Model, "all models")
		rows[i] = []string{w.ID, account(w), what, firstText(w.LimitName, string(w.Class)), w.State, until(w.ResetAt, now), w.Confidence, fmt.Sprint(len(w.Held)), short(w.Message, 60)}
	}
	return a.table([]string{"WALL", "PROVIDER", "MODEL", "LIMIT", "STATE", "RESETS", "CONFIDENCE", "WAITING", "SAID"}, rows)
}

// until says when, and how long that is from now.
func until(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "unknown"
	case !t.After(now):
		return t.Local().Format("15:04:05") + " (past)"
	case t.Sub(now) < 20*time.Hour:
		return t.Local().Format("15:04:05") + " (in " + age(t.Sub(now)) + ")"
	}
	return t.Local().Format("2006-01-02 15:04") + " (in " + age(t.Sub(now)) + ")"
}

type wallsCloseCmd struct {
	ID   string `arg:"" help:"The wall's id."`
	JSON bool   `name:"json" help:"Print the wall."`
}

// Run closes a wall.
func (c *wallsCloseCmd) Run(a *app) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	w, raw, err := cl.CloseWall(a.ctx, c.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	_, err = fmt.Fprintln(a.out, w.State)
	return rouse.Wrap("cli: print", err)
}

type preflightCmd struct {
	Model string `arg:"" optional:"" help:"Model as provider/model (default: the server's)."`
	Named string `name:"model" short:"m" help:"The same, as the other commands take it." placeholder:"PROVIDER/MODEL"`
	JSON  bool   `name:"json" help:"Print the server's answer."`
}

func (preflightCmd) Help() string {
	return `Asks the server whether a model can take work now; no request is made to the
provider. Exits with 0 if it can, 4 behind a wall, 8 if the model is unknown or
its provider cannot be used.

Example:
  rouse preflight openai/gpt-5.6 && rouse launch -m openai/gpt-5.6 "…"`
}

// Run asks.
func (c *preflightCmd) Run(a *app) error {
	if c.Model != "" && c.Named != "" && c.Model != c.Named {
		return usage("name one model, not both %s and --model %s", c.Model, c.Named)
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	p, raw, err := cl.Preflight(a.ctx, cmp.Or(c.Model, c.Named))
	if err != nil {
		return err
	}
	if c.JSON {
		err = a.printJSON(raw)
	} else {
		err = c.print(a, p)
	}
	switch {
	case err != nil, p.Usable:
		return err
	case p.Reason == "wall":
		return &exit{code: exitWall}
	}
	return &exit{code: exitRefused}
}

func (c *preflightCmd) print(a *app, p client.Preflight) error {
	line := firstText(p.Model, "no model") + ": usable"
	if !p.Usable {
		line = firstText(p.Model, "no model") + ": " + strings.ReplaceAll(p.Reason, "_", " ")
		if p.Reason == "wall" {
			line += ", resets " + until(p.Until, time.Now())
		}
	}
	if _, err := fmt.Fprintln(a.out, line); err != nil {
		return rouse.Wrap("cli: print", err)
	}
	if p.Message != "" {
		a.notef("%s", p.Message)
	}
	return nil
}

// account is whose limit a wall is.
func account(w client.Wall) string {
	if w.Account == "" || w.Account == rouse.DefaultAccount {
		return w.Provider
	}
	return w.Provider + " (" + w.Account + ")"
}
