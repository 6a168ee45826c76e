package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"rouse"
	"rouse/internal/client"
)

type launchCmd struct {
	Prompt []string `arg:"" optional:"" help:"The prompt; or use --prompt-file."`

	PromptFile    string        `help:"Read the prompt from a file; - is stdin." placeholder:"FILE"`
	Title         string        `help:"Title of the session."`
	Directory     string        `aliases:"dir" help:"Directory of the session (default: the launching session's, else the current one)." placeholder:"DIR"`
	Agent         string        `help:"Agent of the session." placeholder:"NAME"`
	Model         string        `short:"m" help:"Model as provider/model (default: the launching session's, else the server's)." placeholder:"MODEL"`
	Force         bool          `help:"Launch although a usage limit of the provider is known to stand."`
	Auto          bool          `help:"Allow what would be asked for, instead of rejecting it."`
	VerifyTimeout time.Duration `default:"60s" help:"How long to wait for the first sign of generation." placeholder:"60s"`
	JSON          bool          `name:"json" help:"Print the server's answer."`
}

func (launchCmd) Help() string {
	return `Creates a session, prompts it and waits until it really generates: the first
text, reasoning or tool call of this turn, or its end. Prints the session's id.
A launch that does not generate exits with 6 and says why; its session stays.
Behind a usage limit that is known to stand nothing is launched: it exits with 4
(see rouse walls), unless --force is given.
Nobody answers in a launched session: questions are denied, and what would ask
for a permission is rejected, unless --auto is given.

Started by a tool inside a session (ROUSE_SESSION), the new session takes that
session's directory and model unless told otherwise and records it as its
orchestrator.

Examples:
  rouse launch "fix the flaky test in ./store" --title flaky
  rouse launch -m openai/gpt-5.6 --directory ~/src/app --prompt-file task.md
  id=$(git show --stat | rouse launch --prompt-file -)`
}

// Run launches.
func (c *launchCmd) Run(a *app) error {
	prompt, err := c.prompt(a)
	if err != nil {
		return err
	}
	if c.VerifyTimeout < time.Second || c.VerifyTimeout > 10*time.Minute {
		return usage("--verify-timeout %s: use 1s to 10m", c.VerifyTimeout)
	}
	if _, err := modelFlag(c.Model, ""); err != nil {
		return err
	}
	in := client.LaunchRequest{
		Title: c.Title, Agent: c.Agent, Model: c.Model, Prompt: prompt, Force: c.Force, Auto: c.Auto,
		Orchestrator: a.getenv("ROUSE_SESSION"), VerifyTimeoutSec: int((c.VerifyTimeout + time.Second - 1) / time.Second),
	}
	if c.Directory != "" || in.Orchestrator == "" {
		if in.Directory, err = directory(c.Directory); err != nil {
			return err
		}
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	if !c.Auto {
		a.notef("%s", a.style.dim("nobody answers in a launched session: what would ask for a permission is rejected (--auto allows it)"))
	}
	out, raw, err := cl.Launch(a.ctx, in)
	if failed, ok := client.Failed(err); ok {
		return c.failed(a, failed, err)
	}
	if r, ok := client.RefusalOf(err); ok && r.Name == "WallOpen" {
		return c.walled(a, r, err)
	}
	if err != nil {
		return err
	}
	for _, w := range out.Warnings {
		a.notef("! %s", w)
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	_, err = fmt.Fprintln(a.out, out.Session)
	return rouse.Wrap("cli: print", err)
}

// failed prints the session all the same: it stays, and somebody has to look.
func (c *launchCmd) failed(a *app, f client.LaunchFailure, err error) error {
	if c.JSON {
		if r, ok := client.RefusalOf(err); ok {
			if err := a.printJSON(map[string]json.RawMessage{"error": r.Data}); err != nil {
				return err
			}
		}
	} else {
		fmt.Fprintln(a.out, f.Session)
	}
	return &exit{exitNotGenerating, rouse.Errorf(rouse.Upstream, "launch", "session %s does not generate: %s", f.Session, firstText(f.Message, say(err)))}
}

// walled says what stands in the way; nothing was made.
func (c *launchCmd) walled(a *app, r *client.Refusal, err error) error {
	if c.JSON {
		if err := a.printJSON(map[string]json.RawMessage{"error": r.Data}); err != nil {
			return err
		}
	}
	return &exit{exitWall, rouse.Errorf(rouse.Conflict, "launch", "%s (--force)", say(err))}
}

// prompt reads the prompt from the arguments or --prompt-file, not both.
func (c *launchCmd) prompt(a *app) (string, error) {
	text := strings.Join(c.Prompt, " ")
	if c.PromptFile != "" {
		if text != "" {
			return "", usage("give the prompt as an argument or with --prompt-file, not both")
		}
		from := a.in
		if c.PromptFile != "-" {
			f, err := os.Open(c.PromptFile)
			if err != nil {
				return "", usage("--prompt-file %s: the file cannot be opened", c.PromptFile)
			}
			defer f.Close()
			if st, err := f.Stat(); err == nil && st.IsDir() {
				return "", usage("--prompt-file %s: it is a directory", c.PromptFile)
			}
			from = f
		}
		var err error
		if text, err = read(from, "--prompt-file "+c.PromptFile); err != nil {
			return "", err
		}
	}
	if strings.TrimSpace(text) == "" {
		return "", usage("there is no prompt: give one as an argument or with --prompt-file")
	}
	return text, readable(text)
}
