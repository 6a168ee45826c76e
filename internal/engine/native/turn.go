package native

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/provider"
)

// turn answers one prompt. Its methods run on Prompt's goroutine; those that
// tools call say so.
type turn struct {
	c     *conversation
	ctx   context.Context
	p     rouse.Prompt
	agent Agent
	model Model

	system    []string
	messages  []provider.Message
	tools     []tool
	schema    json.RawMessage // of a structured answer; nil when none is wanted
	nudges    int             // how often it may still be asked for
	stepKind  engine.StepStarted
	stepOpen  bool // StepStarted was sent, StepEnded was not
	compacted bool
	usage     rouse.Usage

	mu   sync.Mutex
	open map[string]bool // tool calls that were started and not ended
}

// send reports an update of this turn. Tools call it too.
func (t *turn) send(body engine.Body, genuine bool, bytes int) {
	t.c.send(t.ctx, engine.Update{Generation: t.p.Generation, At: time.Now(), Genuine: genuine, Bytes: bytes, Body: body})
}

// sendLast reports what must arrive although the turn is being cancelled.
func (t *turn) sendLast(body engine.Body) {
	t.c.send(context.WithoutCancel(t.ctx), engine.Update{Generation: t.p.Generation, At: time.Now(), Genuine: true, Body: body})
}

func (t *turn) openTools() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.open))
}

func (t *turn) mark(callID string, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if open {
		t.open[callID] = true
	} else {
		delete(t.open, callID)
	}
}

// run answers the prompt, however that ends.
func (t *turn) run() engine.Outcome {
	if t.p.Kind == rouse.TurnShell {
		return t.shell()
	}
	if out, ok := t.prepare(); !ok {
		return out
	}
	if t.p.Kind == rouse.TurnCompact {
		return t.summarizeOnly()
	}
	for step := 1; ; step++ {
		if step > t.maxSteps() {
			return t.completed("max_turn_requests", "the bound of model calls in one turn is reached")
		}
		if out, ended := t.step(); ended {
			return out
		}
	}
}

func (t *turn) maxSteps() int {
	if t.agent.Steps > 0 {
		return t.agent.Steps
	}
	return t.c.deps.MaxSteps
}

// prepare finds agent and model and builds what the model will see.
func (t *turn) prepare() (engine.Outcome, bool) {
	name := t.p.Agent
	if name == "" {
		name = t.c.spec.Agent
	}
	var ok bool
	if t.agent, ok = t.c.deps.Agent(name); !ok {
		return t.refused(rouse.CodeAgent, rouse.ClassNone, "there is no agent "+name), false
	}
	ref := t.p.Model
	if ref.IsZero() {
		ref = t.c.spec.Model
	}
	var err error
	if t.model, err = t.c.deps.Model(ref); err != nil {
		msg := rouse.SafeMessage(err)
		if msg == "" {
			msg = "the model cannot be used"
		}
		out := t.refused(rouse.CodeModel, rouse.ClassModel, msg)
		out.Failure.Provider, out.Failure.Model = ref.Provider, ref.Model
		return out, false
	}
	entries, err := t.c.deps.Transcript(t.ctx, t.p.SessionID, t.p.Generation)
	if err != nil {
		if t.ctx.Err() != nil {
			return t.cancelled(), false
		}
		t.c.deps.Log.Error("native.transcript", "session", t.p.SessionID, "err", err)
		return t.refused(rouse.CodeAgent, rouse.ClassNone, "the transcript could not be read"), false
	}
	t.messages = conversationOf(entries, t.p, t.loadFile)
	t.system = t.systemPrompt()
	t.structured()
	t.tools = t.offer()
	return engine.Outcome{}, true
}

