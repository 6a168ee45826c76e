package cli

import (
	"context"
	"os"
	"time"

	"rouse"
	"rouse/internal/client"
)

type runCmd struct {
	Message []string `arg:"" optional:"" help:"The prompt; text piped to stdin is appended to it, or is the prompt."`

	Attach    string        `help:"Run on the server at this address." placeholder:"URL"`
	Session   string        `short:"s" help:"Go on in this session." placeholder:"ID"`
	Continue  bool          `short:"c" help:"Go on in the newest session of the directory."`
	Fork      bool          `help:"With --session or --continue: go on in a copy."`
	Model     string        `short:"m" help:"Model as provider/model." placeholder:"MODEL"`
	Variant   string        `help:"The model's variant, such as high." placeholder:"NAME"`
	Agent     string        `help:"Agent of the session." placeholder:"NAME"`
	File      []string      `short:"f" sep:"none" help:"Attach a file; may be repeated." placeholder:"FILE"`
	Title     string        `help:"Title of a new session."`
	Directory string        `aliases:"dir" help:"Directory of a new session (default: the current one)." placeholder:"DIR"`
	Format    string        `enum:"default,json" default:"default" help:"default, or json: one JSON object per line."`
	JSON      bool          `name:"json" help:"The same as --format json."`
	Auto      bool          `help:"Allow what would be asked for, instead of rejecting it."`
	Thinking  bool          `help:"Show the model's reasoning, on stderr."`
	Timeout   time.Duration `help:"Abort the turn after this long, with exit code 124." placeholder:"5m"`
}

func (runCmd) Help() string {
	return `The answer goes to stdout as it comes; tools, retries and notes go to stderr.
Nobody is there to answer: what would ask for a permission is rejected, unless
--auto is given, and a question is never asked. Without --attach, --server or a
server on the data folder a server is started for this one prompt.

Exit codes: 0 done, 3 failed, 4 usage limit, 5 cancelled or interrupted,
7 something would have needed a person, 8 refused, 9 no server, 124 timeout,
130 Ctrl-C (the turn is aborted first).

Examples:
  rouse run "explain the build"
  rouse run -m anthropic/claude-sonnet-4-6 -f notes.md "turn these into an issue"
  git diff | rouse run "review this" --format json
  rouse run -c "and now the tests" --timeout 10m`
}

// Run sends the prompt and shows what comes of it.
func (c *runCmd) Run(a *app) error {
	parts, err := c.parts(a)
	if err != nil {
		return err
	}
	model, err := modelFlag(c.Model, c.Variant)
	if err != nil {
		return err
	}
	if c.Fork && c.Session == "" && !c.Continue {
		return usage("--fork goes with --session or --continue")
	}
	if c.Session != "" && c.Continue {
		return usage("--session and --continue exclude each other")
	}
	cl, stop, err := a.clientOrEmbedded(c.Attach)
	if err != nil {
		return err
	}
	defer stop()
	ctx := a.ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
		defer cancel()
	}
	s, err := c.session(ctx, a, cl, model)
	if err != nil {
		return err
	}
	t := &turn{app: a, client: cl, session: s, auto: c.Auto, json: c.JSON || c.Format == "json", thinking: c.Thinking}
	return t.run(ctx, client.Prompt{
		Key:       rouse.NewID("run", time.Now()),
		MessageID: rouse.NewID(rouse.MessagePrefix, time.Now()),
		Directory: s.Directory, Parts: parts, Agent: c.Agent, Model: model,
	})
}

// modelFlag reads -m and --variant.
func modelFlag(text, variant string) (rouse.ModelRef, error) {
	if text == "" {
		if variant != "" {
			return rouse.ModelRef{}, usage("--variant goes with --model")
		}
		return rouse.ModelRef{}, nil
	}
	ref, err := rouse.ParseModelRef(text)
	if err != nil {
		return ref, usage("--model %q: use provider/model, as `rouse models` lists them", text)
	}
	ref.Variant = variant
	return ref, nil
}

// session finds or makes the session of the prompt.
func (c *runCmd) session(ctx context.Context, a *app, cl *client.Client, model rouse.ModelRef) (*client.Session, error) {
	dir, err := directory(c.Directory)
	if err != nil {
		return nil, err
	}
	id := c.Session
	if c.Continue {
		page, err := cl.Sessions(ctx, dir, true, 1, "")
		if err != nil {
			return nil, err
		}
		if len(page.Sessions) == 0 {
			return nil, &exit{exitRefused, rouse.Errorf(rouse.NotFound, "cli", "there is no session to continue in %s", dir)}
		}
		id = page.Sessions[0].ID
	}
	if id == "" {
		s, warning, err := cl.Create(ctx, client.NewSession{Directory: dir, Title: c.Title, Agent: c.Agent, Model: model, Permission: noQuestions})
		if warning != "" {
			a.notef("! %s", warning)
		}
		return s, err
	}
	if c.Fork {
		return cl.Fork(ctx, id, "")
	}
	return cl.Session(ctx, id)
}

// noQuestions are the rules of sessions that nobody sits in front of.
var noQuestions = []rouse.PermissionRule{{Permission: "question", Pattern: "*", Action: rouse.Deny}}

// directory is dir, or the current one, as an absolute path that exists.
func directory(dir string) (string, error) {
	abs, err := absolute(dir)
	if err != nil {
		return "", usage("the current directory cannot be named; use --directory")
	}
	if st, err := os.Stat(abs); err != nil || !st.IsDir() {
		return "", usage("--directory %s: there is no such directory", abs)
	}
	return abs, nil
}
