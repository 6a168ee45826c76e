package native

import (
	"encoding/json"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/provider"
)

// shell runs a person's own command: no model, no permission.
func (t *turn) shell() engine.Outcome {
	t.agent.Name, t.model.Ref = t.p.Agent, t.p.Model
	t.beginStep(engine.StepStarted{})
	in, err := json.Marshal(map[string]string{"command": t.p.Command})
	if err != nil {
		return t.refused(rouse.CodeAgent, rouse.ClassNone, "the command is no text")
	}
	t.tools = []tool{{name: "bash", run: func(k *call) (result, error) {
		return k.script(t.p.Command, "", t.c.spec.Directory, bashLongest)
	}}}
	id := rouse.NewID("call", time.Now())
	t.mark(id, true)
	t.runTool(provider.Call{ID: id, Name: "bash", Input: string(in)})
	if t.ctx.Err() != nil {
		return t.cancelled()
	}
	t.endStep(engine.StepEnded{})
	return t.completed("", "the command ended")
}
