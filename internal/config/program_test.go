package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse"
)

// programs loads a configuration on a machine that has the programs found.
func programs(t *testing.T, text string, found ...string) (*Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rouse.jsonc")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Paths{Explicit: file, Getenv: func(string) string { return "" },
		Programs: []Program{{Name: "one", Title: "One", Command: []string{"one", "acp"}, Package: "one-npm"}, {Name: "two", Title: "Two", Command: []string{"two"}}},
		LookPath: func(name string) string {
			if slices.Contains(found, name) {
				return "/bin/" + name
			}
			return ""
		}})
}

func TestPrograms(t *testing.T) {
	c, err := programs(t, `{
		"permission": {"bash": {"rm *": "deny"}},
		"acp": {
			"two": {"disable": true},
			"mine": {"extends": "one", "command": ["my-one", "--acp"], "env": {"B": "2", "A": "1"}, "model": "m1", "models": ["m1", "m2"], "mode": "ask", "processes": "shared", "plain": true},
			"gone": {"command": ["nowhere"]},
		},
	}`, "one", "my-one")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range c.Programs {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"one", "mine", "gone"}) {
		t.Errorf("programs %v", names)
	}
	mine, _ := c.Program("mine")
	if mine.Extends != "one" || mine.Title != "One" || mine.Path != "/bin/my-one" || !slices.Equal(mine.Env, []string{"A=1", "B=2"}) || !mine.Shared || !mine.Plain || mine.Mode != "ask" {
		t.Errorf("%+v", mine)
	}
	a, ok := c.Agent("mine")
	if !ok || a.Model.String() != "acp:mine/m1" || a.Program != "mine" || a.Mode != Primary {
		t.Fatalf("%+v", a)
	}
	for subject, want := range map[string]rouse.Action{"ls": rouse.Allow, "rm -r x": rouse.Deny} {
		if got := rouse.Decide(a.Allowing(), "bash", subject, rouse.Ask); got != want {
			t.Errorf("%s: %s with everything allowed", subject, got)
		}
		if got := rouse.Decide(a.Rules, "bash", subject, rouse.Ask); got == rouse.Allow {
			t.Errorf("%s is allowed without being asked for", subject)
		}
	}
	for ref, usable := range map[string]bool{"acp:mine/m2": true, "acp:mine/any/other": true, "acp:one/default": true, "acp:gone/default": false, "acp:two/default": false} {
		m, err := rouse.ParseModelRef(ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Resolve(m); (err == nil) != usable {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, ok := c.Agent("gone"); ok {
		t.Error("a program that is not there is offered")
	}
	if _, err := c.SessionAgent("gone"); !strings.Contains(rouse.SafeMessage(err), `it cannot be started: the program "nowhere" is not on the PATH`) {
		t.Errorf("what is missing is not said: %v", err)
	}
	if w := strings.Join(c.Warnings, "\n"); !strings.Contains(w, `acp.gone: `) && !strings.Contains(w, `the agent "gone" cannot be used`) {
		t.Errorf("warnings: %s", w)
	}
	if ref, err := c.Default(); err != nil || ref.String() != "acp:one/default" {
		t.Errorf("the only thing that can work is no default: %v %v", ref, err)
	}
}

// TestProgramExtends: a program has what the one that it extends has, as the
// files have that, whatever their order; its own section comes last.
func TestProgramExtends(t *testing.T) {
	c, err := programs(t, `{"acp": {
		"c": {"extends": "b", "env": {"A": "3"}, "idle_ms": 5, "processes": "per-session"},
		"b": {"extends": "one", "env": {"B": "2"}, "title": "Bee", "models": ["m2"], "processes": "shared"},
		"one": {"extends": "one", "command": ["wrapped", "acp"], "env": {"A": "1"}, "model": "m1", "mode": "ask", "plain": true},
		"base": {"disable": true, "command": ["mine"]},
		"d": {"extends": "base", "env": {"D": "4"}},
		"two": {"disable": true},
		"e": {"extends": "two"},
	}}`, "wrapped", "mine", "two")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Program{
		{Name: "one", Title: "One", Extends: "one", Path: "/bin/wrapped", Env: []string{"A=1"}, Model: "m1", Mode: "ask"},
		{Name: "c", Title: "Bee", Extends: "one", Path: "/bin/wrapped", Env: []string{"B=2", "A=3"}, Model: "m1", Models: []string{"m2"}, Mode: "ask", Idle: 5 * time.Millisecond},
		{Name: "b", Title: "Bee", Extends: "one", Path: "/bin/wrapped", Env: []string{"A=1", "B=2"}, Model: "m1", Models: []string{"m2"}, Mode: "ask", Shared: true},
		{Name: "d", Title: "d", Path: "/bin/mine", Env: []string{"D=4"}},
		{Name: "e", Title: "Two", Extends: "two", Path: "/bin/two"},
	} {
		got, ok := c.Program(want.Name)
		if !ok || got.Title != want.Title || got.Extends != want.Extends || got.Path != want.Path || !slices.Equal(got.Env, want.Env) || got.Model != want.Model ||
			!slices.Equal(got.Models, want.Models) || got.Mode != want.Mode || got.Shared != want.Shared || got.Idle != want.Idle || got.Plain != (want.Extends == "one") {
			t.Errorf("%s: %+v", want.Name, got)
		}
	}
	if len(c.Programs) != 5 {
		t.Errorf("%d programs", len(c.Programs))
	}
}

func TestProgramErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown base", `{"acp": {"x": {"extends": "nosuch"}}}`, `acp.x.extends: "nosuch" is no program that is known`},
		{"itself", `{"acp": {"x": {"extends": "x"}}}`, `acp.x.extends: it goes in a circle: x extends x`},
		{"a circle", `{"acp": {"x": {"extends": "y"}, "y": {"extends": "z"}, "z": {"extends": "x"}}}`, `acp.z.extends: it goes in a circle: x extends y extends z extends x`},
		{"a circle below", `{"acp": {"x": {"extends": "y"}, "y": {"extends": "y"}}}`, `acp.y.extends: it goes in a circle: x extends y extends y`},
		{"known ones in a circle", `{"acp": {"one": {"extends": "two"}, "two": {"extends": "one"}}}`, `acp.two.extends: it goes in a circle: one extends two extends one`},
		{"a base without command", `{"acp": {"x": {"extends": "y"}, "y": {"disable": true}}}`, `acp.y.command: it names no program to run`},
		{"no command", `{"acp": {"x": {}}}`, `acp.x.command: it names no program to run`},
		{"empty command", `{"acp": {"x": {"command": [""]}}}`, `acp.x.command: it names no program to run`},
		{"processes", `{"acp": {"one": {"processes": "many"}}}`, `acp.one.processes: "many": use per-session or shared`},
		{"null", `{"acp": {"x": null}}`, `acp.x.command: it names no program to run`},
		{"a name with a blank", `{"acp": {"X Y": {"command": ["x"]}}}`, `: acp."X Y": the name "X Y" cannot be named on a command line`},
		{"a variable with =", `{"acp": {"one": {"env": {"A=B": "1"}}}}`, `"A=B" is no variable that can be set`},
		{"a NUL byte", `{"acp": {"one": {"command": ["a\u0000b"]}}}`, `acp.one.command: it holds a NUL byte`},
		{"unknown key", `{"acp": {"one": {"comand": []}}}`, `did you mean "command"?`},
		{"wrong type", `{"acp": {"one": {"command": "one acp"}}}`, `acp.one.command`},
	} {
		if _, err := programs(t, c.text); rouse.KindOf(err) != rouse.Invalid || !strings.Contains(rouse.SafeMessage(err), c.want) || !strings.Contains(rouse.SafeMessage(err), "rouse.jsonc:1:") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestProgramNameTaken: a way of working of the same name hides the program,
// which is still there by its model.
func TestProgramNameTaken(t *testing.T) {
	c, err := programs(t, `{"agent": {"one": {"description": "mine"}}}`, "one")
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := c.Agent("one"); a == nil || a.Program != "" || len(c.Warnings) == 0 {
		t.Errorf("%+v %v", a, c.Warnings)
	}
	if _, err := c.Resolve(rouse.ModelRef{Provider: "acp:one", Model: "default"}); err != nil {
		t.Error(err)
	}
}
