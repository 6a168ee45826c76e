package native

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
)

// use lets the model call a tool once and gives its end.
func use(t *testing.T, b *bench, tool string, args any) engine.ToolEnded {
	t.Helper()
	out := b.run(t, b.prompt(drill.Tool, calling(tool, args), 1))
	if out.State != rouse.TurnCompleted {
		t.Fatalf("%+v %+v", out, out.Failure)
	}
	return b.ended(t)
}

type obj = map[string]any

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  obj
		want  []string // pieces of the output
		wrong string   // piece of the error
	}{
		{"lines with numbers", obj{"filePath": "a.txt"}, []string{"1: one\n2: two\n3: three\n"}, ""},
		{"a window", obj{"filePath": "a.txt", "offset": 2, "limit": 1}, []string{"2: two\n(The file goes on", "offset 3"}, ""},
		{"beyond the end", obj{"filePath": "a.txt", "offset": 9}, nil, "fewer than 9 lines"},
		{"a folder", obj{"filePath": "."}, []string{"a.txt\nb.bin\n", "sub/\n"}, ""},
		{"a binary", obj{"filePath": "b.bin"}, nil, "is binary"},
		{"nothing there", obj{"filePath": "A.tx"}, nil, "There is no file"},
		{"a long line", obj{"filePath": "long.txt"}, []string{"1: xxx", "x…\n2: end\n"}, ""},
		{"no path", obj{}, nil, `"filePath" of read is missing`},
		{"wrong type", obj{"filePath": 7}, nil, "do not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.write(t, "a.txt", "one\ntwo\r\nthree")
			b.write(t, "b.bin", "a\x00b")
			b.write(t, "long.txt", strings.Repeat("x", 9000)+"\nend\n")
			b.write(t, "sub/c", "")
			end := use(t, b, "read", c.args)
			if !strings.Contains(end.Error, c.wrong) || (end.Error == "") != (c.wrong == "") {
				t.Fatalf("%+v", end)
			}
			for _, w := range c.want {
				if !strings.Contains(end.Output, w) {
					t.Errorf("no %q in %.300q", w, end.Output)
				}
			}
		})
	}
}

func TestReadPicture(t *testing.T) {
	b := newBench(t)
	b.write(t, "p.png", "\x89PNG\r\n\x1a\n0000")
	if end := use(t, b, "read", obj{"filePath": "p.png"}); len(end.Attachments) != 1 || end.Attachments[0].Mime != "image/png" || !strings.HasPrefix(end.Attachments[0].URL, "data:image/png;base64,") {
		t.Errorf("%+v", end)
	}
}

func TestWriteAndEdit(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		args       obj
		before     string // of f.txt; "-" is absent
		after      string
		wrong      string
	}{
		{"write new", "write", obj{"filePath": "d/f.txt", "content": "x\n"}, "-", "x\n", ""},
		{"write over", "write", obj{"filePath": "f.txt", "content": "x\n"}, "old\n", "x\n", ""},
		{"write nothing", "write", obj{"filePath": "f.txt", "content": ""}, "old\n", "", ""},
		{"no content", "write", obj{"filePath": "f.txt"}, "old\n", "old\n", `"content" of write is missing`},
		{"edit", "edit", obj{"filePath": "f.txt", "oldString": "b", "newString": "X"}, "a\nb\nc\n", "a\nX\nc\n", ""},
		{"edit twice found", "edit", obj{"filePath": "f.txt", "oldString": "b", "newString": "X"}, "b\nb\n", "b\nb\n", "occurs 2 times"},
		{"edit all", "edit", obj{"filePath": "f.txt", "oldString": "b", "newString": "X", "replaceAll": true}, "b\nb\n", "X\nX\n", ""},
		{"edit not found", "edit", obj{"filePath": "f.txt", "oldString": "z", "newString": "X"}, "b\n", "b\n", "does not occur"},
		{"edit with other line ends", "edit", obj{"filePath": "f.txt", "oldString": "a\nb", "newString": "x\ny"}, "a\r\nb\r\n", "x\r\ny\r\n", ""},
		{"edit makes a file", "edit", obj{"filePath": "f.txt", "oldString": "", "newString": "X"}, "-", "X", ""},
		{"edit of nothing", "edit", obj{"filePath": "f.txt", "oldString": "a", "newString": "X"}, "-", "-", "There is no file"},
		{"edit without change", "edit", obj{"filePath": "f.txt", "oldString": "a", "newString": "a"}, "a", "a", "are the same"},
		{"empty oldString", "edit", obj{"filePath": "f.txt", "oldString": "", "newString": "a"}, "a", "a", "must not be empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			if c.before != "-" {
				b.write(t, "f.txt", c.before)
			}
			end := use(t, b, c.tool, c.args)
			if !strings.Contains(end.Error, c.wrong) || (end.Error == "") != (c.wrong == "") {
				t.Fatalf("%+v", end)
			}
			path, _ := c.args["filePath"].(string)
			got, err := os.ReadFile(filepath.Join(b.dir, path))
			if errors.Is(err, os.ErrNotExist) {
				got = []byte("-")
			}
			if string(got) != c.after {
				t.Errorf("the file is %q", got)
			}
			if c.wrong == "" && c.before != c.after && !strings.Contains(string(end.Metadata), `"diff":"--- `) {
				t.Errorf("metadata %s", end.Metadata)
			}
		})
	}
}

