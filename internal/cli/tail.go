package cli

import (
	"errors"
	"time"

	"rouse"
	"rouse/internal/client"
)

type tailCmd struct {
	Session   string `arg:"" optional:"" help:"The session's id; without one, all sessions of the server."`
	Messages  int    `short:"n" default:"5" help:"Show this many messages of the session first."`
	NoFollow  bool   `help:"Only show what is there now."`
	UntilIdle bool   `help:"End when the session has nothing more to do."`
	Thinking  bool   `help:"Show the model's reasoning."`
	JSON      bool   `name:"json" help:"One JSON object per line, as of rouse run --format json."`
}

func (tailCmd) Help() string {
	return `Follows until Ctrl-C. A broken connection is resumed where it was.

Examples:
  rouse tail ses_0123
  rouse tail ses_0123 --until-idle
  rouse tail --json | jq -r 'select(.type == "error") | .session + " " + .error.message'`
}

// Run shows what there is and then what comes.
func (c *tailCmd) Run(a *app) error {
	if c.Session == "" && (c.NoFollow || c.UntilIdle) {
		return usage("--no-follow and --until-idle go with a session")
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	var t *terminal
	var s sink
	if c.JSON {
		s = newLines(a.out)
	} else {
		t = &terminal{out: a.out, side: a.out, style: styleOf(a.out, a.getenv), thinking: c.Thinking, names: c.Session == "", now: time.Now}
		s = t
	}
	v := newView(s, c.Session, "")
	if t != nil {
		t.user = func(id string) bool { return v.messages[id].Role == string(rouse.User) }
	}
	if c.Session == "" {
		return c.follow(a, cl, v, "", nil)
	}
	session, err := cl.Session(a.ctx, c.Session)
	if err != nil {
		return err
	}
	if c.NoFollow {
		return c.history(a, cl, v)
	}
	return c.follow(a, cl, v, session.Directory, session)
}

// history shows the newest messages through the same view, so that what the
// stream repeats is not shown again.
func (c *tailCmd) history(a *app, cl *client.Client, v *view) error {
	if c.Messages < 1 {
		return nil
	}
	page, err := cl.Messages(a.ctx, c.Session, client.MessageQuery{Limit: c.Messages})
	if err != nil {
		return err
	}
	for _, e := range page.Entries {
		v.message(e.Info)
		for _, p := range e.Parts {
			v.part(p)
		}
		if e.Info.Error != nil {
			v.errored(e.Info.SessionID, e.Info.Error)
		}
	}
	return nil
}

func (c *tailCmd) follow(a *app, cl *client.Client, v *view, directory string, session *client.Session) error {
	look := func() error {
		err := c.history(a, cl, v)
		if err == nil && c.UntilIdle {
			session, err = cl.Session(a.ctx, c.Session)
		}
		return err
	}
	var opening error
	opened := false
	err := cl.Follow(a.ctx, client.Stream{
		Directory: directory,
		Open: func() {
			if opened || session == nil {
				return
			}
			opened = true
			opening = look()
		},
		Lost: func(error) { a.notef("! the connection to the server is lost; trying again") },
	}, func(e client.Event) error {
		if opening != nil {
			return opening
		}
		if e.Type == client.Resync {
			a.notef("! the server does not know any more what came since then: what is missing here is in rouse messages")
			if session != nil {
				if err := look(); err != nil {
					return err
				}
			}
		}
		if err := v.event(e); err != nil {
			return err
		}
		if c.UntilIdle && (idle(session) || v.last[c.Session] == "idle") {
			return client.ErrStop
		}
		return nil
	})
	if errors.Is(err, errInterrupted) {
		return nil // Ctrl-C is how a tail ends
	}
	return err
}

// idle says that a session had nothing to do when it was read.
func idle(s *client.Session) bool {
	return s != nil && s.Queued == 0 && (s.State == string(rouse.Idle) || s.State == string(rouse.Paused))
}