// step makes one model call and runs the tools it asks for; ended when the turn
// is over.
func (t *turn) step() (engine.Outcome, bool) {
	ans, out := t.call(t.request())
	if out != nil {
		if out.overflow && !t.compacted {
			if out := t.compact(); out != nil {
				return *out, true
			}
			return engine.Outcome{}, false
		}
		return out.Outcome, true
	}
	usage := rouse.Usage{Tokens: ans.res.Tokens, Cost: provider.Cost(ans.res.Tokens, t.model.Price)}
	t.usage = t.usage.Add(usage)
	t.messages = append(t.messages, provider.Message{Role: rouse.Assistant, Blocks: ans.blocks})
	if value, ok := ans.structured(t.schema != nil); ok {
		return t.structuredEnd(ans, value, usage), true
	}
	if len(ans.res.Calls) == 0 {
		t.endStep(engine.StepEnded{Finish: ans.res.Finish, Usage: usage})
		if t.schema != nil && ans.res.Finish != provider.FinishFilter {
			if t.nudge() {
				return engine.Outcome{}, false
			}
			return t.unstructured(), true
		}
		return t.answered(ans.res.Finish), true
	}
	results, halt := t.runTools(ans.res.Calls)
	if t.ctx.Err() != nil {
		return t.cancelled(), true
	}
	t.messages = append(t.messages, provider.Message{Role: rouse.User, Blocks: results})
	t.endStep(engine.StepEnded{Finish: provider.FinishTools, Usage: usage})
	if halt {
		return t.completed(provider.FinishTools, "a person rejected what the model wanted to do"), true
	}
	return engine.Outcome{}, false
}

// request is the next model call.
func (t *turn) request() provider.Request {
	r := provider.Request{
		Model: t.model.apiID(), System: t.system, Messages: t.messages,
		MaxTokens: t.model.maxTokens(), Effort: t.model.Effort,
		Options: t.options(), Header: t.model.header(t.p.TurnID, ""), IdleTimeout: t.model.IdleTimeout,
	}
	if !t.model.NoTemperature {
		r.Temperature = t.agent.Temperature
	}
	if !t.model.NoTools {
		for i := range t.tools {
			r.Tools = append(r.Tools, provider.Tool{Name: t.tools[i].name, Description: t.tools[i].description, Schema: t.tools[i].schema})
		}
	}
	if t.schema != nil {
		r.ToolChoice = "required"
	}
	return r
}

func (t *turn) options() map[string]json.RawMessage {
	if len(t.agent.Options) == 0 {
		return t.model.Options
	}
	out := maps.Clone(t.model.Options)
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	maps.Copy(out, t.agent.Options)
	return out
}

func (m *Model) apiID() string {
	if m.APIID != "" {
		return m.APIID
	}
	return m.Ref.Model
}

// maxAnswer bounds an answer of a model that could give a longer one.
const maxAnswer = 32_000

func (m *Model) maxTokens() int64 { return min(m.Output, maxAnswer) }

func (t *turn) beginStep(s engine.StepStarted) {
	t.stepOpen = true
	s.Agent, s.Model = t.agent.Name, t.model.Ref
	t.send(s, false, 0)
}

func (t *turn) endStep(s engine.StepEnded) {
	t.stepOpen = false
	t.sendLast(s)
}

// The ways in which a turn ends.

func (t *turn) completed(finish, evidence string) engine.Outcome {
	return engine.Outcome{State: rouse.TurnCompleted, Finish: finish, Evidence: evidence, Usage: t.usage}
}

func (t *turn) answered(finish string) engine.Outcome {
	if finish == provider.FinishFilter {
		return engine.Outcome{State: rouse.TurnFailed, Finish: "refusal", Evidence: "finish reason " + finish, Usage: t.usage, Failure: &rouse.Failure{
			Class: rouse.ClassNone, Code: rouse.CodeAgent, Provider: t.model.Ref.Provider, Model: t.model.Ref.Model,
			Message: "the provider refused to answer (content filter)", Source: "provider_http", Attempts: 1}}
	}
	return t.completed(finish, "finish reason "+finish)
}

func (t *turn) cancelled() engine.Outcome {
	why := "the turn was cancelled"
	if msg := rouse.SafeMessage(context.Cause(t.ctx)); msg != "" {
		why = msg
	}
	return engine.Outcome{State: rouse.TurnCancelled, Evidence: why, Usage: t.usage}
}

// refused is the end of a turn that could not ask a model at all.
func (t *turn) refused(code string, class rouse.Class, msg string) engine.Outcome {
	return engine.Outcome{State: rouse.TurnFailed, Finish: "error", Evidence: "no model call was made", Usage: t.usage, Failure: &rouse.Failure{
		Class: class, Code: code, Provider: t.p.Model.Provider, Model: t.p.Model.Model, Message: rouse.Clip(msg, 2000), Source: "rouse"}}
}