// TestChangedSinceRead: a file that changed after the model read it is not
// overwritten blindly.
func TestChangedSinceRead(t *testing.T) {
	b := newBench(t)
	path := b.write(t, "f.txt", "one\n")
	c := b.open(t)
	if out := c.Prompt(t.Context(), b.prompt(drill.Tool, calling("read", obj{"filePath": "f.txt"}), 1)); out.State != rouse.TurnCompleted {
		t.Fatalf("%+v", out)
	}
	if err := os.WriteFile(path, []byte("somebody else\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Prompt(t.Context(), b.prompt(drill.Tool, calling("write", obj{"filePath": "f.txt", "content": "mine"}), 2))
	end := b.sink.Await(t, "the write's end", func(u engine.Update) bool {
		e, ok := u.Body.(engine.ToolEnded)
		return ok && u.Generation == 2 && e.Error != ""
	}).Body.(engine.ToolEnded)
	if got, _ := os.ReadFile(path); string(got) != "somebody else\n" || !strings.Contains(end.Error, "changed since") {
		t.Errorf("%q, %+v", got, end)
	}
}

func TestGlobAndGrep(t *testing.T) {
	for _, c := range []struct {
		tool  string
		args  obj
		want  []string
		not   []string
		wrong string
	}{
		{"glob", obj{"pattern": "**/*.go"}, []string{"a.go\n", "sub/b.go\n"}, []string{"node_modules", ".git", "c.txt"}, ""},
		{"glob", obj{"pattern": "*.go"}, []string{"a.go\n"}, []string{"b.go"}, ""},
		{"glob", obj{"pattern": "*.rs"}, []string{"No file matches"}, nil, ""},
		{"glob", obj{"pattern": "[", "path": "sub"}, nil, nil, "not valid"},
		{"glob", obj{"pattern": "*", "path": "nowhere"}, nil, nil, "no directory"},
		{"grep", obj{"pattern": "func \\w+"}, []string{"Found 2 lines", "a.go:\n  2: func A() {}", "b.go"}, []string{"node_modules", "bin"}, ""},
		{"grep", obj{"pattern": "func", "include": "b.*"}, []string{"Found 1 lines", "b.go"}, []string{"a.go"}, ""},
		{"grep", obj{"pattern": "func", "include": "sub/*.go"}, []string{"Found 1 lines"}, []string{"a.go"}, ""},
		{"grep", obj{"pattern": "nothing here"}, []string{"No line matches"}, nil, ""},
		{"grep", obj{"pattern": "("}, nil, nil, "no regular expression"},
	} {
		b := newBench(t)
		b.write(t, "a.go", "package a\nfunc A() {}\n")
		b.write(t, "sub/b.go", "package b\nfunc B() {}")
		b.write(t, "c.txt", "text\n")
		b.write(t, "bin.go.x", "func\x00 X")
		b.write(t, "node_modules/m.go", "func M() {}\n")
		b.write(t, ".git/g.go", "func G() {}\n")
		end := use(t, b, c.tool, c.args)
		if !strings.Contains(end.Error, c.wrong) || (end.Error == "") != (c.wrong == "") {
			t.Errorf("%v: %+v", c.args, end)
		}
		for _, w := range c.want {
			if !strings.Contains(end.Output, w) {
				t.Errorf("%s %v: no %q in %q", c.tool, c.args, w, end.Output)
			}
		}
		for _, w := range c.not {
			if strings.Contains(end.Output, w) {
				t.Errorf("%s %v: %q in %q", c.tool, c.args, w, end.Output)
			}
		}
	}
}

func TestBash(t *testing.T) {
	for _, c := range []struct {
		name, meta string
		args       obj
		want       string
	}{
		{"output", `"exit":0`, obj{"command": "echo out; pwd | wc -l"}, "out\n1\n"},
		{"exit code", `"exit":3`, obj{"command": "echo x; exit 3"}, "Exit code 3"},
		{"time over", `"truncated":false`, obj{"command": "echo x; sleep 50", "timeout": 100}, "ran longer than 100ms"},
		{"long sleep", `"exit":0`, obj{"command": "sleep() { :; }; sleep 300"}, "<shell_warning>"},
		{"its session", `"exit":0`, obj{"command": "echo $ROUSE_SESSION $GIVEN"}, "ses_native"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.spec.Env = []string{"GIVEN=yes"}
			end := use(t, b, "bash", c.args)
			if end.Error != "" || !strings.Contains(end.Output, c.want) || !strings.Contains(string(end.Metadata), c.meta) || end.Title != c.args["command"] {
				t.Errorf("%+v %s", end, end.Metadata)
			}
		})
	}
}

func TestTodo(t *testing.T) {
	b := newBench(t)
	list := []rouse.Todo{{Content: "a", Status: "in_progress", Priority: "high"}, {Content: "b", Status: "completed", Priority: "low"}}
	end := use(t, b, "todowrite", obj{"todos": list})
	if end.Title != "1 todos" || !strings.Contains(string(end.Metadata), `"todos":[{`) {
		t.Errorf("%+v", end)
	}
	plan := b.sink.Await(t, "a plan", func(u engine.Update) bool { _, ok := u.Body.(engine.Plan); return ok }).Body.(engine.Plan)
	if !reflect.DeepEqual(plan.Todos, list) {
		t.Errorf("%+v", plan)
	}
	b = newBench(t)
	if end := use(t, b, "todowrite", obj{"todos": []obj{{"content": "a", "status": "soon"}}}); !strings.Contains(end.Error, `"soon"`) {
		t.Errorf("%+v", end)
	}
	b = newBench(t)
	b.deps.Todos = func(context.Context, string) ([]rouse.Todo, error) { return list, nil }
	if end := use(t, b, "todoread", obj{}); !strings.Contains(end.Output, `"in_progress"`) {
		t.Errorf("%+v", end)
	}
}

func TestUnknownToolAndBrokenArguments(t *testing.T) {
	b := newBench(t)
	if end := use(t, b, "nope", obj{}); !strings.Contains(end.Error, `no tool "nope"`) || !strings.Contains(end.Error, "bash, read") {
		t.Errorf("%+v", end)
	}
	b = newBench(t)
	out := b.run(t, b.prompt(drill.Tool, `[[drill tool=bash input='{"command":']]`, 1))
	if end := b.ended(t); out.State != rouse.TurnCompleted || !strings.Contains(end.Error, "no JSON object") {
		t.Errorf("%+v %+v", out, end)
	}
}

func TestListModels(t *testing.T) {
	b := newBench(t)
	b.deps.ListModels = func(context.Context) (string, error) { return "drill/echo\n", nil }
	if end := use(t, b, "list_models", obj{}); end.Output != "drill/echo\n" {
		t.Errorf("%+v", end)
	}
}

// TestTask: a sub-agent's session shows while it works, its answer comes back.
func TestTask(t *testing.T) {
	b := newBench(t)
	var got SpawnRequest
	b.deps.Subagents = func() []Agent { return []Agent{{Name: "worker", Description: "works", Subagent: true}} }
	b.deps.Spawn = func(_ context.Context, r SpawnRequest) (SpawnResult, error) {
		got = r
		r.Started("ses_child")
		r.Progress()
		return SpawnResult{SessionID: "ses_child", State: rouse.TurnCompleted, Text: "the answer"}, nil
	}
	end := use(t, b, "task", obj{"description": "Do it", "prompt": "all of it", "subagent_type": "worker"})
	if end.Error != "" || !strings.Contains(end.Output, `<task id="ses_child" state="completed">`) || !strings.Contains(end.Output, "the answer") {
		t.Errorf("%+v", end)
	}
	if got.ParentSession != b.spec.Session.ID || got.Agent != "worker" || got.Prompt != "all of it" || got.Model.Model != drill.Tool {
		t.Errorf("%+v", got)
	}
	b.sink.Await(t, "the child's session", func(u engine.Update) bool {
		x, ok := u.Body.(engine.ToolStarted)
		return ok && x.State == rouse.ToolRunning && strings.Contains(string(x.Metadata), `"sessionId":"ses_child"`) && x.Title == "Do it"
	})
	b = newBench(t)
	b.deps.Subagents = func() []Agent { return []Agent{{Name: "worker"}} }
	b.deps.Spawn = func(context.Context, SpawnRequest) (SpawnResult, error) {
		return SpawnResult{SessionID: "ses_child", State: rouse.TurnFailed, Failure: &rouse.Failure{Message: "the wall"}}, nil
	}
	if end := use(t, b, "task", obj{"description": "Do it", "prompt": "all", "subagent_type": "worker"}); !strings.Contains(end.Output, `state="failed"`) || !strings.Contains(end.Output, "the wall") {
		t.Errorf("%+v", end)
	}
	b = newBench(t)
	b.deps.Subagents = func() []Agent { return []Agent{{Name: "worker"}} }
	b.deps.Spawn = func(context.Context, SpawnRequest) (SpawnResult, error) { panic("must not be called") }
	b.deps.Depth = func(context.Context, string) (int, error) { return maxDepth, nil }
	if end := use(t, b, "task", obj{"description": "Do it", "prompt": "all", "subagent_type": "worker"}); !strings.Contains(end.Error, "no tool") {
		t.Errorf("too deep: %+v", end)
	}
}

// TestToolPanic: a defect in a tool is the call's failure.
func TestToolPanic(t *testing.T) {
	b := newBench(t)
	b.deps.ListModels = func(context.Context) (string, error) { panic("defect") }
	if end := use(t, b, "list_models", obj{}); !strings.Contains(end.Error, "defect in Rouse") {
		t.Errorf("%+v", end)
	}
}

func TestShellTurn(t *testing.T) {
	b := newBench(t)
	p := b.prompt(drill.Echo, "", 1)
	p.Kind, p.Command = rouse.TurnShell, "echo by hand; cat f"
	b.write(t, "f", "content")
	out := b.run(t, p)
	end := b.ended(t)
	if out.State != rouse.TurnCompleted || end.Output != "by hand\ncontent" || len(b.said()) != 0 {
		t.Errorf("%+v %+v %v", out, end, b.said())
	}
	if b.story() != "step bash(running) done end()" {
		t.Error(b.story())
	}
}

func TestCommandsOf(t *testing.T) {
	for in, want := range map[string][]string{
		"git status":                           {"git status"},
		"git status; rm -rf /":                 {"git status", "rm -rf /"},
		"a && b || c | d & e":                  {"a", "b", "c", "d", "e"},
		"echo 'a; b' \"c && d\"":               {`echo 'a; b' "c && d"`},
		"echo $(rm x)":                         {"rm x", "echo $(rm x)"},
		"echo \"`rm x`\"":                      {"rm x", "echo \"`rm x`\""},
		"diff <(a) <(b)":                       {"a", "b", "diff <(a) <(b)"},
		"FOO=1 BAR='x y' rm z":                 {"rm z"},
		"for i in 1 2; do rm $i; done":         {"for i in 1 2", "rm $i"},
		"if true; then rm x; else exec ls; fi": {"true", "rm x", "ls"},
		"( cd x && make )":                     {"cd x", "make"},
		"make 2>&1 | tee log":                  {"make 2>&1", "tee log"},
		"make &> log":                          {"make &> log"},
		"a # rm x":                             {"a"},
		"a\nb":                                 {"a", "b"},
		"a \\\n b":                             {"a \\\n b"},
		"X=1":                                  {"X=1"},
		"echo \"$(echo \"$(rm x)\")\"":         {"rm x", "echo \"$(rm x)\"", "echo \"$(echo \"$(rm x)\")\""},
		"nohup rm x &":                         {"rm x"},
		"'unclosed; rm":                        {"'unclosed; rm"},
		"while ! curl x; do sleep 1; done; sleep 5": {"curl x", "sleep 1", "sleep 5"},
	} {
		if got := commandsOf(in); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", in, got, want)
		}
	}
}

