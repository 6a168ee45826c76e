package native

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
)

func rule(permission, pattern string, a rouse.Action) rouse.PermissionRule {
	return rouse.PermissionRule{Permission: permission, Pattern: pattern, Action: a}
}

// asking runs a turn and answers its first request.
func (b *bench) asking(t *testing.T, p rouse.Prompt, r rouse.Reply) (engine.Outcome, rouse.Request) {
	t.Helper()
	c := b.open(t)
	done := make(chan engine.Outcome, 1)
	go func() { done <- c.Prompt(t.Context(), p) }()
	var req rouse.Request
	b.sink.Await(t, "a request", func(u engine.Update) bool {
		switch x := u.Body.(type) {
		case engine.PermissionAsked:
			req = x.Request
		case engine.QuestionAsked:
			req = x.Request
		}
		return req.ID != ""
	})
	if err := c.Answer(t.Context(), req.ID, r); err != nil {
		t.Fatal(err)
	}
	return <-done, req
}

func TestPermissionReplies(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply rouse.Reply
		story string
		err   string
	}{
		{"once", rouse.Reply{Verb: rouse.ReplyOnce}, "step bash(pending) asked(bash) bash(running) done end(tool-calls) step text end(stop)", ""},
		{"reject", rouse.Reply{Verb: rouse.ReplyReject}, "step bash(pending) asked(bash) bash(running) failed end(tool-calls)", "rejected permission"},
		{"reject with words", rouse.Reply{Verb: rouse.ReplyReject, Message: "use make"}, "step bash(pending) asked(bash) bash(running) failed end(tool-calls) step text end(stop)", "use make"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.rules = []rouse.PermissionRule{rule("bash", "*", rouse.Ask)}
			out, req := b.asking(t, b.prompt(drill.Tool, "hi", 1), c.reply)
			if out.State != rouse.TurnCompleted || b.story() != c.story {
				t.Errorf("%+v\n got %s\nwant %s", out, b.story(), c.story)
			}
			if req.Permission != "bash" || !slices.Equal(req.Patterns, []string{"echo drill"}) || !slices.Equal(req.Always, []string{"echo *"}) || string(req.Metadata) != `{"command":"echo drill"}` {
				t.Errorf("%+v %s", req, req.Metadata)
			}
			if end := b.ended(t); !strings.Contains(end.Error, c.err) {
				t.Errorf("%+v", end)
			}
		})
	}
}

// TestAlways: what was allowed for good is not asked for again in this
// conversation, and an open request that it covers is let go.
func TestAlways(t *testing.T) {
	b := newBench(t)
	b.rules = []rouse.PermissionRule{rule("bash", "*", rouse.Ask)}
	c := b.open(t)
	for g := uint64(1); g <= 2; g++ {
		done := make(chan engine.Outcome, 1)
		go func() {
			done <- c.Prompt(t.Context(), b.prompt(drill.Tool, fmt.Sprintf("[[drill cmd=\"echo %d\"]]", g), g))
		}()
		if g == 1 {
			req := b.sink.Await(t, "a request", func(u engine.Update) bool { _, ok := u.Body.(engine.PermissionAsked); return ok }).Body.(engine.PermissionAsked).Request
			if err := c.Answer(t.Context(), req.ID, rouse.Reply{Verb: rouse.ReplyAlways}); err != nil {
				t.Fatal(err)
			}
		}
		if out := <-done; out.State != rouse.TurnCompleted {
			t.Fatalf("%+v", out)
		}
	}
	if n := strings.Count(b.story(), "asked"); n != 1 {
		t.Errorf("asked %d times: %s", n, b.story())
	}
}

func TestDeny(t *testing.T) {
	for _, c := range []struct {
		name, cmd string
		rules     []rouse.PermissionRule
		denied    bool
	}{
		{"by pattern", "rm x", []rouse.PermissionRule{rule("bash", "rm *", rouse.Deny)}, true},
		{"another command", "true", []rouse.PermissionRule{rule("bash", "rm *", rouse.Deny)}, false},
		{"hidden behind another", "true; rm x", []rouse.PermissionRule{rule("bash", "rm *", rouse.Deny)}, true},
		{"hidden in a substitution", "echo $(rm x)", []rouse.PermissionRule{rule("bash", "rm *", rouse.Deny)}, true},
		{"allowed first command only", "git status && touch evil", []rouse.PermissionRule{rule("bash", "*", rouse.Deny), rule("bash", "git *", rouse.Allow)}, true},
		{"the last rule wins", "rm x", []rouse.PermissionRule{rule("bash", "*", rouse.Deny), rule("bash", "rm *", rouse.Allow)}, false},
	} {
		b := newBench(t)
		b.rules = c.rules
		in, _ := json.Marshal(obj{"command": c.cmd})
		out := b.run(t, b.prompt(drill.Tool, "[[drill tool=bash input='"+string(in)+"']]", 1))
		end := b.ended(t)
		if denied := strings.Contains(end.Error, "specified a rule"); denied != c.denied || out.State != rouse.TurnCompleted {
			t.Errorf("%s: %+v %+v", c.name, out, end)
		}
	}
}

