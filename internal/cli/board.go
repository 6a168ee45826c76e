package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"rouse"
	"rouse/internal/client"
)

// act is one session of the tour.
type act struct {
	name, model, should string
	outcome             rouse.TurnState
	class               rouse.Class // of the failure, where it should fail
	retries, tools      int         // at least so many must be seen
	abort               bool        // by hand, once it is silent

	session  string
	state    string
	evidence string
	last     time.Time // of anything the session did
	bytes    int
	seenTry  int
	seenTool int
	aborted  bool
	done     bool

	shown string
}

// cast is what the tour shows.
func cast() []*act {
	return []*act{
		{name: "fine", model: "drill/stream", should: "answers", outcome: rouse.TurnCompleted},
		{name: "tool", model: "drill/tool", should: "runs a command, then answers", outcome: rouse.TurnCompleted, tools: 1},
		{name: "rate", model: "drill/rate", should: "is told to wait twice, then answers", outcome: rouse.TurnCompleted, retries: 2},
		{name: "broken", model: "drill/break", should: "is cut off once, tries again, answers", outcome: rouse.TurnCompleted, retries: 1},
		{name: "quota", model: "drill/quota", should: "fails at once: the limit resets in hours", outcome: rouse.TurnFailed, class: rouse.ClassQuota},
		{name: "hang", model: "drill/hang", should: "falls silent and is aborted by hand", outcome: rouse.TurnCancelled, abort: true},
	}
}

// board is the tour's table; it is the sink of the stream.
type board struct {
	app  *app
	live style // whether rows are drawn in place

	mu   sync.Mutex
	acts []*act
	rows int // drawn last
}

func newBoard(a *app) *board {
	return &board{app: a, live: styleOf(a.out, a.getenv), acts: cast()}
}

// start launches all acts.
func (b *board) start(ctx context.Context, cl *client.Client, work string) error {
	for _, x := range b.acts {
		ref, err := rouse.ParseModelRef(x.model)
		if err != nil {
			return err
		}
		s, _, err := cl.Create(ctx, client.NewSession{Directory: work, Title: "tour: " + x.name, Model: ref, Permission: noQuestions})
		if err != nil {
			return err
		}
		b.mu.Lock()
		x.session, x.state, x.last = s.ID, "queued", time.Now()
		b.mu.Unlock()
		prompt := client.Prompt{Key: "tour-" + x.name, Model: ref, Parts: []client.PartInput{{Type: "text", Text: "Show what you do."}}}
		if _, err := cl.PromptAsync(ctx, s.ID, prompt); err != nil {
			return err
		}
	}
	return nil
}

// update changes the act of a session, if it is one.
func (b *board) update(session string, do func(*act)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.acts {
		if x.session == session && session != "" {
			x.last = time.Now()
			if x.state == "queued" {
				x.state = "working"
			}
			do(x)
		}
	}
}

func (b *board) note(x *act, text string) {
	b.update(x.session, func(x *act) { x.aborted, x.evidence = true, text })
}

func (b *board) text(p client.Part, piece string, _ bool) {
	b.update(p.SessionID, func(x *act) {
		if x.bytes += len(piece); piece != "" && !x.done {
			x.evidence = "text comes"
		}
	})
}

func (b *board) tool(p client.Part) {
	b.update(p.SessionID, func(x *act) {
		x.evidence = p.Tool + " " + p.State.Status + "  " + short(oneLine(firstText(p.State.Title, subject(p.State.Input))), 40)
		if p.State.Status == "completed" {
			x.seenTool++
		}
	})
}

func (b *board) step(client.Part) {}

func (b *board) retry(session string, s client.Status) {
	b.update(session, func(x *act) {
		x.seenTry++
		x.state = "retrying"
		x.evidence = fmt.Sprintf("attempt %d failed (%s): %s", s.Status.Attempt, s.Status.Class, short(oneLine(s.Status.Message), 60))
	})
}

func (b *board) failed(session string, e *client.MessageError) {
	b.update(session, func(x *act) {
		if !e.Aborted() {
			x.evidence = errorText(e)
		}
	})
}

