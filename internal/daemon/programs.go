package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"rouse"
	"rouse/internal/api"
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
	cfg *config.Store
	// messages gives the newest messages of a session; nil knows none.
	messages func(ctx context.Context, sessionID string, limit int) ([]rouse.Entry, error)
	env      []string
	speed    float64
	log      *slog.Logger

	mu      sync.Mutex
	engines map[string]program
	reports map[string]rouse.ProgramReport
}

// newPrograms makes the engines' keeper; env is added to each process.
func newPrograms(cfg *config.Store, speed float64, log *slog.Logger, env ...string) *programs {
	return &programs{cfg: cfg, env: env, speed: speed, log: log, engines: map[string]program{}, reports: map[string]rouse.ProgramReport{}}
}

// Programs asks the programs of a configuration where no server runs.
type Programs struct{ p *programs }

// OpenPrograms makes one; nothing is started before Report.
func OpenPrograms(cfg *config.Store) Programs {
	return Programs{newPrograms(cfg, 0, slog.New(slog.DiscardHandler))}
}

// Rows describes them as GET /rouse/v1/agents does.
func (p Programs) Rows() []api.ProgramRow { return api.ProgramRows(p.p.cfg.Get(), nil) }

// Report asks one, as the server does.
func (p Programs) Report(ctx context.Context, name string) (rouse.ProgramReport, error) {
	return p.p.Report(ctx, name)
}

type program struct {
	of     config.Program
	engine *acp.Engine
}

// engine gives the engine of a program by its name. It is made anew when the
// program's configuration changed; conversations go on with the old one.
func (p *programs) engine(name string) (engine.Engine, bool) {
	e, ok := p.acp(name)
	return e, ok
}

// Report asks a program what it can do, and remembers it.
func (p *programs) Report(ctx context.Context, name string) (rouse.ProgramReport, error) {
	e, ok := p.acp(name)
	if !ok {
		return rouse.ProgramReport{}, rouse.Errorf(rouse.NotFound, "daemon: program", "there is no agent program %q", rouse.Clip(name, 80))
	}
	if now, ok := p.cfg.Get().Program(name); ok && now.Path == "" {
		r := rouse.ProgramReport{Authenticated: "unknown", Diagnostics: "unsupported", Models: []string{}, Modes: []string{}, Problem: now.Unusable(), At: time.Now().UTC()}
		return r, nil
	}
	r, err := e.Report(ctx)
	if err != nil {
		return r, rouse.Wrap("daemon: program", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports[name] = r
	return r, nil
}

// Reports are the latest ones.
func (p *programs) Reports() map[string]rouse.ProgramReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.reports)
}

func (p *programs) acp(name string) (*acp.Engine, bool) {
	now, ok := p.cfg.Get().Program(name)
	if !ok {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.engines[name]
	if !ok || !reflect.DeepEqual(known.of, *now) {
		opt := acp.Options{Idle: now.Idle, Version: rouse.Version, Env: p.env, Log: p.log, Messages: p.messages, Rules: func() []rouse.PermissionRule { return p.cfg.Get().Permission }}
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
	a.Set = p.Env
	a.Model, a.Mode, a.Shared = cmp.Or(p.Model, a.Model), cmp.Or(p.Mode, a.Mode), p.Shared
	if p.Plain {
		a.Diagnostics = nil
	}
	return a
}
