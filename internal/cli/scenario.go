package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"rouse"
	"rouse/internal/client"
	"rouse/internal/daemon"
	"rouse/internal/drill"
)

type drillRun struct {
	Scenario []string `arg:"" optional:"" help:"Scenarios to play; rouse drill run --list shows them."`
	All      bool     `help:"Play all of them."`
	List     bool     `help:"List the scenarios."`
	Speed    int      `default:"100" help:"How many times faster the clocks of watch and ladder run."`
	JSON     bool     `name:"json" help:"Print a JSON line per scenario: {scenario, ok, session, checks:[{name, want, got, seq}]}."`
}

func (drillRun) Help() string {
	return `Plays scenarios on a server of its own in a temporary folder, with the real
engine interface, database, watch and HTTP API, and compares what was to be seen
with what the public API shows. Exit code 1 if something differs.

Examples:
  rouse drill run hang
  rouse drill run --all --json`
}

// Run plays.
func (c *drillRun) Run(a *app) error {
	all := drill.Scenarios()
	if c.List {
		return c.list(a, all)
	}
	chosen, err := c.choose(all)
	if err != nil {
		return err
	}
	failed := 0
	for _, s := range chosen {
		r, err := c.play(a, s)
		if err != nil {
			return err
		}
		if !r.OK {
			failed++
		}
		if c.JSON {
			err = a.printJSON(r)
		} else {
			err = show(a, s, r)
		}
		if err != nil {
			return err
		}
	}
	if failed > 0 {
		return &exit{exitInternal, rouse.Errorf(rouse.Internal, "drill", "%d of %d scenarios did not go as they should", failed, len(chosen))}
	}
	return nil
}

func (c *drillRun) list(a *app, all []drill.Scenario) error {
	if c.JSON {
		names := make([]map[string]string, len(all))
		for i, s := range all {
			names[i] = map[string]string{"scenario": s.Name, "what": s.What}
		}
		return a.printJSON(names)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\n", s.Name, s.What)
	}
	return rouse.Wrap("cli: print", w.Flush())
}

func (c *drillRun) choose(all []drill.Scenario) (chosen []drill.Scenario, err error) {
	if c.Speed < 1 || c.Speed > 1000 {
		return nil, usage("--speed %d: use 1 to 1000", c.Speed)
	}
	if c.All {
		return all, nil
	}
	if len(c.Scenario) == 0 {
		return nil, usage("name a scenario, or use --all; --list shows them")
	}
	for _, name := range c.Scenario {
		found := false
		for _, s := range all {
			if s.Name == name {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, usage("there is no scenario %q; --list shows them", name)
		}
	}
	return chosen, nil
}

// play gives a scenario a stage of its own.
func (c *drillRun) play(a *app, s drill.Scenario) (r drill.Report, err error) {
	dir, remove, err := a.leaving.temporary("rouse-drill-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var st house = &stage{a: a, dir: dir, speed: c.Speed}
	if s.Apart {
		st = &apart{dir: dir, speed: c.Speed, leaving: a.leaving}
	}
	if err := os.Mkdir(st.Work(), 0o755); err != nil {
		return r, rouse.Wrap("drill", err)
	}
	if err := st.start(a.ctx); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, st.stop()) }()
	return s.Play(a.ctx, st)
}

// house is a stage with what happens before and after the play.
type house interface {
	drill.Stage
	start(ctx context.Context) error
	stop() error
}

func show(a *app, s drill.Scenario, r drill.Report) error {
	mark := map[bool]string{true: "ok  ", false: "FAIL"}
	fmt.Fprintf(a.out, "%s  %-18s %s\n", mark[r.OK], s.Name, s.What)
	for _, ck := range r.Checks {
		if ck.Want != ck.Got {
			fmt.Fprintf(a.out, "      %s: want %s, got %s\n", ck.Name, ck.Want, ck.Got)
		}
	}
	var names []string
	for _, ck := range r.Checks {
		names = append(names, ck.Name)
	}
	_, err := fmt.Fprintf(a.out, "      seen: %s\n", strings.Join(names, ", "))
	return rouse.Wrap("cli: print", err)
}

// stage is a server in this process that can be started again.
type stage struct {
	a      *app
	dir    string
	speed  int
	server *embedded
	client *client.Client
}

func (s *stage) Client() *client.Client { return s.client }
func (s *stage) Work() string           { return filepath.Join(s.dir, "project") }
func (s *stage) Speed() int             { return s.speed }

// Restart stops the server and starts it on the same folder and port.
func (s *stage) Restart(ctx context.Context) error {
	if err := s.server.close(); err != nil {
		return err
	}
	return s.serve(ctx, portOf(s.server.ready.URL))
}

func (s *stage) start(ctx context.Context) (err error) {
	if err := s.serve(ctx, 0); err != nil {
		return err
	}
	s.client, err = client.New(s.server.ready.URL, s.server.ready.Token)
	return err
}

func (s *stage) serve(ctx context.Context, port int) (err error) {
	paths := s.a.paths()
	paths.Explicit, paths.Own, paths.OpenCode, paths.Accounts = "", []string{filepath.Join(s.dir, "rouse.jsonc")}, nil, nil
	s.server, err = startEmbedded(ctx, daemon.Options{Paths: paths, Host: "127.0.0.1", Port: port, Data: filepath.Join(s.dir, "data"),
		Drill: true, DrillSpeed: float64(s.speed), Logger: s.a.quiet()})
	return err
}

func (s *stage) stop() error {
	s.client.Close()
	return s.server.close()
}
