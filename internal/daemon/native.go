package daemon

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"rouse"
	"rouse/internal/config"
	"rouse/internal/engine/native"
	"rouse/internal/provider"
	"rouse/internal/session"
)

// nativeDeps connects Rouse's own loop to configuration, store and lanes.
func (s *server) nativeDeps() native.Deps {
	m := &nativeModels{cfg: s.cfg}
	return native.Deps{
		Transcript: s.store.Transcript,
		Model:      m.resolve,
		Small:      func(ref rouse.ModelRef) rouse.ModelRef { return s.cfg.Get().Small(ref) },
		Agent: func(name string) (native.Agent, bool) {
			a, ok := s.cfg.Get().Agent(name)
			if !ok {
				return native.Agent{}, false
			}
			return nativeAgent(a), true
		},
		Subagents: func() (out []native.Agent) {
			for _, a := range s.cfg.Get().Agents {
				if a.Mode != config.Primary && !a.Hidden {
					out = append(out, nativeAgent(a))
				}
			}
			return out
		},
		Spawn:      s.spawnChild,
		Depth:      s.depth,
		ListModels: func(context.Context) (string, error) { return modelList(s.cfg.Get()), nil },
		Todos:      s.store.Todos,
		MaxSteps:   s.cfg.Get().Limits.Steps,
		Log:        s.log,
	}
}

// nativeModels keeps one client per configured provider.
type nativeModels struct {
	cfg *config.Store

	mu      sync.Mutex
	of      *config.Config // the configuration that the clients are of
	clients map[*config.Provider]*provider.Client
}

func (n *nativeModels) resolve(ref rouse.ModelRef) (native.Model, error) {
	cfg := n.cfg.Get()
	m, err := cfg.Resolve(ref)
	if err != nil {
		return native.Model{}, err
	}
	client, err := n.client(cfg, m.Provider)
	if err != nil {
		return native.Model{}, err
	}
	out := native.Model{
		Ref: ref, APIID: m.APIID, Client: client, Context: m.Limit.Context, Output: m.Limit.Output,
		Price:   provider.Price{Input: m.Cost.Input, Output: m.Cost.Output, CacheRead: m.Cost.CacheRead, CacheWrite: m.Cost.CacheWrite},
		Options: m.Params(ref.Variant), NoTools: !m.ToolCall, NoTemperature: !m.Temperature, Drill: m.Provider.Drill,
	}
	for k, v := range m.Headers {
		if out.Header == nil {
			out.Header = http.Header{}
		}
		out.Header.Set(k, v)
	}
	if m.Provider.Drill && m.ID == "stalled" {
		out.IdleTimeout = stalledAfter
	}
	return out, nil
}

func (n *nativeModels) client(cfg *config.Config, p *config.Provider) (*provider.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of != cfg { // reloaded: other addresses and keys
		n.of, n.clients = cfg, map[*config.Provider]*provider.Client{}
	}
	if c := n.clients[p]; c != nil {
		return c, nil
	}
	c, err := provider.New(provider.Config{ID: p.ID, Wire: p.Wire, BaseURL: p.BaseURL, Key: p.Key, Headers: p.Headers,
		IdleTimeout: p.StreamIdleTimeout})
	if err == nil {
		n.clients[p] = c
	}
	return c, err
}

func nativeAgent(a *config.Agent) native.Agent {
	return native.Agent{Name: a.Name, Description: a.Description, Prompt: a.Prompt, Subagent: a.Mode != config.Primary && !a.Hidden,
		Model: a.Model, Rules: a.Rules, Tools: a.Tools, Steps: a.Steps, Temperature: a.Temperature, Options: withTopP(a)}
}

// withTopP adds the agent's top_p to its options, under the wire's name.
func withTopP(a *config.Agent) map[string]json.RawMessage {
	if a.TopP == nil {
		return a.Options
	}
	out := map[string]json.RawMessage{}
	for k, v := range a.Options {
		out[k] = v
	}
	raw, err := json.Marshal(*a.TopP)
	if err == nil {
		out["top_p"] = raw
	}
	return out
}

func (s *server) spawnChild(ctx context.Context, r native.SpawnRequest) (native.SpawnResult, error) {
	out, err := s.lanes.Spawn(ctx, session.Child{ParentSession: r.ParentSession, Resume: r.Resume, Agent: r.Agent, Title: r.Title,
		Prompt: r.Prompt, Model: r.Model, Unattended: r.Unattended, Started: r.Started, Progress: r.Progress})
	return native.SpawnResult{SessionID: out.SessionID, State: out.State, Text: out.Text, Failure: out.Failure}, err
}

// depth counts a session's parents.
func (s *server) depth(ctx context.Context, sessionID string) (int, error) {
	for n := 0; ; n++ {
		row, err := s.store.Session(ctx, sessionID)
		if err != nil || row.ParentID == "" {
			return n, err
		}
		sessionID = row.ParentID
	}
}

// modelList is what the list_models tool says.
func modelList(cfg *config.Config) string {
	var b strings.Builder
	for _, p := range cfg.Providers {
		if p.Unusable != "" {
			b.WriteString(p.ID + ": cannot be used: " + p.Unusable + "\n")
			continue
		}
		for _, m := range p.Models {
			b.WriteString(m.Ref().String() + "\n")
		}
	}
	return b.String()
}
