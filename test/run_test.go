package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var colour = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// run is `opencode run --attach` of the real client; it gives what was printed
// and the exit code.
func (s *server) run(args ...string) (out string, code int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(peers, "opencode"), append([]string{"run", "--attach", s.url}, args...)...)
	cmd.Dir, cmd.Env = s.project, append(s.env(), "OPENCODE_SERVER_PASSWORD="+s.token)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		s.t.Fatalf("opencode run: %v\n%s", err, both.String())
	}
	return colour.ReplaceAllString(both.String(), ""), code
}

// said fails unless the output has all pieces in order.
func said(t *testing.T, out string, pieces ...string) {
	t.Helper()
	rest := out
	for _, p := range pieces {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Errorf("%q is not in the output, or not in its place:\n%s", p, out)
			return
		}
		rest = after
	}
}

func TestRunAttach(t *testing.T) {
	needPeers(t)
	t.Parallel()
	s := serve(t, "echo")
	for _, c := range []struct {
		name string
		args []string
		code int
		out  []string
	}{
		{"plain", []string{"hello"}, 0, []string{"> builder · echo", "hello"}},
		{"tool", []string{"-m", "drill/tool", "do"}, 0, []string{"> builder · tool", "echo drill", "drill", "The tool drill is done."}},
		{"reasoning", []string{"-m", "drill/reason", "--thinking", "do"}, 0, []string{"Thinking:", "First the question, then the answer.", "The answer is 42."}},
		{"agent", []string{"--agent", "plan", "hello"}, 0, []string{"> plan · echo", "hello"}},
		{"opencode's name of the agent", []string{"--agent", "build", "hello"}, 0, []string{"> builder · echo", "hello"}},
		{"file", []string{"what is it", "-f", "README.md"}, 0, []string{"# lab", "what is it"}},
		{"title", []string{"--title", "My title", "hello"}, 0, []string{"hello"}},
		{"variant that the model has not", []string{"--variant", "high", "-m", "drill/echo", "hello"}, 0, []string{"hello"}},
		{"command", []string{"--command", "init", "be short"}, 0, []string{"AGENTS.md", "be short"}},
		{"rejected permission", []string{"-m", "drill/permission", "do"}, 0, []string{"permission requested", "auto-rejecting", "failed"}},
		{"permission with --auto", []string{"--auto", "-m", "drill/permission", "do"}, 0, []string{"$ echo drill-permission", "The permission drill is done."}},
		{"question is not asked", []string{"-m", "drill/question", "do"}, 0, []string{"The question drill is done."}},
		{"retries", []string{"-m", "drill/rate", "do"}, 0, []string{"> builder · rate"}},
		{"broken stream", []string{"-m", "drill/break", "do"}, 0, []string{"This answer is whole."}},
		{"provider 401", []string{"-m", "drill/auth", "do"}, 0, []string{"Error: Incorrect API key provided."}},
		{"usage limit", []string{"-m", "drill/quota", "do"}, 0, []string{"⚠️", "Resets at", "Error: "}},
		{"unknown model", []string{"-m", "drill/nope", "do"}, 1, []string{"has no such model", "usable: drill/echo"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, code := s.run(c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, out)
			}
			said(t, out, c.out...)
		})
	}
	if last := s.last(); last.Directory != s.project {
		t.Errorf("the session works in %s, want %s", last.Directory, s.project)
	}
}

func TestRunAttachSessions(t *testing.T) {
	needPeers(t)
	t.Parallel()
	s := serve(t, "echo")
	s.run("one")
	first := s.last()
	if first.MessageCount != 2 {
		t.Fatalf("%+v", first)
	}
	out, _ := s.run("-c", "two")
	said(t, out, "two")
	if now := s.last(); now.ID != first.ID || now.MessageCount != 4 {
		t.Errorf("-c made %+v", now)
	}
	out, _ = s.run("-s", first.ID, "three")
	said(t, out, "three")
	if now := s.last(); now.ID != first.ID || now.MessageCount != 6 {
		t.Errorf("-s made %+v", now)
	}
	out, _ = s.run("-s", first.ID, "--fork", "four")
	said(t, out, "four")
	if now := s.last(); now.ID == first.ID || now.MessageCount != 8 || !strings.Contains(now.Title, "fork #1") {
		t.Errorf("--fork made %+v", now)
	}
	if out, code := s.run("--password", "wrong", "x"); code == 0 {
		t.Errorf("a wrong password works:\n%s", out)
	}
	if out, code := s.run("-s", "ses_unknown", "x"); code == 0 {
		t.Errorf("an unknown session works:\n%s", out)
	}
}

// The client drops what it has not read when the answer comes: it must have
// everything by then, every time.
func TestRunAttachLosesNothing(t *testing.T) {
	needPeers(t)
	s := serve(t, "tool")
	const times = 12
	for i := range times {
		out, code := s.run("--format", "json", "do")
		var kinds []string
		for line := range strings.Lines(out) {
			var e struct {
				Type, SessionID string
				Part            struct {
					State struct{ Status, Output string }
					Text  string
				}
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("run %d: %v: %s", i, err, line)
			}
			kinds = append(kinds, e.Type)
			if e.Type == "tool_use" && (e.Part.State.Status != "completed" || e.Part.State.Output != "drill\n") {
				t.Errorf("run %d: %s", i, line)
			}
		}
		if got := strings.Join(kinds, " "); got != "step_start tool_use step_finish step_start text step_finish" || code != 0 {
			t.Errorf("run %d: %s (exit %d)", i, got, code)
		}
	}
}
