package config

import (
	"encoding/json"
	"strings"
	"testing"

	"rouse"
)

func ref(s string) rouse.ModelRef {
	r, err := rouse.ParseModelRef(s)
	if err != nil {
		panic(err)
	}
	return r
}

func TestResolveSaysWhy(t *testing.T) {
	p := newPlace(t)
	p.write(own, `{"provider": {`+local+`,
		"exotic": {"npm": "@ai-sdk/amazon-bedrock", "models": {"m": {}}},
		"bare": {"models": {"m": {}}},
		"groq": {},
		"odd": {"options": {"baseURL": "ftp://h"}, "models": {"m": {}}},
		"none": {"options": {"baseURL": "http://h"}},
		"unset": {"options": {"baseURL": "http://h", "apiKey": "{env:GONE}"}, "models": {"m": {}}},
		"think": {"options": {"baseURL": "http://h"}, "models": {"m": {"reasoning": true, "variants": {"low": {"disabled": true}, "wild": {"reasoningEffort": "x"}}}}},
	}}`)
	c := p.load()
	for name, want := range map[string]string{
		"nope/x":   "no such provider is configured; usable: local/b, local/a, think/m",
		"local/c":  `the provider "local" has no such model; usable: local/b, local/a`,
		"exotic/m": `no wire for the package "@ai-sdk/amazon-bedrock"`,
		"bare/m":   "it has no address: set options.baseURL",
		"groq/x":   "no key was found: run `rouse auth login groq` or set GROQ_API_KEY",
		"odd/m":    "its baseURL is not an http or https address",
		"none/m":   "it has no models",
		"unset/m":  "no key was found",
	} {
		_, err := c.Resolve(ref(name))
		if rouse.KindOf(err) != rouse.Invalid || rouse.FieldOf(err) != "model" || !strings.Contains(rouse.SafeMessage(err), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	v := ref("think/m")
	for variant, ok := range map[string]bool{"": true, "high": true, "wild": true, "low": false, "x": false, "default": true} {
		v.Variant = variant
		if _, err := c.Resolve(v); (err == nil) != ok {
			t.Errorf("variant %q: %v", variant, err)
		}
	}
	b := ref("local/b")
	b.Variant = "high"
	if _, err := c.Resolve(b); rouse.FieldOf(err) != "variant" {
		t.Errorf("variant of a model without: %v", err)
	}
}

func TestDefaultModel(t *testing.T) {
	for text, want := range map[string]string{
		`{"provider": {` + local + `}}`:                                                    "local/b", // first in the file
		`{"model": "local/a", "provider": {` + local + `}}`:                                "local/a",
		`{"model": "gone/x", "provider": {` + local + `}}`:                                 "gone/x", // fails in its turn, not at the door
		`{"model": "nonsense", "provider": {"off": {"models": {"m": {}}}, ` + local + `}}`: "local/b",
	} {
		p := newPlace(t)
		p.write(own, text)
		if got, err := p.load().Default(); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestKnownProviderWithKey(t *testing.T) {
	p := newPlace(t)
	p.env["ANTHROPIC_API_KEY"] = "k"
	p.write(own, `{"disabled_providers": ["openai"], "provider": {"anthropic": {"models": {"claude-sonnet-4-6": {"name": "Mine"}}}}}`)
	p.env["OPENAI_API_KEY"] = "k"
	p.env["GROQ_API_KEY"] = "k"
	c := p.load()
	if len(c.Providers) != 2 || c.Providers[1].ID != "groq" || c.Providers[1].Source != "env" {
		t.Fatalf("providers %+v", c.Providers)
	}
	a := c.Providers[0]
	if a.Unusable != "" || a.Wire != WireAnthropic || a.BaseURL != "https://api.anthropic.com/v1" || len(a.Models) < 3 {
		t.Fatalf("anthropic %+v", a)
	}
	m := a.Models[0]
	if m.ID != "claude-sonnet-4-6" || m.Name != "Mine" || m.Limit.Context < 100_000 || m.Cost.CacheRead >= m.Cost.Input || m.Cost.CacheWrite <= m.Cost.Input {
		t.Errorf("merged model %+v", m)
	}
	if small := c.Small(m.Ref()); small == m.Ref() || small.Provider != "anthropic" {
		t.Errorf("small %v", small)
	}
	if got := string(m.Params("high")["thinking"]); got != `{"budget_tokens":16000,"type":"enabled"}` {
		t.Errorf("params %s", got)
	}
}

func TestParamsUseTheWiresNames(t *testing.T) {
	p := &Provider{Wire: WireOpenAI, Extra: map[string]json.RawMessage{"serviceTier": []byte(`"flex"`), "includeUsage": []byte("true")}}
	m := &Model{Provider: p, Reasoning: true, Options: map[string]json.RawMessage{"own_thing": []byte("1"), "reasoningEffort": []byte(`"low"`)}}
	m.variants(nil)
	for variant, want := range map[string]string{
		"":     `{"own_thing":1,"reasoning_effort":"low","service_tier":"flex"}`,
		"high": `{"own_thing":1,"reasoning_effort":"high","service_tier":"flex"}`,
	} {
		if got, _ := json.Marshal(m.Params(variant)); string(got) != want {
			t.Errorf("%q: %s", variant, got)
		}
	}
}

func TestDrillIsExtra(t *testing.T) {
	p := newPlace(t)
	p.write(own, `{"provider": {"drill": {"models": {"x": {}}}}}`)
	p.paths.Extra = []*Provider{DrillProvider("http://127.0.0.1:9/v1", []string{"echo", "stream"})}
	c := p.load()
	if m, err := c.Resolve(ref("drill/stream")); err != nil || !m.Provider.Drill {
		t.Errorf("%+v %v", m, err)
	}
	if d, err := c.Default(); err != nil || d.String() != "drill/echo" {
		t.Errorf("default %v %v", d, err)
	}
}

func TestAgents(t *testing.T) {
	p := newPlace(t)
	p.write(own, `{"agent": {"plan": {"disable": true}, "summary": {}, "sub": {"mode": "subagent"}, "odd": {"mode": "boss"}}}`)
	c := p.load()
	var names []string
	for _, a := range c.Agents {
		names = append(names, a.Name)
	}
	if got, want := strings.Join(names, " "), "builder odd explorer worker general sub compaction title summary"; got != want {
		t.Errorf("agents\n%s\n%s", got, want)
	}
	for name, want := range map[string]string{
		"explorer": "it is a sub-agent", "explore": "it is a sub-agent", "title": "own use", "plan": "there is no such agent", "zz": "use builder, odd",
	} {
		if _, err := c.SessionAgent(name); rouse.FieldOf(err) != "agent" || !strings.Contains(rouse.SafeMessage(err), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "build", "builder"} {
		if a, err := c.SessionAgent(name); err != nil || a.Name != "builder" {
			t.Errorf("%q: %v %v", name, a, err)
		}
	}
	decide := func(agent, permission, subject string) rouse.Action {
		a, _ := c.Agent(agent)
		return rouse.Decide(a.Rules, permission, subject, rouse.Ask)
	}
	for _, x := range []struct {
		agent, permission, subject string
		want                       rouse.Action
	}{
		{"builder", "bash", "ls", rouse.Allow}, {"builder", "external_directory", "/x", rouse.Ask}, {"builder", "question", "*", rouse.Allow},
		{"builder", "read", "a/.env", rouse.Ask}, {"builder", "read", ".env.example", rouse.Allow}, {"worker", "question", "*", rouse.Deny},
		{"explorer", "edit", "x", rouse.Deny}, {"explorer", "read", "x", rouse.Allow}, {"explorer", "task", "x", rouse.Deny},
		{"title", "bash", "ls", rouse.Deny},
	} {
		if got := decide(x.agent, x.permission, x.subject); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
}

func TestAllowingAsksNothingAndForgivesNothing(t *testing.T) {
	p := newPlace(t)
	p.write(own, `{"permission": {"bash": {"*": "ask", "rm *": "deny"}}}`)
	a, _ := p.load().Agent("plan")
	rules := append(a.Rules, a.Allowing()...)
	for _, x := range []struct {
		permission, subject string
		want                rouse.Action
	}{
		{"bash", "ls", rouse.Allow}, {"bash", "rm x", rouse.Deny}, {"edit", "x", rouse.Deny}, {"external_directory", "/x", rouse.Allow}, {"read", ".env", rouse.Allow},
	} {
		if got := rouse.Decide(rules, x.permission, x.subject, rouse.Ask); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
	if a.Rules[1].Action != rouse.Ask {
		t.Error("the agent's own rules changed")
	}
}
