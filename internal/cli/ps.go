package cli

import (
	"fmt"
	"strings"
	"time"

	"rouse/internal/client"
)

type psCmd struct {
	Directory string `aliases:"dir" help:"Sessions of this directory only." placeholder:"DIR"`
	State     string `help:"Sessions in this state only: idle, generating, waiting or paused." enum:",idle,generating,waiting,paused" default:""`
	Limit     int    `short:"n" default:"50" help:"At most this many, newest first."`
	JSON      bool   `name:"json" help:"Print the server's answer."`
}

func (psCmd) Help() string {
	return `The state is what the watch makes of a session: working, quiet, quiet_tool, hung,
never_started, retrying, waiting_permission, waiting_question, waiting_quota,
unresponsive, orphaned, or settled:<outcome>. Changed is how long ago the session
last changed, until when the state ends by itself.
Mem is the memory of the agent program that the session keeps, with all that it
started; sessions of Rouse's own loop have none.

Examples:
  rouse ps
  rouse ps --state generating
  rouse ps --json | jq '.sessions[] | select(.outcome == "failed") | .id'`
}

// Run lists sessions.
func (c *psCmd) Run(a *app) error {
	if c.Limit < 1 {
		return usage("--limit %d: use 1 or more", c.Limit)
	}
	q := client.RowQuery{State: c.State, Limit: c.Limit}
	if c.Directory != "" {
		var err error
		if q.Directory, err = directory(c.Directory); err != nil {
			return err
		}
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	list, raw, err := cl.Rows(a.ctx, q)
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	if len(list.Sessions) == 0 {
		a.notef("no sessions")
		return nil
	}
	rows, now := make([][]string, len(list.Sessions)), time.Now()
	for i, s := range list.Sessions {
		rows[i] = []string{s.ID, short(s.Title, 32), stateCell(s), s.Model.String(), memory(s.RSS), fmt.Sprint(s.Messages),
			age(now.Sub(s.UpdatedAt)), untilCell(s, now), short(strings.Join(s.Evidence, "; "), 72)}
	}
	if err := a.table([]string{"SESSION", "TITLE", "STATE", "MODEL", "MEM", "MSGS", "CHANGED", "UNTIL", "EVIDENCE"}, rows); err != nil {
		return err
	}
	if list.HasMore {
		a.notef("%d of %d sessions; --limit shows more", len(list.Sessions), list.Total)
	}
	return nil
}

// memory writes a size of a process; "" for none.
func memory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%d MB", (bytes+(1<<20)-1)>>20)
}
