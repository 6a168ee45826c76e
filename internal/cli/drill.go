package cli

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"rouse"
	"rouse/internal/crash"
	"rouse/internal/drill"
)

type drillCmd struct {
	Tour     drillTour     `cmd:"" help:"Show what a server tells about good and bad sessions."`
	Run      drillRun      `cmd:"" name:"run" help:"Play scenarios and compare what was to be seen with what was."`
	Replay   drillReplay   `cmd:"" help:"Play a recording of an agent and say what the engine made of it."`
	Record   drillRecord   `cmd:"" help:"Write down, neutralised, what an agent and its client say to each other."`
	Provider drillProvider `cmd:"" help:"Serve the simulated provider to other programs."`
	Agent    drillAgent    `cmd:"" hidden:"" help:"Be a recorded agent program."`
	Points   drillPoints   `cmd:"" help:"List the points at which a server can be made to crash."`
}

func (drillCmd) Help() string {
	return `The drill is a provider whose models fail on command, in every way that real
ones do: ` + strings.Join(drill.Models(), ", ") + `.`
}

type drillProvider struct {
	Host string `default:"127.0.0.1" help:"Address to bind."`
	Port int    `short:"p" default:"0" help:"Port to bind; 0 lets the system choose."`
	JSON bool   `name:"json" help:"Print one JSON line {url, models, pid} when requests are accepted."`
}

func (drillProvider) Help() string {
	return `Speaks OpenAI's chat completions (/v1/chat/completions) and responses
(/v1/responses), Anthropic's messages (/v1/messages) and Google's
streamGenerateContent (/v1beta/models/MODEL:…), and asks for no key. A directive
in the prompt changes what a model does, or plays another model:
[[drill tokens=500 rate=0 cmd="go test" delay=2s reset=10s]], [[drill model=quota]].

Example:
  rouse drill provider --port 18080`
}

// Run serves until Ctrl-C.
func (c *drillProvider) Run(a *app) error {
	if c.Port < 0 || c.Port > 65535 {
		return usage("--port %d: use 0 to 65535", c.Port)
	}
	addr := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	var said error
	err := drill.Serve(a.ctx, addr, drill.Options{}, func(base string) {
		if c.JSON {
			said = a.printJSON(struct {
				URL    string   `json:"url"`
				Models []string `json:"models"`
				PID    int      `json:"pid"`
			}{base, drill.Models(), os.Getpid()})
			return
		}
		_, said = fmt.Fprintf(a.out, "drill provider at %s\n  models %s\n", base, strings.Join(drill.Models(), ", "))
	})
	if err != nil && a.ctx.Err() == nil {
		return &exit{exitUsage, &rouse.Error{Kind: rouse.Invalid, Op: "drill", Err: err,
			Msg: "cannot listen on " + addr + ": it is in use or not allowed; use another --port, or --port 0 for any free one"}}
	}
	return rouse.Wrap("cli: print", said)
}

type drillPoints struct {
	JSON bool `name:"json" help:"Print a JSON array."`
}

func (drillPoints) Help() string {
	return `A server started with ROUSE_CRASH_AT=<point>[:n] kills itself at the n-th passing
of that point: what it answered before must hold after the next start.

Example:
  ROUSE_CRASH_AT=settle.before rouse serve --drill --data crash-data`
}

// Run lists them.
func (c *drillPoints) Run(a *app) error {
	if c.JSON {
		return a.printJSON(crash.Points())
	}
	_, err := fmt.Fprintln(a.out, strings.Join(crash.Points(), "\n"))
	return rouse.Wrap("cli: print", err)
}
