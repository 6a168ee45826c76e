package config

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse"
)

// place is a home with files and variables of its own.
type place struct {
	t     *testing.T
	home  string
	env   map[string]string
	paths Paths
}

func newPlace(t *testing.T) *place {
	p := &place{t: t, home: t.TempDir(), env: map[string]string{}}
	p.env["HOME"] = p.home
	p.env["ROUSE_KEYRING"] = "off"
	p.paths = DefaultPaths(p.getenv)
	p.paths.Accounts = OpenAccounts(DefaultData(p.getenv), p.getenv)
	return p
}

func (p *place) getenv(name string) string { return p.env[name] }

func (p *place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *place) load() *Config {
	p.t.Helper()
	c, err := Load(p.paths)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

const (
	own      = ".config/rouse/rouse.jsonc"
	opencode = ".config/opencode/opencode.json"
	local    = `"local": {"options": {"baseURL": "http://127.0.0.1:1/v1/"}, "models": {"b": {}, "a": {"limit": {"context": 1000, "output": 10}}}}`
)

func TestNothingConfigured(t *testing.T) {
	c := newPlace(t).load()
	if c.Server.Host != "127.0.0.1" || c.Server.Port != 4096 || c.Limits.HoldQueue != 100 || c.Retention.EventsDays != 7 || c.Log.Level != "info" {
		t.Errorf("defaults: %+v %+v", c.Server, c.Limits)
	}
	if len(c.Providers) != 0 || len(c.Warnings) != 0 {
		t.Errorf("providers %v, warnings %v", c.Providers, c.Warnings)
	}
	_, err := c.Default()
	if rouse.KindOf(err) != rouse.Invalid || !strings.Contains(rouse.SafeMessage(err), "rouse auth login") {
		t.Errorf("default: %v", err)
	}
}

func TestErrorsNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "{\n  // a comment\n  \"server\": {\"prot\": 1},\n}", `rouse.jsonc:3:14: server.prot: unknown key "prot"; did you mean "port"?`},
		{"unknown key, nothing near", "{\"zzzzzz\": 1}", `rouse.jsonc:1:2: zzzzzz: unknown key "zzzzzz"`},
		{"transposed", "{\"modle\": \"a/b\"}", `did you mean "model"?`},
		{"deep", "{\"provider\": {\"x\": {\"models\": {\"m.1\": {\"limit\": {\"contxt\": 1}}}}}}", `provider.x.models."m.1".limit.contxt: unknown key "contxt"; did you mean "context"?`},
		{"wrong type", "{\n\"server\": {\n\t\"port\": \"80\"}}", `rouse.jsonc:3:10: server.port: expected a whole number, got a string`},
		{"fraction", `{"server": {"port": 8.5}}`, `1:21: server.port: expected a whole number, got the number 8.5`},
		{"negative", `{"limits": {"hold_queue": -1}}`, `expected a number that is not negative`},
		{"list", `{"server": {"hosts": "x"}}`, `server.hosts: expected a list, got a string`},
		{"list element", `{"server": {"hosts": ["x", 3]}}`, `server.hosts[1]: expected a string, got the number 3`},
		{"object", `{"provider": []}`, `provider: expected an object, got a list`},
		{"action", `{"permission": {"bash": {"git *": "alow"}}}`, `permission.bash."git *": action "alow": use allow, ask or deny`},
		{"action type", `{"permission": {"bash": true}}`, `permission.bash: expected an object, got true`},
		{"twice", "{\"model\": \"a/b\",\n\"model\": \"c/d\"}", `rouse.jsonc:2:1: model: the key "model" is there twice`},
		{"port", `{"server": {"port": 70000}}`, `rouse.jsonc:1:21: server.port: 70000 is no port`},
		{"level", `{"log": {"level": "loud"}}`, `rouse.jsonc:1:19: log.level: "loud": use debug`},
		{"file", "{\"model\":\n\"{file:./nope}\"}", `rouse.jsonc:2:1: model: the file "./nope" of {file:…} does not exist`},
		{"timeout", `{"provider": {"x": {"options": {"timeout": "5s"}}}}`, `provider.x.options.timeout: expected milliseconds or false, got a string`},
		{"syntax", "{\n\"model\" \"x\"}", `rouse.jsonc:2:9: `},
		{"not closed", "{\n\"model\": {", `rouse.jsonc:2:`},
		{"no object", `[]`, `rouse.jsonc:1:1: expected an object at the top`},
		{"empty", ``, `rouse.jsonc:1:1: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			p.write(own, c.text)
			_, err := Load(p.paths)
			if rouse.KindOf(err) != rouse.Invalid {
				t.Fatalf("kind %s: %v", rouse.KindOf(err), err)
			}
			if msg := rouse.SafeMessage(err); !strings.Contains(msg, c.want) {
				t.Errorf("got  %s\nwant %s", msg, c.want)
			}
		})
	}
}

func TestOpenCodeFileIsReadKindly(t *testing.T) {
	p := newPlace(t)
	p.write(opencode, `{
		"$schema": "https://opencode.ai/config.json", "theme": "x", "plugin": [1], "keybinds": {"a": "b"},
		"provider": {`+local+`, "odd": {"options": {"baseURL": 5}, "unheard": 1}},
		"model": "local/a",
		"permission": {"edit": "ask", "bash": {"*": "allow", "rm *": "deny"}},
		"agent": {"build": {"temperature": 0.1}, "mine": {"mode": "primary", "prompt": "{file:./mine.md}", "tools": {"write": false}}},
	}`)
	p.write(".config/opencode/mine.md", "be kind\n")
	c := p.load()
	if c.Model.String() != "local/a" {
		t.Errorf("model %v", c.Model)
	}
	m, err := c.Resolve(c.Model)
	if err != nil || m.Limit.Context != 1000 || m.Provider.BaseURL != "http://127.0.0.1:1/v1" || m.Provider.Wire != WireOpenAI {
		t.Errorf("model %+v: %v", m, err)
	}
	if !slices.ContainsFunc(c.Warnings, func(w string) bool {
		return strings.Contains(w, "provider.odd.options.baseURL: expected a string")
	}) {
		t.Errorf("warnings %q", c.Warnings)
	}
	b, _ := c.Agent("build")
	if b.Name != "builder" || b.Temperature == nil || *b.Temperature != 0.1 {
		t.Errorf("builder %+v", b)
	}
	for subject, want := range map[string]rouse.Action{"rm -r x": rouse.Deny, "ls": rouse.Allow} {
		if got := rouse.Decide(b.Rules, "bash", subject, rouse.Allow); got != want {
			t.Errorf("bash %s: %s", subject, got)
		}
	}
	mine, err := c.SessionAgent("mine")
	if err != nil || mine.Prompt != "be kind" || rouse.Decide(mine.Rules, "edit", "x", rouse.Allow) != rouse.Deny {
		t.Errorf("mine %+v: %v", mine, err)
	}
}

func TestLaterFilesWin(t *testing.T) {
	p := newPlace(t)
	p.write(opencode, `{"model": "local/a", "provider": {`+local+`}, "permission": {"bash": "deny"}}`)
	p.write(own, `{"model": "local/b", "server": {"port": 5000}, "permission": {"bash": "allow"},
		"provider": {"local": {"models": {"a": {"limit": {"output": 99}}}}}}`)
	p.paths.Explicit = p.write("x.jsonc", `{"server": {"host": "::1"}, "limits": {"hold_queue": 3}}`)
	c := p.load()
	if c.Model.Model != "b" || c.Server.Port != 5000 || c.Server.Host != "::1" || c.Limits.HoldQueue != 3 {
		t.Errorf("%v %+v", c.Model, c.Server)
	}
	m, err := c.Resolve(rouse.ModelRef{Provider: "local", Model: "a"})
	if err != nil || m.Limit != (Limit{1000, 99}) {
		t.Errorf("merged model %+v: %v", m, err)
	}
	b, _ := c.Agent("")
	if rouse.Decide(b.Rules, "bash", "ls", rouse.Deny) != rouse.Allow {
		t.Error("the later permission does not win")
	}
	if len(c.Files) != 3 {
		t.Errorf("files %v", c.Files)
	}
	p.paths.Explicit = filepath.Join(p.home, "none.jsonc")
	if _, err := Load(p.paths); rouse.KindOf(err) != rouse.Invalid || !strings.Contains(err.Error(), "none.jsonc does not exist") {
		t.Errorf("explicit file missing: %v", err)
	}
}

func TestReferences(t *testing.T) {
	p := newPlace(t)
	p.env["KEY"] = "sk-{env:HOME}"
	p.write("secrets/k", "  from file \n")
	p.write(own, `{"provider": {
		"a": {"options": {"baseURL": "http://h/v1", "apiKey": "{env:KEY}", "headers": {"X": "a{env:GONE}b"}}, "models": {"m": {}}},
		"b": {"options": {"baseURL": "http://h/v1", "apiKey": "{file:~/secrets/k}", "tier": {"deep": ["{env:KEY}", 1]}}, "models": {"m": {"name": "{not a ref} {env:} {env:A"}}},
		"c": {"options": {"baseURL": "http://h/v1", "apiKey": "{file:../../secrets/k}!"}, "models": {"m": {}}},
	}}`)
	c := p.load()
	for id, want := range map[string]string{"a": "sk-{env:HOME}", "b": "from file", "c": "from file!"} {
		pr, _ := c.Provider(id)
		if got, err := pr.Key(context.Background()); err != nil || got != want {
			t.Errorf("key of %s: %q, %v", id, got, err)
		}
	}
	a, _ := c.Provider("a")
	b, _ := c.Provider("b")
	if a.Headers["X"] != "ab" || string(b.Extra["tier"]) != `{"deep":["sk-{env:HOME}",1]}` || b.Models[0].Name != "{not a ref} {env:} {env:A" {
		t.Errorf("headers %v, extra %s, name %q", a.Headers, b.Extra["tier"], b.Models[0].Name)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], `rouse.jsonc:2:`) || !strings.Contains(c.Warnings[0], `"GONE" is not set`) {
		t.Errorf("warnings %q", c.Warnings)
	}
}

func TestReloadKeepsTheOldOnError(t *testing.T) {
	p := newPlace(t)
	p.write(own, `{"server": {"port": 1}}`)
	s, err := NewStore(func() (*Config, error) { return Load(p.paths) })
	if err != nil {
		t.Fatal(err)
	}
	p.write(own, `{"server": {"port": "x"}}`)
	if err := s.Reload(); err == nil || s.Get().Server.Port != 1 {
		t.Errorf("bad file: %v, port %d", err, s.Get().Server.Port)
	}
	p.write(own, `{"server": {"port": 2}}`)
	if err := s.Reload(); err != nil || s.Get().Server.Port != 2 {
		t.Errorf("good file: %v, port %d", err, s.Get().Server.Port)
	}
}

func TestTimeouts(t *testing.T) {
	p := newPlace(t)
	p.write(own, `{"provider": {
		"x": {"options": {"baseURL": "http://h", "timeout": false, "stream_idle_timeout_ms": 1500}, "models": {"m": {}}},
		"y": {"options": {"baseURL": "http://h", "timeout": 5000, "chunkTimeout": 10}, "models": {"m": {}}},
	}}`)
	c := p.load()
	for id, want := range map[string]time.Duration{"x": 1500 * time.Millisecond, "y": 10 * time.Millisecond} {
		if pr, _ := c.Provider(id); pr.StreamIdleTimeout != want {
			t.Errorf("%s: %v", id, pr.StreamIdleTimeout)
		}
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "rouse.jsonc:3:55: options.timeout") {
		t.Errorf("warnings %q", c.Warnings)
	}
}
