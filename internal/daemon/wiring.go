package daemon

import (
	"context"
	"net/http"
	"strings"

	"rouse"
	"rouse/internal/api"
	"rouse/internal/config"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/engine/native"
	"rouse/internal/proc"
	"rouse/internal/session"
	"rouse/internal/store"
)

// models answers the lanes from the configuration as it is now.
type models struct{ cfg *config.Store }

// CheckModel says why a model cannot be used.
func (m models) CheckModel(ref rouse.ModelRef) error {
	_, err := m.cfg.Get().Resolve(ref)
	return err
}

// DefaultModel is zero where nothing can be used.
func (m models) DefaultModel() rouse.ModelRef {
	ref, err := m.cfg.Get().Default()
	if err != nil {
		return rouse.ModelRef{}
	}
	return ref
}

type agents struct{ cfg *config.Store }

// FindAgent finds an agent by name or alias.
func (a agents) FindAgent(name string) (session.Agent, error) {
	cfg := a.cfg.Get()
	found, ok := cfg.Agent(name)
	if !ok {
		_, err := cfg.SessionAgent(name)
		return session.Agent{}, err
	}
	return session.Agent{Name: found.Name, Primary: found.Mode != config.Subagent && !found.Hidden, Model: found.Model,
		Program: found.Program != ""}, nil
}

// engines gives the engine of a session by its name.
func (s *server) engines() func(string) (engine.Engine, error) {
	known := map[string]engine.Engine{"native": native.New(s.nativeDeps())}
	if s.opt.Drill {
		known["drill"] = drill.Engine{Speed: s.opt.DrillSpeed}
	}
	s.programs = newPrograms(s.cfg, s.opt.DrillSpeed, s.log, bootMark(s.boot.ID))
	s.programs.messages = func(ctx context.Context, id string, limit int) ([]rouse.Entry, error) {
		page, err := s.store.Messages(ctx, store.MessageQuery{SessionID: id, Limit: limit})
		return page.Entries, err
	}
	return func(name string) (engine.Engine, error) {
		e, ok := known[name]
		if !ok {
			e, ok = s.programs.engine(name)
		}
		if !ok {
			return nil, rouse.FieldError("engine", "engine", "there is no engine %q", rouse.Clip(name, 40))
		}
		return e, nil
	}
}

// release ends held orphans; nil outside of drills.
func (s *server) release() func(context.Context) (int, error) {
	if !s.opt.Drill {
		return nil
	}
	return func(ctx context.Context) (int, error) {
		s.holding.Store(false)
		n, err := s.lanes.Recover(ctx)
		s.lanes.KickQueued()
		return n, err
	}
}

// engineOf is the engine of a model: an agent program's or the drill engine's
// are chosen by it.
func engineOf(model rouse.ModelRef) string {
	if model.Provider == config.DrillEngine {
		return "drill"
	}
	if name, ok := strings.CutPrefix(model.Provider, config.ProgramProvider); ok {
		return name
	}
	if model.IsZero() {
		return ""
	}
	return "native"
}

// bootMark is in the environment of every process that a server starts for its
// sessions, so that the next one finds what a killed one left.
func bootMark(boot string) string { return "ROUSE_BOOT=" + boot }

// environment is what tools inside a session find about it.
func (s *server) environment(sessionID string) []string {
	env := []string{"ROUSE_SERVER=" + s.url, "ROUSE_SESSION=" + sessionID, bootMark(s.boot.ID)}
	if !s.opt.NoAuth {
		env = append(env, "ROUSE_TOKEN="+api.AgentToken(s.data.token, sessionID))
	}
	return env
}

// own puts Rouse's own API beside the wire.
func (s *server) own(wire http.Handler, directory string, closing <-chan struct{}) http.Handler {
	return api.New(api.Deps{Store: s.store, Feed: s.feed, Sessions: s.lanes, Config: s.cfg.Get, Directory: directory,
		Closing: closing, Drain: s.drain.start, Release: s.release(), Rescuer: s.medic, Watch: s.watch, Process: proc.LookTree, Programs: s.programs, Prompts: s.lanes, Log: s.log}, wire)
}