func (b *board) idle(session string) {
	b.update(session, func(x *act) { x.done, x.state = true, "ended" })
}

func (b *board) asked(r client.Request) {
	b.update(r.SessionID, func(x *act) { x.state, x.evidence = "waiting", requestText(r) })
}

// ended says that all acts are over.
func (b *board) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.acts {
		if !x.done {
			return false
		}
	}
	return true
}

// silent gives the acts that are to be aborted now: three seconds after the
// last sign of life.
func (b *board) silent(now time.Time) []*act {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*act
	for _, x := range b.acts {
		if x.abort && !x.aborted && x.bytes > 0 && now.Sub(x.last) > 3*time.Second {
			out = append(out, x)
		}
	}
	return out
}

// draw shows the table: in place on a terminal, else what changed.
func (b *board) draw(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.rows == 0:
		fmt.Fprintln(b.app.out, b.live.bold(fmt.Sprintf("%-7s %-14s %-9s %s", "WHO", "MODEL", "STATE", "EVIDENCE")))
	case bool(b.live):
		fmt.Fprintf(b.app.out, "\x1b[%dA", b.rows)
	}
	for _, x := range b.acts {
		evidence := x.evidence
		if idle := now.Sub(x.last); !x.done && bool(b.live) && x.session != "" && idle > time.Second {
			evidence += fmt.Sprintf("; silent for %s", age(idle))
		}
		line := fmt.Sprintf("%-7s %-14s %-9s %s", x.name, x.model, x.state, evidence)
		switch {
		case bool(b.live):
			fmt.Fprintf(b.app.out, "\x1b[2K%s\n", short(line, 110))
		case line != x.shown:
			fmt.Fprintln(b.app.out, strings.TrimRight(line, " "))
		}
		x.shown = line
	}
	b.rows = len(b.acts)
}

// verdict reads back what the server says of each act and compares it.
func (b *board) verdict(ctx context.Context, cl *client.Client) (wrong int, err error) {
	rows, _, err := cl.Rows(ctx, client.RowQuery{Limit: len(b.acts)})
	if err != nil {
		return 0, err
	}
	says := map[string]string{}
	for _, r := range rows.Sessions {
		says[r.ID] = strings.Join(r.Evidence, "; ")
	}
	fmt.Fprintln(b.app.out, "\nWhat the server says of them:")
	for _, x := range b.acts {
		s, err := cl.Session(ctx, x.session)
		if err != nil {
			return 0, err
		}
		page, err := cl.Messages(ctx, x.session, client.MessageQuery{Limit: 1})
		if err != nil {
			return 0, err
		}
		why := x.compare(s, page.Entries)
		mark := b.live.green("ok   ")
		if why != "" {
			wrong++
			mark, why = b.live.red("WRONG"), " — "+why
		}
		fmt.Fprintf(b.app.out, "%s %-7s %s: %s%s\n              %s\n", mark, x.name, x.should, s.Outcome, why, short(says[x.session], 100))
	}
	return wrong, nil
}

// compare says what is not as it should be; "" when all is.
func (x *act) compare(s *client.Session, last []client.Entry) string {
	var class rouse.Class
	if len(last) > 0 && last[0].Info.Error != nil {
		class = last[0].Info.Error.Data.Class
	}
	switch {
	case s.State != string(rouse.Idle):
		return "it is " + s.State
	case s.Outcome != string(x.outcome):
		return "it should be " + string(x.outcome)
	case x.class != "" && class != x.class:
		return fmt.Sprintf("its class is %q and should be %q", class, x.class)
	case x.seenTry < x.retries:
		return fmt.Sprintf("%d retries were seen, of %d", x.seenTry, x.retries)
	case x.seenTool < x.tools:
		return fmt.Sprintf("%d tool calls were seen, of %d", x.seenTool, x.tools)
	case x.outcome == rouse.TurnCompleted && x.bytes == 0:
		return "no text was seen"
	}
	return ""
}