// TestNotOffered: a tool that is denied whatever it does is not offered.
func TestNotOffered(t *testing.T) {
	b := newBench(t)
	b.rules = []rouse.PermissionRule{rule("question", "*", rouse.Deny)}
	out := b.run(t, b.prompt(drill.Question, "hi", 1))
	if out.State != rouse.TurnCompleted || strings.Contains(b.story(), "question") {
		t.Errorf("%+v: %s", out, b.story())
	}
	b = newBench(t)
	p := b.prompt(drill.Tool, "hi", 1)
	p.Tools = map[string]bool{"bash": false}
	if out := b.run(t, p); out.State != rouse.TurnCompleted || strings.Contains(b.story(), "bash") {
		t.Errorf("%+v: %s", out, b.story())
	}
}

// TestUnattended: where nobody is, what would ask is rejected at once and the
// model is told why.
func TestUnattended(t *testing.T) {
	b := newBench(t)
	p := b.prompt(drill.Permission, "hi", 1)
	p.Unattended = true
	out := b.run(t, p)
	if end := b.ended(t); out.State != rouse.TurnCompleted || strings.Contains(b.story(), "asked") || !strings.Contains(end.Error, "unattended") {
		t.Errorf("%+v %+v %s", out, end, b.story())
	}
}

func TestOutside(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, tool string
		args       obj
		asks       bool
	}{
		{"read outside", "read", obj{"filePath": secret}, true},
		{"read by dots", "read", obj{"filePath": "../x"}, true},
		{"read through a link", "read", obj{"filePath": "link/secret"}, true},
		{"write through a link", "write", obj{"filePath": "link/new", "content": "x"}, true},
		{"glob outside", "glob", obj{"pattern": outside + "/*"}, true},
		{"grep outside", "grep", obj{"pattern": "x", "path": outside}, true},
		{"bash workdir", "bash", obj{"command": "ls", "workdir": outside}, true},
		{"bash path", "bash", obj{"command": "cat " + secret}, true},
		{"inside", "read", obj{"filePath": "f"}, false},
		{"inside, absolute", "bash", obj{"command": "ls -l f"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.write(t, "f", "x")
			if err := os.Symlink(outside, filepath.Join(b.dir, "link")); err != nil {
				t.Fatal(err)
			}
			p := b.prompt(drill.Tool, calling(c.tool, c.args), 1)
			if !c.asks {
				b.run(t, p)
				if strings.Contains(b.story(), "asked") {
					t.Error(b.story())
				}
				return
			}
			out, req := b.asking(t, p, rouse.Reply{Verb: rouse.ReplyReject})
			if out.State != rouse.TurnCompleted || req.Permission != "external_directory" || !strings.HasSuffix(req.Patterns[0], "/*") {
				t.Errorf("%+v %+v", out, req)
			}
			if _, err := os.Stat(filepath.Join(outside, "new")); err == nil {
				t.Error("it was written all the same")
			}
		})
	}
}

func TestQuestionReplies(t *testing.T) {
	for _, c := range []struct {
		name    string
		reply   rouse.Reply
		story   string
		out, er string
	}{
		{"answered", rouse.Reply{Verb: rouse.ReplyAnswer, Answers: [][]string{{"Left"}}}, "step question(pending) asked(question) question(running) done end(tool-calls) step text end(stop)", `"Which way?": "Left"`, ""},
		{"dismissed", rouse.Reply{Verb: rouse.ReplyReject}, "step question(pending) asked(question) question(running) failed end(tool-calls)", "", "user dismissed"},
		{"superseded", rouse.Reply{Verb: rouse.ReplyReject, By: "superseded", Message: "a new prompt came"}, "step question(pending) asked(question) question(running) failed end(tool-calls) step text end(stop)", "", "a new prompt came"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			out, req := b.asking(t, b.prompt(drill.Question, "hi", 1), c.reply)
			end := b.ended(t)
			if out.State != rouse.TurnCompleted || b.story() != c.story || !strings.Contains(end.Output, c.out) || !strings.Contains(end.Error, c.er) {
				t.Errorf("%+v %+v\n got %s\nwant %s", out, end, b.story(), c.story)
			}
			if len(req.Questions) != 1 || len(req.Questions[0].Options) != 2 {
				t.Errorf("%+v", req)
			}
		})
	}
}
