package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"rouse"
	"rouse/internal/client"
)

// Stage is the server that a scenario plays on, with drill engine, provider and
// a clock that runs Speed times faster.
type Stage interface {
	Client() *client.Client
	// Restart stops the server and starts it again on the same data.
	Restart(ctx context.Context) error
	Work() string // a directory for sessions
	Speed() int
}

// Check is one thing that was to be seen, and what was seen through the public
// API. Seq is the event of the log that shows it; 0 for what is no event.
type Check struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Seq  int64  `json:"seq"`
}

// Report is how a scenario went.
type Report struct {
	Scenario string  `json:"scenario"`
	OK       bool    `json:"ok"`
	Session  string  `json:"session"`
	Checks   []Check `json:"checks"`
}

// Scenario is a play with an expected course.
type Scenario struct {
	Name, What string
	play       func(*play) error
	// Apart says that the stage must be a Sleeper.
	Apart bool
}

// Play plays a scenario on a stage. The error is of the stage: a check that
// fails is in the report.
func (s Scenario) Play(ctx context.Context, stage Stage) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, scenarioLimit)
	defer cancel()
	p := &play{ctx: ctx, stage: stage, moved: make(chan struct{})}
	p.report.Scenario = s.Name
	follow := p.follow()
	defer follow()
	err := s.play(p)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		p.expect("ends in time", "yes", "no, after "+scenarioLimit.String(), 0)
		err = nil
	}
	p.report.OK = err == nil && len(p.report.Checks) > 0
	for _, c := range p.report.Checks {
		p.report.OK = p.report.OK && c.Want == c.Got
	}
	return p.report, err
}

const scenarioLimit = 90 * time.Second

// play is a scenario under way.
type play struct {
	ctx    context.Context
	stage  Stage
	report Report

	mu    sync.Mutex
	log   []client.LogEvent
	moved chan struct{} // closed and replaced with each event
}

// follow reads the log from now on, also across restarts, until the returned
// function is called.
func (p *play) follow() (stop func()) {
	ctx, cancel := context.WithCancel(p.ctx)
	done := make(chan struct{})
	go func() { // waited for by stop
		defer close(done)
		for ctx.Err() == nil {
			// A broken connection is a restart: it goes on behind the last event.
			_ = p.stage.Client().Log(ctx, p.last(), func(e client.LogEvent) error {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.log = append(p.log, e)
				close(p.moved)
				p.moved = make(chan struct{})
				return nil
			})
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (p *play) last() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.log) == 0 {
		return 0
	}
	return p.log[len(p.log)-1].Seq
}

// until waits for an event of a session; from is the log's length to look from.
func (p *play) until(session string, match func(client.LogEvent) bool) (client.LogEvent, error) {
	for from := 0; ; {
		p.mu.Lock()
		for ; from < len(p.log); from++ {
			if e := p.log[from]; e.Session == session && match(e) {
				p.mu.Unlock()
				return e, nil
			}
		}
		moved := p.moved
		p.mu.Unlock()
		select {
		case <-moved:
		case <-p.ctx.Done():
			return client.LogEvent{}, context.Cause(p.ctx)
		}
	}
}

// count says how many events of a session match so far.
func (p *play) count(session string, match func(client.LogEvent) bool) (n int, last int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.log {
		if e.Session == session && match(e) {
			n++
			last = e.Seq
		}
	}
	return n, last
}

func (p *play) expect(name, want, got string, seq int64) {
	p.report.Checks = append(p.report.Checks, Check{name, want, got, seq})
}

// session makes one; the first is the report's.
func (p *play) session() (string, error) {
	s, _, err := p.stage.Client().Create(p.ctx, client.NewSession{Directory: p.stage.Work(), Title: p.report.Scenario})
	if err != nil {
		return "", err
	}
	if p.report.Session == "" {
		p.report.Session = s.ID
	}
	return s.ID, nil
}

// prompt sends text to a model: a mode of the drill engine, or "drill/…".
func (p *play) prompt(session, model, text string) (client.Accepted, error) {
	ref := rouse.ModelRef{Provider: "drill-engine", Model: model}
	if given, err := rouse.ParseModelRef(model); err == nil {
		ref = given
	}
	return p.stage.Client().PromptAsync(p.ctx, session, client.Prompt{Model: ref, Parts: []client.PartInput{{Type: "text", Text: text}}})
}

// begin makes a session and sends it one prompt.
func (p *play) begin(model string) (session string, acc client.Accepted, err error) {
	return p.beginWith(model, "drill")
}

// turn waits for an event of one turn.
func (p *play) turn(session, turn, kind string) (client.LogEvent, error) {
	return p.until(session, func(e client.LogEvent) bool { return e.Type == kind && e.Turn == turn })
}

// ends waits for the end of a turn and checks its state.
func (p *play) ends(name, session, turn, want string) error {
	e, err := p.turn(session, turn, "rouse.turn.settled")
	if err == nil {
		p.expect(name, want, e.State, e.Seq)
	}
	return err
}

// verdict waits until the watch says a code.
func (p *play) verdict(session, code string) error {
	e, err := p.until(session, isVerdict(code))
	if err == nil {
		p.expect("verdict "+code, code, code, e.Seq)
	}
	return err
}

func isVerdict(code string) func(client.LogEvent) bool {
	return func(e client.LogEvent) bool {
		var v struct{ Code string }
		return e.Type == "rouse.verdict" && json.Unmarshal(e.Data, &v) == nil && v.Code == code
	}
}

func isType(kind string) func(client.LogEvent) bool {
	return func(e client.LogEvent) bool { return e.Type == kind }
}

// never checks that something did not happen so far.
func (p *play) never(name, session string, match func(client.LogEvent) bool) {
	n, seq := p.count(session, match)
	p.expect(name, "0", fmt.Sprint(n), seq)
}

// state checks what the session says of itself.
func (p *play) state(name, session, want string) error {
	s, err := p.stage.Client().Session(p.ctx, session)
	if err == nil {
		p.expect(name, want, s.State, 0)
	}
	return err
}

// wait lets scaled time pass.
func (p *play) wait(d time.Duration) error {
	select {
	case <-time.After(d / time.Duration(p.stage.Speed())):
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}
