package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"rouse"
)

// ProgramProvider is the prefix of the provider ids under which agent programs
// are chosen like models: "acp:claude/opus".
const ProgramProvider = rouse.AgentProvider

// ProgramModel is the model id that leaves the choice to the program.
const ProgramModel = rouse.AgentModel

// Program is an agent program that speaks the Agent Client Protocol.
type Program struct {
	Name  string // as --agent names it
	Title string
	// Extends is the known program whose ways it has, through whatever others:
	// its own name, or another one; "" for a program that is not known.
	Extends string
	// Command is the launch line; the first word is looked up on the PATH.
	Command []string
	// Path is where it was found; "" when it is not installed.
	Path string
	// Env is added to the program's environment, as "NAME=value".
	Env []string
	// Model and Models are ids as the program names them: what is asked for
	// when nobody names one, and what is offered to choose from.
	Model  string
	Models []string
	// Mode is the session mode that is chosen; "" is the known program's.
	Mode string
	// Shared runs all its sessions in one process.
	Shared bool
	// Idle is how long a session without a prompt keeps its process; 0 is the
	// engine's own measure.
	Idle time.Duration
	// Plain starts it without the arguments that make it write diagnostics.
	Plain bool
	// Configured: the configuration names it.
	Configured bool
	// Package is the npm package that brings it, for people.
	Package string
}

// ProviderID is the id of the provider that stands for the program.
func (p *Program) ProviderID() string { return ProgramProvider + p.Name }

// Unusable says in a sentence why the program cannot take work; empty when it
// can.
func (p *Program) Unusable() string {
	switch {
	case p.Path != "":
		return ""
	case strings.Contains(p.Command[0], "/"):
		return "the program " + quote(p.Command[0]) + " cannot be run: it is not there, is a folder, or is not executable"
	case p.Package != "":
		return "the program " + quote(p.Command[0]) + " is not on the PATH: install it with `npm install -g " + p.Package + "`"
	}
	return "the program " + quote(p.Command[0]) + " is not on the PATH"
}

// programFile is one entry of the section acp.
type programFile struct {
	Title     string            `json:"title"`
	Extends   string            `json:"extends"`
	Command   []string          `json:"command"`
	Env       map[string]string `json:"env"`
	Model     string            `json:"model"`
	Models    []string          `json:"models"`
	Mode      string            `json:"mode"`
	Processes string            `json:"processes"` // per-session (default), shared
	Idle      millis            `json:"idle_ms"`
	Plain     bool              `json:"plain"`
	Disable   bool              `json:"disable"`
}

// programs gives the known programs as the files change them, and the others.
func (b *builder) programs(p Paths) ([]*Program, error) {
	var names []string
	for _, k := range p.Programs {
		names = append(names, k.Name)
	}
	for name := range b.file.ACP.all() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var out []*Program
	for _, name := range names {
		if pf := b.file.ACP.vals[name]; pf != nil && pf.Disable {
			continue
		}
		o, err := b.program(name, p.Programs, nil)
		if err != nil {
			return nil, err
		}
		if p.LookPath != nil {
			o.Path = p.LookPath(o.Command[0])
		}
		out = append(out, o)
	}
	return out, nil
}

// program is a program as the files have it: what is known of it or what it
// extends, and then its own section. below are those that extend it.
func (b *builder) program(name string, known []Program, below []string) (*Program, error) {
	o := &Program{Name: name, Title: name}
	if i := slices.IndexFunc(known, func(k Program) bool { return k.Name == name }); i >= 0 {
		*o = known[i]
		o.Extends = name
	}
	pf := b.file.ACP.vals[name]
	if pf == nil {
		return o, nil
	}
	path := join("acp", name)
	fail := func(key, format string, args ...any) error {
		at := path
		if key != "" {
			at = join(path, key)
		}
		e := rouse.FieldError(op, at, format, args...)
		e.Msg = cmp.Or(b.where[at], b.where[path], b.where["acp"], "acp") + ": " + at + ": " + e.Msg
		return e
	}
	if base := pf.Extends; base != "" && (base != name || o.Extends == "") {
		below = append(below, name)
		if slices.Contains(below, base) {
			return nil, fail("extends", "it goes in a circle: %s", strings.Join(append(below, base), " extends "))
		}
		offered := b.extensible(known, name)
		if !slices.Contains(offered, base) {
			return nil, fail("extends", "%s is no program that is known; use one of %s", quote(base), strings.Join(offered, ", "))
		}
		from, err := b.program(base, known, below)
		if err != nil {
			return nil, err
		}
		*o = *from
		o.Name = name
		if o.Title == base { // for want of one
			o.Title = name
		}
	}
	return o, o.apply(pf, fail)
}

