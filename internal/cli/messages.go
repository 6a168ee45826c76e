package cli

import (
	"fmt"
	"time"

	"rouse"
	"rouse/internal/client"
)

type messagesCmd struct {
	Session string `arg:"" help:"The session's id."`
	Limit   int    `short:"n" default:"20" help:"At most this many: the newest ones, or with --after the oldest ones behind it."`
	Before  string `help:"Messages before this cursor (next_cursor of --json)." placeholder:"CURSOR"`
	After   string `help:"Messages after this cursor or message id." placeholder:"CURSOR"`
	JSON    bool   `name:"json" help:"Print {messages, next_cursor}."`
}

func (messagesCmd) Help() string {
	return `The text of a running turn is as it is now.

Examples:
  rouse messages ses_0123 -n 1
  rouse messages ses_0123 --json | jq -r '.messages[-1].parts[] | .text // empty'`
}

// Run prints a page of the transcript.
func (c *messagesCmd) Run(a *app) error {
	if c.Limit < 1 {
		return usage("--limit %d: use 1 or more", c.Limit)
	}
	if c.Before != "" && c.After != "" {
		return usage("--before and --after exclude each other")
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	page, err := cl.Messages(a.ctx, c.Session, client.MessageQuery{Limit: c.Limit, Before: c.Before, After: c.After})
	if err != nil {
		return err
	}
	if c.JSON {
		out := struct {
			Messages   []messageJSON `json:"messages"`
			NextCursor string        `json:"next_cursor,omitempty"`
		}{Messages: []messageJSON{}, NextCursor: page.Next}
		for _, e := range page.Entries {
			out.Messages = append(out.Messages, shapeMessage(e))
		}
		return a.printJSON(out)
	}
	if page.Next != "" && c.After == "" {
		a.notef("%s", a.style.dim("… earlier ones: --before "+page.Next))
	}
	for _, e := range page.Entries {
		a.message(e)
	}
	if page.Next != "" && c.After != "" {
		a.notef("%s", a.style.dim("… later ones: --after "+page.Next))
	}
	return nil
}

// message prints one message for a person, all of it on stdout.
func (a *app) message(e client.Entry) {
	m, st := &e.Info, styleOf(a.out, a.getenv)
	head := m.Role + "  " + time.UnixMilli(m.Time.Created).Format("2006-01-02 15:04:05")
	if m.Role == string(rouse.Assistant) {
		head += "  " + m.ModelRef().String()
		switch {
		case m.Finish != "":
			head += "  " + m.Finish
		case m.Time.Completed == 0:
			head += "  running"
		}
	}
	fmt.Fprintln(a.out, st.bold(head))
	t := &terminal{out: a.out, side: a.out, style: st, thinking: true, now: time.Now}
	for _, p := range e.Parts {
		switch {
		case p.Type == "text" || p.Type == "reasoning":
			t.text(p, p.Text, true)
		case p.Type == "tool" && p.State != nil:
			t.tool(p)
		case p.Type == "file":
			t.line("%s", st.dim("@ "+firstText(p.Filename, p.Mime)))
		}
		t.endLine()
	}
	if m.Error != nil {
		t.failed(m.SessionID, m.Error)
	}
	fmt.Fprintln(a.out)
}
