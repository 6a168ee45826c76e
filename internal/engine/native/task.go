package native

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"rouse"
)

// maxDepth is how many generations of sub-agents a session may have.
const maxDepth = 2

// taskTool describes the sub-agents to the model; false if there are none.
func taskTool(agents []Agent) (tool, bool) {
	if len(agents) == 0 {
		return tool{}, false
	}
	var names []string
	var b strings.Builder
	b.WriteString("Gives a piece of work to a sub-agent, which works in a session of its own and sees nothing of this conversation: write a complete prompt that says what you want back. Several calls in one message work side by side. To go on with an earlier one give its task_id. The sub-agents:\n")
	for _, a := range agents {
		names = append(names, a.Name)
		fmt.Fprintf(&b, "- %s: %s\n", a.Name, a.Description)
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"description", "prompt", "subagent_type"},
		"properties": map[string]any{
			"description":   map[string]any{"type": "string", "description": "The work in three to five words"},
			"prompt":        map[string]any{"type": "string", "description": "The whole task"},
			"subagent_type": map[string]any{"type": "string", "enum": names},
			"task_id":       map[string]any{"type": "string", "description": "An earlier task of this session to go on with"},
		},
	})
	if err != nil {
		return tool{}, false
	}
	return tool{name: "task", description: b.String(), schema: schema, run: runTask}, true
}

// taskState is the metadata of a call.
type taskState struct {
	ParentSessionID string    `json:"parentSessionId"`
	SessionID       string    `json:"sessionId"`
	Model           wireModel `json:"model"`
	Truncated       *bool     `json:"truncated,omitempty"`
}

type wireModel struct {
	ModelID    string `json:"modelID"`
	ProviderID string `json:"providerID"`
}

func runTask(k *call) (result, error) {
	var in struct {
		Description, Prompt string
		Subagent            string `json:"subagent_type"`
		TaskID              string `json:"task_id"`
	}
	if err := k.decode(&in); err != nil {
		return result{}, err
	}
	for name, v := range map[string]string{"description": in.Description, "prompt": in.Prompt, "subagent_type": in.Subagent} {
		if v == "" {
			return result{}, k.missing(name)
		}
	}
	agents := k.t.c.deps.Subagents()
	i := slices.IndexFunc(agents, func(a Agent) bool { return a.Name == in.Subagent })
	if i < 0 {
		var names []string
		for _, a := range agents {
			names = append(names, a.Name)
		}
		return result{}, toolError(fmt.Sprintf("There is no sub-agent %q. The sub-agents are: %s.", rouse.Clip(in.Subagent, 80), strings.Join(names, ", ")))
	}
	if err := k.permit(wish{permission: "task", patterns: []string{in.Subagent}, always: []string{"*"},
		metadata: map[string]string{"description": in.Description, "subagent_type": in.Subagent}}); err != nil {
		return result{}, err
	}
	model := agents[i].Model
	if model.IsZero() {
		model = k.t.model.Ref
	}
	state := taskState{ParentSessionID: k.t.p.SessionID, Model: wireModel{model.Model, model.Provider}}
	res, err := k.t.c.deps.Spawn(k.ctx, SpawnRequest{
		ParentSession: k.t.p.SessionID, Resume: in.TaskID, Agent: in.Subagent, Title: in.Description + " (@" + in.Subagent + " subagent)",
		Prompt: in.Prompt, Model: model, Unattended: k.t.p.Unattended,
		Started: func(id string) {
			state.SessionID = id
			k.running(in.Description, state)
		},
		Progress: func() { k.progress("", nil) },
	})
	if err != nil {
		if k.ctx.Err() == nil {
			msg := rouse.SafeMessage(err)
			if msg == "" {
				msg = "it could not be started"
			}
			err = toolError("The sub-agent did not work: " + msg)
		}
		return result{}, err
	}
	state.SessionID, state.Truncated = res.SessionID, new(bool)
	text, cut := clipText(res.Text)
	*state.Truncated = cut
	return result{title: in.Description, metadata: state,
		output: fmt.Sprintf("<task id=\"%s\" state=\"%s\">\n%s\n</task>", res.SessionID, res.State, taskText(res, text))}, nil
}

// taskText is the child's answer, or why there is none.
func taskText(r SpawnResult, text string) string {
	out := ""
	if text != "" {
		out = "<task_result>\n" + text + "\n</task_result>"
	}
	if r.State != rouse.TurnCompleted {
		why := "its turn ended " + string(r.State)
		if r.Failure != nil && r.Failure.Message != "" {
			why += ": " + r.Failure.Message
		}
		out = strings.TrimPrefix(out+"\n<task_error>\n"+why+"\n</task_error>", "\n")
	}
	if out == "" {
		out = "<task_result>\n(no text)\n</task_result>"
	}
	return out
}

// depth is how many parents the session has.
func (t *turn) depth() int {
	d := t.c.deps.Depth
	if d == nil {
		if t.c.spec.Session.ParentID != "" {
			return 1
		}
		return 0
	}
	n, err := d(t.ctx, t.p.SessionID)
	if err != nil {
		return maxDepth
	}
	return n
}
