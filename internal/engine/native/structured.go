package native

import (
	"bytes"
	"encoding/json"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/provider"
)

// structuredTool is how a model gives an answer in a demanded form.
const structuredTool = "StructuredOutput"

// maxNudges is how often a model that answered in words is asked again, where
// the prompt names no number.
const maxNudges = 2

// structured reads the prompt's format.
func (t *turn) structured() {
	var f struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
		Retry  *int            `json:"retryCount"`
	}
	if json.Unmarshal(t.p.Format, &f) != nil || f.Type != "json_schema" || len(bytes.TrimSpace(f.Schema)) == 0 {
		return
	}
	t.schema, t.nudges = f.Schema, maxNudges
	if f.Retry != nil {
		t.nudges = max(0, min(*f.Retry, 10))
	}
	t.system = append(t.system, "When the work is done, give the final answer by calling the tool "+structuredTool+", once, and say nothing after it.")
}

// structured gives the value of a structured answer, if the model gave one.
func (a *answer) structured(wanted bool) (provider.Call, bool) {
	if wanted {
		for _, c := range a.res.Calls {
			if in := bytes.TrimSpace([]byte(c.Input)); c.Name == structuredTool && json.Valid(in) && in[0] == '{' {
				return c, true
			}
		}
	}
	return provider.Call{}, false
}

// structuredEnd ends the turn with the structured answer; other calls of the
// same step are not run.
func (t *turn) structuredEnd(a *answer, value provider.Call, usage rouse.Usage) engine.Outcome {
	for _, c := range a.res.Calls {
		k := &call{t: t, ctx: t.ctx, id: c.ID, name: c.Name, input: json.RawMessage("{}")}
		if json.Valid([]byte(c.Input)) {
			k.input = json.RawMessage(c.Input)
		}
		k.running("", nil)
		t.mark(c.ID, false)
		end := engine.ToolEnded{CallID: c.ID, Title: "Structured output", Output: "The answer was taken.", Metadata: object(map[string]any{"valid": true, "truncated": false})}
		if c.ID != value.ID {
			end = engine.ToolEnded{CallID: c.ID, Error: "The call was not run: the final answer came with it."}
		}
		t.sendLast(end)
	}
	t.endStep(engine.StepEnded{Finish: provider.FinishStop, Usage: usage, Structured: json.RawMessage(value.Input)})
	return t.completed(provider.FinishStop, "structured answer")
}

// nudge asks a model that answered in words for the demanded form; false when it
// was asked often enough.
func (t *turn) nudge() bool {
	if t.nudges == 0 {
		return false
	}
	t.nudges--
	t.messages = append(t.messages, userText("Give the answer by calling the tool "+structuredTool+"."))
	return true
}

// unstructured is the end of a turn whose model never gave the demanded form.
func (t *turn) unstructured() engine.Outcome {
	return engine.Outcome{State: rouse.TurnFailed, Finish: "error", Evidence: "no structured answer", Usage: t.usage, Failure: &rouse.Failure{
		Class: rouse.ClassNone, Code: rouse.CodeAgent, Provider: t.model.Ref.Provider, Model: t.model.Ref.Model,
		Message: "the model did not give the answer in the demanded form", Source: "provider_http", Attempts: 1}}
}
