package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"rouse"
	"rouse/internal/client"
)

type topCmd struct {
	Directory string        `aliases:"dir" help:"Sessions of this directory only." placeholder:"DIR"`
	All       bool          `help:"Also sessions in which nothing runs."`
	Every     time.Duration `default:"1s" help:"How often to look." placeholder:"DURATION"`
	Count     int           `short:"n" default:"0" help:"Look this often and end (default: until Ctrl-C)." placeholder:"N"`
	JSON      bool          `name:"json" help:"Print the server's answer each time, one line each."`
}

func (topCmd) Help() string {
	return `Shows what every busy session does, and keeps looking. Those that want somebody
come first. Changed is how long ago the session last changed.

Examples:
  rouse top
  rouse top --all --every 5s
  rouse top --json --count 1 | jq '.sessions[].verdict'`
}

// mostRows is how many sessions one look takes in: all that a server gives at
// once. The one that hangs longest was updated longest ago.
const mostRows = 10_000

// Run looks until it is told to stop.
func (c *topCmd) Run(a *app) error {
	if c.Every < 100*time.Millisecond {
		return usage("--every %s: use 100ms or more", c.Every)
	}
	q := client.RowQuery{Limit: mostRows}
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
	live := styleOf(a.out, a.getenv) && !style(c.JSON)
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for n := 1; ; n++ {
		list, raw, err := cl.Rows(a.ctx, q)
		switch {
		case err != nil:
			return err
		case c.JSON:
			err = a.printJSON(raw)
		default:
			err = c.show(a, live, list, time.Now())
		}
		if err != nil || n == c.Count {
			return err
		}
		select {
		case <-tick.C:
		case <-a.ctx.Done():
			return nil // Ctrl-C is how it ends
		}
	}
}

// show prints one look; on a terminal it takes the place of the last one.
func (c *topCmd) show(a *app, live style, list client.Rows, now time.Time) error {
	count := map[string]int{}
	var rows [][]string
	for _, rank := range []func(string) bool{wantsSomebody, busy, func(v string) bool { return !wantsSomebody(v) && !busy(v) }} {
		for _, s := range list.Sessions {
			if !rank(s.Verdict) || !c.All && !busy(s.Verdict) && !wantsSomebody(s.Verdict) && s.Queued == 0 {
				continue
			}
			rows = append(rows, []string{s.ID, short(s.Title, 24), stateCell(s), age(now.Sub(s.UpdatedAt)), fmt.Sprint(s.Queued), untilCell(s, now),
				short(strings.Join(s.Evidence, "; "), 72)})
		}
	}
	for _, s := range list.Sessions {
		count[s.State]++
	}
	if live {
		fmt.Fprint(a.out, "\x1b[H\x1b[2J") // home, clear: ECMA-48
	}
	fmt.Fprintf(a.out, "%s  %d sessions: %d generating, %d waiting, %d idle, %d paused\n", now.Format("15:04:05"), list.Total,
		count[string(rouse.Generating)], count[string(rouse.Waiting)], count[string(rouse.Idle)], count[string(rouse.Paused)])
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.out, "nothing runs")
		return rouse.Wrap("cli: print", err)
	}
	headers := []string{"SESSION", "TITLE", "STATE", "CHANGED", "QUEUED", "UNTIL", "EVIDENCE"}
	if live {
		return a.screen(headers, rows)
	}
	return a.table(headers, rows)
}

// screen prints a table so that it fits below the line above it: no line wraps,
// and what there is no room for is counted.
func (a *app) screen(headers []string, rows [][]string) error {
	f, ok := a.out.(*os.File)
	if !ok {
		return a.table(headers, rows)
	}
	width, height, err := term.GetSize(f.Fd())
	room := height - 3 // the line above, the headers, and the cursor
	if err != nil || room < 1 {
		return a.table(headers, rows)
	}
	more := 0
	if len(rows) > room {
		more = len(rows) - room + 1
		rows = rows[:room-1]
	}
	var text strings.Builder
	whole := *a
	whole.out = &text
	if err := whole.table(headers, rows); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(a.out, short(strings.TrimRight(line, "\n"), max(2, width)))
	}
	if more > 0 {
		_, err = fmt.Fprintf(a.out, "and %d more\n", more)
	}
	return rouse.Wrap("cli: print", err)
}

// wantsSomebody says that a verdict asks for a deed.
func wantsSomebody(code string) bool {
	k, ok := rouse.VerdictCode(code).Kind()
	return ok && k.Severity == rouse.SeverityAction
}

// busy says that a turn runs and wants nobody.
func busy(code string) bool {
	c := rouse.VerdictCode(code)
	return code != "" && !c.Over() && !wantsSomebody(code)
}

// stateCell is what the watch makes of a session; a pause is said first.
func stateCell(s client.Row) string {
	if s.State == string(rouse.Paused) {
		return s.State
	}
	return firstText(s.Verdict, s.State)
}

// untilCell is when the state ends by itself, as far as that is known.
func untilCell(s client.Row, now time.Time) string {
	if s.Until.IsZero() {
		return ""
	}
	return clock(s.Until) + " (" + age(s.Until.Sub(now)) + ")"
}
