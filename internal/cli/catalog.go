package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rouse"
	"rouse/internal/client"
	"rouse/internal/config"
)

type modelsCmd struct {
	Provider string `arg:"" optional:"" help:"Models of this provider only."`
	All      bool   `help:"Also models that cannot be used now."`
	JSON     bool   `name:"json" help:"Print {models}."`
}

func (modelsCmd) Help() string {
	return `Asks the server; where none runs, reads the configuration.

Examples:
  rouse models
  rouse models anthropic --json | jq -r '.models[].model'`
}

type modelJSON struct {
	Model      string   `json:"model"` // provider/model
	Provider   string   `json:"provider_id"`
	ID         string   `json:"model_id"`
	Name       string   `json:"name"`
	Usable     bool     `json:"usable"`
	Context    int64    `json:"context"`
	Output     int64    `json:"output"`
	InputCost  float64  `json:"input_cost"`  // US dollars for a million tokens
	OutputCost float64  `json:"output_cost"` // likewise
	Reasoning  bool     `json:"reasoning"`
	ToolCall   bool     `json:"tool_call"`
	Attachment bool     `json:"attachment"`
	Variants   []string `json:"variants"`
}

type providerJSON struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Source string   `json:"source"`
	Usable bool     `json:"usable"`
	State  string   `json:"state"`            // usable, unusable, not_probed, fails; the last two of agent programs
	Reason string   `json:"reason,omitempty"` // why it is not, or what is not known
	Models int      `json:"models"`
	Env    []string `json:"env"`
}

// catalog is what there is to choose from.
type catalog struct {
	Providers []providerJSON
	Models    []modelJSON
	Agents    []agentJSON
}

func stateOf(usable bool) string {
	if usable {
		return "usable"
	}
	return "unusable"
}

// probed says what is known of an agent program that is installed: whether it
// works and has a login is seen only when it is started.
func probed(p client.Program) (state, why string) {
	switch r := p.Report; {
	case r == nil:
		return "not_probed", "installed; `rouse agents " + p.Name + "` says whether it works and has a login"
	case r.Problem != "":
		return "fails", r.Problem
	}
	return "usable", ""
}

// limited says which limit stands in the way, of what, and until when.
func limited(q client.Quota) string {
	s := strings.TrimSpace(q.Limit + " usage limit")
	if q.Class == rouse.ClassBilling {
		s = "billing limit"
	}
	if q.ModelID != "" {
		s += " of " + q.ModelID
	}
	var reset time.Time
	if q.ResetAt > 0 {
		reset = time.UnixMilli(q.ResetAt)
	}
	return s + ", resets " + until(reset, time.Now())
}

