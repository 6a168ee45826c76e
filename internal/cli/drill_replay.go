package cli

import (
	"fmt"
	"os"
	"time"

	"rouse"
	"rouse/internal/drill/replay"
)

type drillReplay struct {
	Trace  string  `arg:"" help:"The recording, a .jsonl file; its .stderr.txt stands beside it."`
	Prompt int     `default:"0" placeholder:"N" help:"Which prompt of the recording to tell about, from 0."`
	Until  int64   `default:"-1" placeholder:"MS" help:"Judge only what came until this time of the recording, in milliseconds; the default is all of it but a last exit, which was the recorder's own doing."`
	Speed  float64 `default:"0" placeholder:"N" help:"Leave the recorded gaps, divided by N; the default leaves none. The result is the same."`
	Agent  string  `placeholder:"TYPE" help:"The agent's type (opencode, claude …); the default is found in the recording."`
	JSON   bool    `name:"json" help:"Print one JSON line."`
}

func (drillReplay) Help() string {
	return `Plays a recording of an agent, as a process of its own, through Rouse's engine and
says what the engine made of one of its prompts: how the turn ended, by which
evidence, and what was seen until then. Times are the recording's.

Examples:
  rouse drill replay traces/opencode-1.18.33/quota.jsonl
  rouse drill replay --prompt 1 --until 42000 --json double.jsonl`
}

// The bounds of what can be asked for: a speed beyond them plays nothing that
// anybody could tell apart, and no recording is as long as a year.
const (
	slowest, fastest = 0.01, 1_000_000
	longest          = 365 * 24 * time.Hour
)

// check refuses values that mean nothing.
func (c *drillReplay) check() error {
	switch {
	case c.Prompt < 0:
		return usage("--prompt %d: prompts are counted from 0", c.Prompt)
	case c.Speed != 0 && !(c.Speed >= slowest && c.Speed <= fastest): // NaN is neither
		return usage("--speed %v: use %v to %d, or 0 for no gaps at all", c.Speed, slowest, int(fastest))
	case c.Until < -1 || c.Until > longest.Milliseconds():
		return usage("--until %d: use a time of the recording in milliseconds, or -1 for all of it", c.Until)
	}
	return nil
}

// Run replays a recording.
func (c *drillReplay) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return &rouse.Error{Kind: rouse.Internal, Op: "cli: replay", Msg: "This program's own file was not found.", Err: err}
	}
	r, err := replay.Run(a.ctx, replay.Options{Trace: c.Trace, Prompt: c.Prompt, Until: time.Duration(c.Until) * time.Millisecond, Speed: c.Speed,
		Agent: c.Agent, Command: []string{self, "drill", "agent"}})
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(r)
	}
	class := ""
	if r.Class != nil {
		class = " (" + *r.Class + ")"
	}
	fmt.Fprintf(a.out, "%s%s, by %s\n", r.Outcome, class, r.Evidence)
	if r.Failure != nil && r.Failure.Message != "" {
		fmt.Fprintf(a.out, "  %s\n", safe(r.Failure.Message))
	}
	if r.DecidedMS != nil {
		fmt.Fprintf(a.out, "  decided at %d ms\n", *r.DecidedMS)
	}
	last := "never"
	if r.LastGenuine != nil {
		last = fmt.Sprintf("%d ms", *r.LastGenuine)
	}
	fmt.Fprintf(a.out, "  %d genuine events, the last at %s; %d of noise\n", r.Genuine, last, r.Noise)
	fmt.Fprintf(a.out, "  tool open: %v, permission open: %v, use of a model seen: %v\n", r.ToolOpen, r.PermissionOpen, r.ModelUsage)
	return nil
}
