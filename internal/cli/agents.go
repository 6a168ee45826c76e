package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"rouse"
	"rouse/internal/client"
	"rouse/internal/config"
	"rouse/internal/daemon"
)

type agentsCmd struct {
	Name    []string `arg:"" optional:"" help:"Ask these agent programs only."`
	All     bool     `help:"Also agents for Rouse's own use."`
	NoProbe bool     `help:"List what is known without starting anything."`
	JSON    bool     `name:"json" help:"Print {agents, programs}."`
}

func (agentsCmd) Help() string {
	return `Lists the agents of Rouse's own loop (primary ones may be a session's agent,
sub-agents are started inside one) and the agent programs that can be a
session's agent. Each program that is installed is started, asked what it can
do, given a session and ended again; its model is not asked. That takes seconds.

Examples:
  rouse agents
  rouse agents claude
  rouse agents --no-probe --json | jq -r '.programs[] | select(.installed) | .name'`
}

// programSource is a server or, where none runs, this program.
type programSource struct {
	list  []client.Program
	probe func(name string) (rouse.ProgramReport, error)
	close func()
}

func (a *app) programs() (*programSource, error) {
	cl, err := a.client()
	if errors.Is(err, client.ErrNoServer) {
		return a.programsHere()
	}
	if err != nil {
		return nil, err
	}
	list, err := cl.Programs(a.ctx)
	if err != nil {
		cl.Close()
		return nil, err
	}
	return &programSource{list, func(name string) (rouse.ProgramReport, error) { return cl.ProbeProgram(a.ctx, name) }, func() { cl.Close() }}, nil
}

func (a *app) programsHere() (*programSource, error) {
	store, err := config.NewStore(func() (*config.Config, error) { return config.Load(a.paths()) })
	if err != nil {
		return nil, err
	}
	p := daemon.OpenPrograms(store)
	raw, err := json.Marshal(p.Rows())
	if err != nil {
		return nil, rouse.Wrap("cli: agents", err)
	}
	out := &programSource{probe: func(name string) (rouse.ProgramReport, error) { return p.Report(a.ctx, name) }, close: func() {}}
	return out, rouse.Wrap("cli: agents", json.Unmarshal(raw, &out.list))
}

// Run lists agents and asks programs.
func (c *agentsCmd) Run(a *app) error {
	cat, err := a.catalog()
	if err != nil {
		return err
	}
	src, err := a.programs()
	if err != nil {
		return err
	}
	defer src.close()
	for _, name := range c.Name {
		if !slices.ContainsFunc(src.list, func(p client.Program) bool { return p.Name == name }) {
			return usage("there is no agent program %q; see `rouse agents --no-probe`", name)
		}
	}
	if err := c.probe(a, src); err != nil {
		return err
	}
	own := []agentJSON{}
	for _, ag := range cat.Agents {
		if (c.All || !ag.Hidden) && !slices.ContainsFunc(src.list, func(p client.Program) bool { return p.Name == ag.Name && strings.HasPrefix(ag.Model, p.Provider) }) {
			own = append(own, ag)
		}
	}
	if c.JSON {
		return a.printJSON(map[string]any{"agents": own, "programs": src.list})
	}
	return c.print(a, own, src.list)
}

// asked bounds the programs that are started at once: each takes a core and
// hundreds of MB.
const asked = 3

// probe asks the programs that are installed, some at a time, and says of each
// what came of it as it comes.
func (c *agentsCmd) probe(a *app, src *programSource) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	free := make(chan struct{}, asked)
	for i := range src.list {
		p := &src.list[i]
		if c.NoProbe || !p.Installed || len(c.Name) > 0 && !slices.Contains(c.Name, p.Name) {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			r, err := src.probe(p.Name)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failed = errors.Join(failed, err)
			case r.Problem != "":
				a.notef("%s: %s", p.Name, short(r.Problem, 200))
				p.Report = &r
			default:
				a.notef("%s: works, version %s, %.1f s", p.Name, firstText(r.Version, "unknown"), float64(r.StartMS+r.SessionMS)/1000)
				p.Report = &r
			}
		})
	}
	all.Wait()
	return failed
}

func (c *agentsCmd) print(a *app, own []agentJSON, list []client.Program) error {
	if len(c.Name) == 0 {
		rows := make([][]string, len(own))
		for i, ag := range own {
			rows[i] = []string{ag.Name, ag.Mode, ag.Model, short(ag.Description, 80)}
		}
		if err := a.table([]string{"AGENT", "MODE", "MODEL", "WHAT FOR"}, rows); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	rows := [][]string{}
	for _, p := range list {
		if len(c.Name) == 0 || slices.Contains(c.Name, p.Name) {
			rows = append(rows, programCells(p))
		}
	}
	return a.table([]string{"PROGRAM", "VERSION", "STATE", "LOGIN", "MODEL", "MODELS", "RESUMES", "DIAGNOSTICS", "START", "MEM", "WHY"}, rows)
}

func programCells(p client.Program) []string {
	r := p.Report
	switch {
	case !p.Installed:
		return []string{p.Name, "", "not installed", "", "", "", "", "", "", "", p.Unusable}
	case r == nil:
		return []string{p.Name, "", "installed", "", "", "", "", "", "", "", ""}
	}
	state := "works"
	if r.Problem != "" {
		state = "fails"
	}
	login := map[string]string{"true": "yes", "false": "no"}[r.Authenticated]
	models := ""
	if len(r.Models) > 0 {
		models = fmt.Sprint(len(r.Models))
	}
	return []string{p.Name, r.Version, state, login, r.Model, models, r.Resume, r.Diagnostics,
		fmt.Sprintf("%.1f s", float64(r.StartMS+r.SessionMS)/1000), memory(r.Memory), short(r.Problem, 120)}
}
