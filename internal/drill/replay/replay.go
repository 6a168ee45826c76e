// Package replay plays a recording of an agent through the real engine and
// tells what the engine made of a prompt. The agent is a process of its own
// (drill.Player); its driver writes one recorded line after the other, waits
// until the engine has dealt with it, and sets the engine's clock to the
// recorded time. So the result does not depend on how fast the machine is.
package replay

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"rouse"
	"rouse/internal/drill/trace"
	"rouse/internal/engine"
	"rouse/internal/engine/acp"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// Options of Run.
type Options struct {
	// Trace is the recording, a .jsonl file.
	Trace string
	// Prompt is which prompt of the recording is told about, from 0.
	Prompt int
	// Until ends the replay at a recorded time; negative plays to its end, but
	// for a last kill of the agent, which was the recorder's own.
	Until time.Duration
	// Speed divides the recorded gaps; 0 leaves no gaps.
	Speed float64
	// Agent is the agent's type; "" is found in the recording.
	Agent string
	// Command is the launch line of a player of the recording in steps; the
	// arguments --step SOCKET TRACE are added to it.
	Command []string
}

// Result is what the engine made of the prompt.
type Result struct {
	Outcome        judge.Outcome  `json:"outcome"`
	Class          *string        `json:"class"` // null unless it failed
	Evidence       judge.Evidence `json:"evidence"`
	ToolOpen       bool           `json:"tool_open"`
	PermissionOpen bool           `json:"permission_open"`
	Genuine        int            `json:"genuine_events"`
	Noise          int            `json:"noise_events"`
	// LastGenuine is in the recording's milliseconds; null for none.
	LastGenuine *int64 `json:"last_genuine_event_ms"`
	ModelUsage  bool   `json:"model_usage_seen"`
	// DecidedMS is when the end was decided; null while the prompt is open.
	DecidedMS *int64 `json:"decided_ms"`
	// Failure is what a person would be told.
	Failure *rouse.Failure `json:"failure,omitempty"`
}

const op = "replay"

// zero is the engine's time at the recording's beginning. Any would do: times
// inside recorded lines are not held against it.
var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Run replays a recording. Errors are NotFound (no such recording or prompt)
// and Invalid (it cannot be played).
func Run(ctx context.Context, o Options) (Result, error) {
	tr, err := trace.Load(o.Trace)
	if err != nil {
		return Result{}, err
	}
	prompts := tr.Prompts()
	if o.Prompt < 0 || o.Prompt >= len(prompts) {
		return Result{}, rouse.FieldError(op, "prompt", "the recording has %d prompts, counted from 0; there is no prompt %d", len(prompts), o.Prompt)
	}
	if o.Until < 0 {
		o.Until = wholeOf(tr)
	}
	s, err := newStage(ctx, o, tr)
	if err != nil {
		return Result{}, err
	}
	defer s.close()
	if err := s.play(); err != nil {
		return Result{}, err
	}
	return s.result()
}

// wholeOf is the time of a recording's last event that is not the recorder's
// own end of the agent: a signal, or the exit of an agent whose input closed.
func wholeOf(tr *trace.Trace) time.Duration {
	for i := len(tr.Events) - 1; i >= 0; i-- {
		if e := tr.Events[i]; e.Kind != trace.Exit || e.Signal == "" && e.Code > 0 {
			return e.At
		}
	}
	return 0
}

// agentOf is the agent of a recording: the one that is named, else the one that
// its answer to initialize names, else the one of its folder.
func agentOf(o Options, tr *trace.Trace) acp.Agent {
	name := o.Agent
	if name == "" {
		name = reported(tr)
	}
	if name == "" {
		folder := filepath.Base(filepath.Dir(o.Trace))
		for i := 1; i < len(folder); i++ {
			if folder[i-1] == '-' && folder[i] >= '0' && folder[i] <= '9' {
				folder = folder[:i-1]
			}
		}
		name = strings.TrimSuffix(strings.TrimSuffix(folder, "-acp"), "-agent")
	}
	a, known := acp.Find(name)
	if !known {
		a = acp.Agent{Name: name, Title: name, Type: name}
	}
	// Only what the recorder's client did is done again.
	a.Auth, a.Mode, a.Meta, a.Env, a.Set, a.Diagnostics, a.Model = nil, "", nil, nil, nil, nil, ""
	return a
}

// reported is the type of the agent that answered initialize; "" when nobody
// did.
func reported(tr *trace.Trace) string {
	for _, e := range tr.Events {
		if e.Kind != trace.Agent || e.Message == nil || e.Message.Result == nil {
			continue
		}
		name := strings.ToLower(wire.Text(wire.At(e.Message.Result, "agentInfo", "name")))
		for _, known := range acp.Known() {
			if strings.Contains(name, known.Name) {
				return known.Name
			}
		}
		return name
	}
	return ""
}

// result tells what became of the prompt.
func (s *stage) result() (Result, error) {
	v, ok := s.verdict()
	if !ok {
		return Result{}, rouse.Errorf(rouse.Invalid, op, "The prompt was not reached: it was sent at %d ms of the recording.",
			s.tr.Events[s.tr.Prompts()[s.o.Prompt].Event].At.Milliseconds())
	}
	r := resultOf(v)
	if v.Outcome == judge.Failed {
		r.Failure = s.failure()
	}
	return r, nil
}

// resultOf is a verdict in the recording's terms.
func resultOf(v judge.Verdict) Result {
	r := Result{Outcome: v.Outcome, Evidence: v.Evidence, ToolOpen: len(v.ToolOpen) > 0, PermissionOpen: len(v.PermissionOpen) > 0,
		Genuine: v.Genuine, Noise: v.Noise, LastGenuine: ms(v.LastGenuine), ModelUsage: v.ModelUsageSeen, DecidedMS: ms(v.DecidedAt)}
	if v.Outcome == judge.Failed {
		class := string(v.Class)
		if v.Class == rouse.ClassNone {
			class = "unknown"
		}
		r.Class = &class
	}
	return r
}

// ms is a time in the recording's milliseconds; nil for none.
func ms(at time.Time) *int64 {
	if at.IsZero() {
		return nil
	}
	n := at.Sub(zero).Milliseconds()
	return &n
}

// generation is a prompt's, by its place in the recording.
func generation(prompt int) uint64 { return uint64(prompt) + 1 }

var _ engine.Sink = (*sink)(nil)
