package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/provider"
)

// tool is something the model can call.
type tool struct {
	name        string
	permission  string // whose denial takes the tool away; "" is the name
	description string
	schema      json.RawMessage
	run         func(*call) (result, error)
}

// result is what a call gives. Metadata is marshalled to a JSON object.
type result struct {
	title    string
	output   string
	metadata any
	files    []rouse.File
}

// call is one running tool call. Its methods may be used from one goroutine.
type call struct {
	t         *turn
	ctx       context.Context
	id, name  string
	input     json.RawMessage
	announced bool
}

// maxParallel bounds the calls of one step that run at once.
const maxParallel = 8

// offer lists the tools of this turn: what rules, agent or prompt take away is
// not offered.
func (t *turn) offer() []tool {
	rules := t.rules()
	var out []tool
	for _, x := range t.toolbox() {
		permission := x.permission
		if permission == "" {
			permission = x.name
		}
		if off(t.p.Tools, x.name) || off(t.agent.Tools, x.name) || forbidden(rules, permission) {
			continue
		}
		out = append(out, x)
	}
	return out
}

// off reports a tool switched off by name, or by "*" without being named.
func off(tools map[string]bool, name string) bool {
	on, named := tools[name]
	if !named {
		on, named = tools["*"]
	}
	return named && !on
}

// toolbox lists all tools that this engine can run.
func (t *turn) toolbox() []tool {
	d := t.c.deps
	out := []tool{bashTool, readTool, writeTool, editTool, globTool, grepTool, todoWriteTool}
	if d.Todos != nil {
		out = append(out, todoReadTool)
	}
	if d.Spawn != nil && d.Subagents != nil && t.depth() < maxDepth {
		if x, ok := taskTool(d.Subagents()); ok {
			out = append(out, x)
		}
	}
	if !t.p.Unattended {
		out = append(out, questionTool)
	}
	if d.ListModels != nil {
		out = append(out, listModelsTool)
	}
	if t.schema != nil {
		out = append(out, tool{name: structuredTool, schema: t.schema,
			description: "Gives the final answer in the demanded form. Call it once, when the work is done; nothing can be said after it."})
	}
	return out
}

// runTools runs the calls of one step, side by side, and gives their results in
// order. halt: a person ended the turn.
func (t *turn) runTools(calls []provider.Call) (results []provider.Block, halt bool) {
	results = make([]provider.Block, len(calls))
	halts := make([]bool, len(calls))
	slots := make(chan struct{}, maxParallel)
	var wg sync.WaitGroup
	for i, c := range calls {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i], halts[i] = t.runTool(c)
		})
	}
	wg.Wait()
	return results, slices.Contains(halts, true)
}

// runTool runs one call and reports its end, whatever it is.
func (t *turn) runTool(c provider.Call) (provider.Block, bool) {
	k := &call{t: t, ctx: t.ctx, id: c.ID, name: c.Name, input: json.RawMessage(c.Input)}
	block := provider.Block{Kind: provider.ResultBlock, CallID: c.ID, Name: c.Name}
	if t.ctx.Err() != nil {
		return block, false
	}
	res, err := k.work()
	if t.ctx.Err() != nil && err != nil && res.output == "" {
		return block, false // the lane closes the part with the turn
	}
	k.running("", nil)
	t.mark(c.ID, false)
	end := engine.ToolEnded{CallID: c.ID, Title: res.title, Output: res.output, Metadata: object(res.metadata), Attachments: res.files}
	if err != nil && res.output == "" {
		end.Error = rouse.Clip(err.Error(), 8000)
		end.Attachments = nil
		block.Text, block.IsError = end.Error, true
	} else {
		block.Text, block.Files = res.output, res.files
	}
	t.sendLast(end)
	return block, halts(err)
}

// work finds and runs the tool. A panic is the call's failure, not the
// server's.
func (k *call) work() (res result, err error) {
	defer func() {
		if r := recover(); r != nil {
			k.t.c.deps.Log.Error("native.tool_panic", "tool", k.name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			res, err = result{}, toolError("The tool "+k.name+" failed because of a defect in Rouse.")
		}
	}()
	i := slices.IndexFunc(k.t.tools, func(x tool) bool { return x.name == k.name })
	if i < 0 || k.t.tools[i].run == nil {
		var names []string
		for _, x := range k.t.tools {
			names = append(names, x.name)
		}
		return result{}, toolError(fmt.Sprintf("There is no tool %q here. The tools are: %s.", rouse.Clip(k.name, 80), strings.Join(names, ", ")))
	}
	if in := bytes.TrimSpace(k.input); !json.Valid(in) || in[0] != '{' {
		k.input = nil
		return result{}, toolError("The arguments of " + k.name + " are no JSON object. Write them again.")
	}
	return k.t.tools[i].run(k)
}

// running reports once that the call runs, with its input.
func (k *call) running(title string, metadata any) {
	if k.announced {
		return
	}
	k.announced = true
	in := k.input
	if in == nil {
		in = json.RawMessage("{}")
	}
	k.t.send(engine.ToolStarted{CallID: k.id, Name: k.name, Title: title, State: rouse.ToolRunning, Input: in, Metadata: object(metadata)}, true, 0)
}

// progress reports what the running call has so far.
func (k *call) progress(title string, metadata any) {
	k.t.send(engine.ToolProgress{CallID: k.id, Title: title, Metadata: object(metadata)}, true, 0)
}

// object marshals metadata; nil stays nil.
func object(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// decode reads the arguments into v; the error names the field for the model.
func (k *call) decode(v any) error {
	if err := json.Unmarshal(k.input, v); err != nil {
		return toolError(fmt.Sprintf("The arguments of %s do not fit: %s. Write them again.", k.name, strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}

// missing is the error of an empty required argument.
func (k *call) missing(name string) error {
	return toolError(fmt.Sprintf("The argument %q of %s is missing. Write the call again.", name, k.name))
}

// schemaOf writes the schema of an object. fields are "name:type:description";
// a name with '*' is required.
func schemaOf(fields ...string) json.RawMessage {
	props := map[string]any{}
	required := []string{}
	for _, f := range fields {
		p := strings.SplitN(f, ":", 3)
		name := strings.TrimSuffix(p[0], "*")
		if name != p[0] {
			required = append(required, name)
		}
		props[name] = map[string]any{"type": p[1], "description": p[2]}
	}
	b, err := json.Marshal(map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false})
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return b
}