// catalog asks the server, or the configuration where no server runs.
func (a *app) catalog() (*catalog, error) {
	cl, err := a.client()
	if errors.Is(err, client.ErrNoServer) {
		return a.offline()
	}
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	list, err := cl.Providers(a.ctx)
	if err != nil {
		return nil, err
	}
	programs, err := cl.Programs(a.ctx)
	if err != nil {
		return nil, err
	}
	agents, err := cl.Agents(a.ctx)
	if err != nil {
		return nil, err
	}
	out := &catalog{}
	for _, p := range list.All {
		usable := slices.Contains(list.Connected, p.ID)
		reason := list.Unusable[p.ID]
		if !usable && reason == "" {
			reason = "no key: rouse auth login " + p.ID
			if len(p.Env) > 0 {
				reason += ", or set " + p.Env[0]
			}
		}
		for _, q := range list.Quota {
			if q.ProviderID == p.ID {
				reason = limited(q)
			}
		}
		state := stateOf(usable)
		for _, program := range programs {
			if program.Provider == p.ID && usable && reason == "" {
				state, reason = probed(program)
			}
		}
		out.Providers = append(out.Providers, providerJSON{p.ID, p.Name, p.Source, usable, state, reason, len(p.Models), full(p.Env)})
		for _, id := range sorted(p.Models) {
			m := p.Models[id]
			out.Models = append(out.Models, modelJSON{
				Model: p.ID + "/" + m.ID, Provider: p.ID, ID: m.ID, Name: m.Name, Usable: usable,
				Context: m.Limit.Context, Output: m.Limit.Output, InputCost: m.Cost.Input, OutputCost: m.Cost.Output,
				Reasoning: m.Capabilities.Reasoning, ToolCall: m.Capabilities.ToolCall, Attachment: m.Capabilities.Attachment,
				Variants: full(sorted(m.Variants)),
			})
		}
	}
	for _, ag := range agents {
		x := agentJSON{Name: ag.Name, Mode: ag.Mode, Description: ag.Description, Native: ag.Native, Hidden: ag.Hidden}
		if ag.Model != nil {
			x.Model = ag.Model.Ref().String()
		}
		out.Agents = append(out.Agents, x)
	}
	return out, nil
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// full is an empty list instead of null.
func full(list []string) []string { return append([]string{}, list...) }

func (a *app) offline() (*catalog, error) {
	c, err := config.Load(a.paths())
	if err != nil {
		return nil, err
	}
	for _, w := range c.Warnings {
		a.notef("! %s", w)
	}
	out := &catalog{}
	for _, p := range c.Providers {
		usable := p.Unusable == ""
		state, reason := stateOf(usable), p.Unusable
		if usable && p.Program != "" {
			state, reason = probed(client.Program{Name: p.Program})
		}
		out.Providers = append(out.Providers, providerJSON{p.ID, p.Name, p.Source, usable, state, reason, len(p.Models), full(p.Env)})
		for _, m := range p.Models {
			out.Models = append(out.Models, modelJSON{
				Model: m.Ref().String(), Provider: p.ID, ID: m.ID, Name: m.Name, Usable: usable,
				Context: m.Limit.Context, Output: m.Limit.Output, InputCost: m.Cost.Input, OutputCost: m.Cost.Output,
				Reasoning: m.Reasoning, ToolCall: m.ToolCall, Attachment: m.Attachment, Variants: m.VariantNames(),
			})
		}
	}
	for _, ag := range c.Agents {
		out.Agents = append(out.Agents, agentJSON{ag.Name, ag.Mode, ag.Description, ag.Model.String(), ag.Native, ag.Hidden})
	}
	return out, nil
}

// Run lists models.
func (c *modelsCmd) Run(a *app) error {
	cat, err := a.catalog()
	if err != nil {
		return err
	}
	list := []modelJSON{}
	for _, m := range cat.Models {
		if (c.All || m.Usable) && (c.Provider == "" || m.Provider == c.Provider) {
			list = append(list, m)
		}
	}
	if c.JSON {
		return a.printJSON(map[string]any{"models": list})
	}
	if len(list) == 0 {
		a.notef("no models can be used; see `rouse providers`")
		return nil
	}
	rows := make([][]string, len(list))
	for i, m := range list {
		rows[i] = []string{m.Model, thousands(m.Context), thousands(m.Output), price(m), traits(m), strings.Join(m.Variants, ",")}
	}
	return a.table([]string{"MODEL", "CONTEXT", "OUTPUT", "$/M IN/OUT", "CAN", "VARIANTS"}, rows)
}

func price(m modelJSON) string {
	if m.InputCost == 0 && m.OutputCost == 0 {
		return ""
	}
	return fmt.Sprintf("%g/%g", m.InputCost, m.OutputCost)
}

func traits(m modelJSON) string {
	var out []string
	for name, has := range map[string]bool{"tools": m.ToolCall, "reasoning": m.Reasoning, "images": m.Attachment} {
		if has {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

type providersCmd struct {
	JSON bool `name:"json" help:"Print {providers}."`
}

func (providersCmd) Help() string {
	return `Asks the server; where none runs, reads the configuration. An agent program that
is installed is "not probed" until the server has started it once: rouse agents
does that; it "fails" when the last start went wrong.

Example:
  rouse providers --json | jq -r '.providers[] | select(.usable | not) | .reason'`
}

// Run lists providers.
func (c *providersCmd) Run(a *app) error {
	cat, err := a.catalog()
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(map[string]any{"providers": append([]providerJSON{}, cat.Providers...)})
	}
	if len(cat.Providers) == 0 {
		a.notef("no providers: run `rouse auth login PROVIDER`, set a key such as ANTHROPIC_API_KEY, or write a rouse.jsonc")
		return nil
	}
	rows := make([][]string, len(cat.Providers))
	for i, p := range cat.Providers {
		rows[i] = []string{p.ID, p.Name, p.Source, strings.ReplaceAll(p.State, "_", " "), fmt.Sprint(p.Models), short(oneLine(p.Reason), 160)}
	}
	return a.table([]string{"PROVIDER", "NAME", "FROM", "STATE", "MODELS", "WHY"}, rows)
}

type agentJSON struct {
	Name        string `json:"name"`
	Mode        string `json:"mode"`
	Description string `json:"description"`
	Model       string `json:"model,omitempty"`
	Native      bool   `json:"native"`
	Hidden      bool   `json:"hidden"`
}
