package daemon

import (
	"cmp"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"rouse/internal/config"
	"rouse/internal/engine"
	"rouse/internal/engine/acp"
	"rouse/internal/proc"
)

// WithPrograms adds to paths what a configuration needs to know of agent
// programs: which ones have a name, and where programs are.
func WithPrograms(p config.Paths) config.Paths {
	for _, a := range acp.Known() {
		p.Programs = append(p.Programs, config.Program{Name: a.Name, Title: a.Title, Command: a.Command, Model: a.Model, Package: a.Package})
	}
	p.LookPath = proc.Find
	return p
}

// programs makes the engines of agent programs, as they are configured now.
type programs struct {
	cfg   *config.Store
	env   []string
	speed float64
	log   *slog.Logger

	mu      sync.Mutex
	engines map[string]program
}

type program struct {
	of     config.Program
	engine *acp.Engine
}

// engine gives the engine of a program by its name. It is made anew when the
// program's configuration changed; conversations go on with the old one.
func (p *programs) engine(name string) (engine.Engine, bool) {
	now, ok := p.cfg.Get().Program(name)
	if !ok {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.engines[name]
	if !ok || !reflect.DeepEqual(known.of, *now) {
		opt := acp.Options{Env: p.env, Log: p.log}
		if p.speed > 1 {
			opt.Grace = time.Duration(float64(30*time.Second) / p.speed)
		}
		known = program{*now, acp.New(agentOf(now), opt)}
		p.engines[name] = known
	}
	return known.engine, true
}

// agentOf is a program as the engine launches it: the ways of the known one, as
// far as the configuration does not change them.
func agentOf(p *config.Program) acp.Agent {
	a, _ := acp.Find(p.Extends)
	if a.Type == "" {
		a.Type = p.Name
	}
	a.Name, a.Title = p.Name, p.Title
	a.Command = slices.Clone(p.Command)
	if p.Path != "" {
		a.Command[0] = p.Path
	}
	a.Env = slices.Concat(p.Env, a.Env)
	a.Model, a.Mode, a.Shared = cmp.Or(p.Model, a.Model), cmp.Or(p.Mode, a.Mode), p.Shared
	if p.Plain {
		a.Diagnostics = nil
	}
	return a
}