func TestLongestSleep(t *testing.T) {
	for in, want := range map[string]int{"sleep 300": 300, "make; sleep 2m": 120, "sleep 1h 1": 3601, "echo sleep 300": 0, "sleep x": 0, "sleep 0.5": 0, "a && sleep 121": 121} {
		if got := longestSleep(in); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

func FuzzCommandsOf(f *testing.F) {
	f.Add("a; b $(c `d` \"e\")")
	f.Add("((((((((((")
	f.Fuzz(func(t *testing.T, s string) {
		if len(commandsOf(s)) == 0 {
			t.Fatalf("%q: no command at all", s)
		}
		longestSleep(s)
		outsidePaths(s)
	})
}

func FuzzToolArguments(f *testing.F) {
	f.Add(`{"filePath":"a","offset":-1,"limit":1e99}`)
	f.Add(`{"pattern":"**","todos":[],"oldString":""}`)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) {
			return
		}
		c := &conversation{deps: depsOf(&bench{}), sink: discard{}, asks: map[string]*ask{}, seen: map[string]fileStamp{}}
		c.spec.Directory = dir
		deny := []rouse.PermissionRule{{Permission: "external_directory", Pattern: "*", Action: rouse.Deny}, {Permission: "edit", Pattern: "*", Action: rouse.Deny}}
		tn := &turn{c: c, ctx: t.Context(), open: map[string]bool{}, agent: Agent{Rules: deny}}
		for _, x := range []tool{readTool, writeTool, editTool, globTool, grepTool, todoWriteTool} {
			k := &call{t: tn, ctx: t.Context(), id: "c", name: x.name, input: json.RawMessage(in)}
			_, _ = x.run(k)
		}
	})
}

type discard struct{}

func (discard) Update(context.Context, engine.Update) {}
