// Package native is Rouse's own agent loop: it calls the model, runs the tools
// that the model asks for, and goes on until the model is done. It retries
// visibly and bounded, compacts a conversation that became too long once, and
// asks a person where the permission rules say so.
//
// The package knows no store and no configuration: what it needs of them is in
// Deps.
package native

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/provider"
)

// Model is a model ready to be called.
type Model struct {
	Ref    rouse.ModelRef
	APIID  string // as the provider knows it; "" is Ref.Model
	Client *provider.Client
	// Context and Output are limits in tokens; 0 is unknown.
	Context, Output int64
	Price           provider.Price
	// Effort is the reasoning variant, where the wire has a field for it;
	// Options are fields of the request's body.
	Effort  string
	Options map[string]json.RawMessage
	Header  http.Header
	// NoTools and NoTemperature say what must not be sent to it.
	NoTools, NoTemperature bool
	// IdleTimeout ends an attempt after so long without a byte, instead of the
	// provider's own timeout; 0 leaves that.
	IdleTimeout time.Duration
	// Drill: the simulated provider, which is told turn and purpose.
	Drill bool
}

// Agent is a way of working.
type Agent struct {
	Name        string
	Description string
	Prompt      string // "" is the engine's own
	Subagent    bool   // may be started by the task tool
	Model       rouse.ModelRef
	Rules       []rouse.PermissionRule
	Tools       map[string]bool // false switches a tool off
	Steps       int             // most model calls of a turn; 0: Deps.MaxSteps
	Temperature *float64
	Options     map[string]json.RawMessage
}

// SpawnRequest asks for a sub-agent's work in a session of its own.
type SpawnRequest struct {
	ParentSession string
	Resume        string // an earlier child to go on with; "" makes one
	Agent         string
	Title         string
	Prompt        string
	Model         rouse.ModelRef
	Unattended    bool
	// Started hears the child's session id before it works, Progress each time
	// it moved.
	Started  func(sessionID string)
	Progress func()
}

// SpawnResult is how a sub-agent ended.
type SpawnResult struct {
	SessionID string
	State     rouse.TurnState
	Text      string // its last answer
	Failure   *rouse.Failure
}

// Deps is what the loop stands on. Transcript, Model and Agent are required;
// a tool whose function is missing is not offered.
type Deps struct {
	// Transcript gives the session's messages up to a generation, oldest
	// first, ordered by generation, time and id. It may leave out what comes
	// before the last summary.
	Transcript func(ctx context.Context, sessionID string, generation uint64) ([]rouse.Entry, error)
	// Model resolves a model; an error is Invalid and safe to show.
	Model func(ref rouse.ModelRef) (Model, error)
	// Small names the model for titles beside ref; nil: ref itself.
	Small func(ref rouse.ModelRef) rouse.ModelRef
	// Agent finds an agent; "" is the default one.
	Agent func(name string) (Agent, bool)
	// Subagents lists who may be started by the task tool.
	Subagents func() []Agent
	Spawn     func(ctx context.Context, r SpawnRequest) (SpawnResult, error)
	// Depth is how many parents a session has; nil: 1 for a session with one.
	Depth func(ctx context.Context, sessionID string) (int, error)
	// ListModels is the text that the list_models tool gives.
	ListModels func(ctx context.Context) (string, error)
	Todos      func(ctx context.Context, sessionID string) ([]rouse.Todo, error)
	// MaxSteps bounds the model calls of a turn whose agent names no bound;
	// default 500.
	MaxSteps int
	Log      *slog.Logger // nil: slog.Default
}

// Engine is the native engine. It is safe for concurrent use.
type Engine struct{ deps Deps }

var _ engine.Engine = (*Engine)(nil)

// New makes an engine.
func New(d Deps) *Engine {
	if d.MaxSteps <= 0 {
		d.MaxSteps = 500
	}
	if d.Log == nil {
		d.Log = slog.Default()
	}
	return &Engine{deps: d}
}

// Open makes a conversation; it starts nothing.
func (e *Engine) Open(_ context.Context, spec engine.Spec, sink engine.Sink) (engine.Conversation, error) {
	if spec.Directory == "" {
		return nil, rouse.Errorf(rouse.Invalid, "native: open", "the session has no directory")
	}
	c := &conversation{deps: &e.deps, spec: spec, sink: sink, asks: map[string]*ask{}, seen: map[string]fileStamp{}}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c, nil
}
