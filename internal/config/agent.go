package config

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"rouse"
)

// Modes of an agent.
const (
	Primary  = "primary"  // may be a session's agent
	Subagent = "subagent" // is started inside a session only
	AnyMode  = "all"      // both
)

// Agent is a way of working: a prompt, a model, rules.
type Agent struct {
	Name        string
	Description string // says to the model, and to people, when to use it
	Mode        string // Primary, Subagent or AnyMode
	Native      bool   // built in
	Hidden      bool   // for Rouse's own use; not offered to people
	Model       rouse.ModelRef
	Prompt      string // "" is the engine's own
	// Rules decide what it may do; the last one that matches wins. They hold
	// the built-in rules, the configuration's and the agent's own, in this
	// order.
	Rules []rouse.PermissionRule
	// Tools switches tools off (false) by name; they are also denied in Rules.
	Tools       map[string]bool
	Temperature *float64 // nil: the model's default
	TopP        *float64
	Steps       int // most model calls of a turn; 0: limits.steps
	// Options are added to its requests' bodies, by their names on the wire.
	Options map[string]json.RawMessage
	Color   string
	// Program is the agent program that it is; "" for a way of working of
	// Rouse's own loop.
	Program string
}

// aliases are the names under which OpenCode's clients know the built-in
// agents (opencode 1.18.33).
var aliases = map[string]string{"build": "builder", "explore": "explorer"}

// Agent finds an agent by its name or alias. "" is the default, builder, or
// the first primary agent where builder is disabled.
func (c *Config) Agent(name string) (*Agent, bool) {
	find := func(name string) *Agent {
		for _, a := range c.Agents {
			if a.Name == name {
				return a
			}
		}
		return nil
	}
	if name == "" {
		if a := find("builder"); a != nil {
			return a, true
		}
		i := slices.IndexFunc(c.Agents, func(a *Agent) bool { return a.Mode != Subagent && !a.Hidden })
		if i < 0 {
			return nil, false
		}
		return c.Agents[i], true
	}
	if a := find(name); a != nil {
		return a, true
	}
	a := find(aliases[name])
	return a, a != nil
}

// Allowing gives the agent's rules with everything that would ask allowed and
// everything denied still denied: for a session that nobody sits in front of
// and that may go on all the same. As a session's own rules they come after
// the agent's and win.
func (a *Agent) Allowing() []rouse.PermissionRule {
	out := slices.Clone(a.Rules)
	if a.Program != "" { // it asks for what it is not sure of: what no rule names is allowed, too
		out = append([]rouse.PermissionRule{{Permission: "*", Pattern: "*", Action: rouse.Allow}}, out...)
	}
	for i := range out {
		if out[i].Action == rouse.Ask {
			out[i].Action = rouse.Allow
		}
	}
	return out
}

// SessionAgent checks the agent that a session or a prompt names: Invalid
// (field "agent") when unknown, hidden or a sub-agent, naming the accepted ones.
func (c *Config) SessionAgent(name string) (*Agent, error) {
	a, ok := c.Agent(name)
	reason := ""
	switch {
	case !ok:
		reason = "there is no such agent"
		if p, known := c.Program(name); known && p.Path == "" {
			reason = "it cannot be started: " + p.Unusable()
		}
	case a.Hidden:
		reason = "it is for Rouse's own use"
	case a.Mode == Subagent:
		reason = "it is a sub-agent: it is started inside a session, not named for one"
	default:
		return a, nil
	}
	var names []string
	for _, a := range c.Agents {
		if a.Mode != Subagent && !a.Hidden {
			names = append(names, a.Name)
		}
	}
	const most = 20
	rest := ""
	if n := len(names) - most; n > 0 {
		names, rest = names[:most], " or one of "+itoa(n)+" more"
	}
	return nil, rouse.FieldError("config: agent", "agent", "agent %q: %s; use %s%s",
		rouse.Clip(name, 80), reason, strings.Join(names, ", "), rest)
}

// agents gives the built-in ones as the files change them, and the others.
func (b *builder) agents() []*Agent {
	out := builtin()
	for _, a := range out {
		a.Rules = append(a.Rules, b.file.Rules.list...)
	}
	for name, af := range b.file.Agent.all() {
		if real, ok := aliases[name]; ok && b.file.Agent.vals[real] == nil {
			name = real
		}
		i := slices.IndexFunc(out, func(a *Agent) bool { return a.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, &Agent{Name: name, Mode: AnyMode, Rules: append(base(true), b.file.Rules.list...)})
		}
		if b.apply(out[i], af) {
			continue
		}
		out = slices.Delete(out, i, i+1)
	}
	slices.SortStableFunc(out, func(x, y *Agent) int { return cmp.Compare(rank(x), rank(y)) })
	return out
}

func rank(a *Agent) int {
	switch {
	case a.Hidden:
		return 2
	case a.Mode == Subagent:
		return 1
	}
	return 0
}

// apply changes a as its section says; false means it is disabled.
func (b *builder) apply(a *Agent, af *agentFile) bool {
	path := join("agent", a.Name)
	a.Description = cmp.Or(af.Description, a.Description)
	a.Prompt = cmp.Or(af.Prompt, a.Prompt)
	a.Color = cmp.Or(af.Color, a.Color)
	switch af.Mode {
	case "":
	case Primary, Subagent, AnyMode:
		a.Mode = af.Mode
	default:
		b.warn(join(path, "mode"), "the mode "+quote(af.Mode)+" is none of primary, subagent and all; "+a.Mode+" is used")
	}
	if af.Model != "" {
		a.Model = b.modelRef(join(path, "model"), af.Model)
		a.Model.Variant = af.Variant
	}
	if af.Temperature != nil {
		a.Temperature = af.Temperature
	}
	if af.TopP != nil {
		a.TopP = af.TopP
	}
	set(&a.Steps, af.MaxSteps)
	set(&a.Steps, af.Steps)
	set(&a.Hidden, af.Hidden)
	a.Options = onTheWire(af.Options)
	a.Tools = af.Tools
	for _, tool := range slices.Sorted(keysOf(af.Tools)) {
		a.Rules = append(a.Rules, toolRule(tool, af.Tools[tool]))
	}
	a.Rules = append(a.Rules, af.Rules.list...)
	return af.Disable == nil || !*af.Disable
}

// toolRule is what OpenCode's older tools switch means as a rule: the tools
// that write share the permission edit.
func toolRule(tool string, on bool) rouse.PermissionRule {
	switch tool {
	case "write", "edit", "patch", "multiedit":
		tool = "edit"
	}
	action := rouse.Deny
	if on {
		action = rouse.Allow
	}
	return rouse.PermissionRule{Permission: tool, Pattern: "*", Action: action}
}

// modelRef reads a model named in a file; a malformed one is a warning and
// the same as none.
func (b *builder) modelRef(path, text string) rouse.ModelRef {
	if text == "" {
		return rouse.ModelRef{}
	}
	ref, err := rouse.ParseModelRef(text)
	if err != nil {
		b.warn(path, path+": "+rouse.SafeMessage(err)+"; ignored")
	}
	return ref
}