// extensible are the names that a program can extend.
func (b *builder) extensible(known []Program, name string) (names []string) {
	for _, k := range known {
		names = append(names, k.Name)
	}
	for other := range b.file.ACP.all() {
		if other != name && !slices.Contains(names, other) {
			names = append(names, other)
		}
	}
	return names
}

// apply puts a program's own section over what it has.
func (o *Program) apply(pf *programFile, fail func(key, format string, args ...any) error) error {
	if !programName(o.Name) {
		return fail("", "the name %s cannot be named on a command line: use letters, digits, -, _ and dots", quote(o.Name))
	}
	o.Configured = true
	if pf.Idle.set {
		o.Idle = pf.Idle.d
	}
	o.Title = cmp.Or(pf.Title, o.Title)
	if len(pf.Command) > 0 {
		o.Command = pf.Command
	}
	if len(o.Command) == 0 || o.Command[0] == "" {
		return fail("command", "it names no program to run: give its launch line, as [\"my-agent\", \"--acp\"]")
	}
	for _, word := range o.Command {
		if strings.ContainsRune(word, 0) {
			return fail("command", "it holds a NUL byte")
		}
	}
	o.Env = slices.DeleteFunc(slices.Clone(o.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, again := pf.Env[name]
		return again
	})
	for _, name := range slices.Sorted(maps.Keys(pf.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(pf.Env[name], 0) {
			return fail("env", "%s is no variable that can be set", quote(name))
		}
		o.Env = append(o.Env, name+"="+pf.Env[name])
	}
	o.Model, o.Mode = cmp.Or(pf.Model, o.Model), cmp.Or(pf.Mode, o.Mode)
	if pf.Models != nil {
		o.Models = pf.Models
	}
	o.Plain = o.Plain || pf.Plain
	switch pf.Processes {
	case "":
	case "per-session":
		o.Shared = false
	case "shared":
		o.Shared = true
	default:
		return fail("processes", "%s: use per-session or shared", quote(pf.Processes))
	}
	return nil
}

// withPrograms adds what stands for the programs: a provider each, by which
// their models are named, and an agent each, by which they are.
func (c *Config) withPrograms(b *builder, programs []*Program) {
	c.Programs = programs
	for _, p := range programs {
		if p.Path == "" && !p.Configured {
			continue
		}
		c.Providers = append(c.Providers, p.provider())
		if p.Path == "" {
			b.warn(join("acp", p.Name), "the agent "+quote(p.Name)+" cannot be used: "+p.Unusable())
			continue
		}
		if _, taken := c.Agent(p.Name); taken {
			b.warn("agent."+p.Name, "the agent "+quote(p.Name)+" of the configuration hides the program of that name; name it by its model, "+p.ProviderID()+"/"+ProgramModel)
			continue
		}
		c.Agents = append(c.Agents, &Agent{Name: p.Name, Description: p.Title + ", as a program of its own", Mode: Primary, Native: !p.Configured,
			Model: rouse.ModelRef{Provider: p.ProviderID(), Model: cmp.Or(p.Model, ProgramModel)}, Program: p.Name, Rules: c.Permission})
	}
	slices.SortStableFunc(c.Agents, func(x, y *Agent) int { return cmp.Compare(rank(x), rank(y)) })
}

func (p *Program) provider() *Provider {
	out := &Provider{ID: p.ProviderID(), Name: p.Title + " (agent)", Source: "acp", Program: p.Name, Unusable: p.Unusable()}
	for _, id := range append([]string{cmp.Or(p.Model, ProgramModel)}, p.Models...) {
		if _, twice := out.Model(id); !twice {
			out.Models = append(out.Models, p.model(out, id))
		}
	}
	return out
}

func (p *Program) model(of *Provider, id string) *Model {
	name := id
	if id == ProgramModel {
		name = "the agent's own choice"
	}
	return &Model{Provider: of, ID: id, APIID: id, Name: name, ToolCall: true, Temperature: true, Limit: Limit{Context: 200_000, Output: 32_000}}
}

// Program finds an agent program by its name.
func (c *Config) Program(name string) (*Program, bool) {
	i := slices.IndexFunc(c.Programs, func(p *Program) bool { return p.Name == name })
	if i < 0 {
		return nil, false
	}
	return c.Programs[i], true
}

// programName reports that a name can stand in "acp:NAME/model" and behind
// --agent.
func programName(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.' {
			return false
		}
	}
	return name != ""
}
