package test

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// named gives a program of the table.
func named(t *testing.T, name string) program {
	t.Helper()
	for _, p := range programs() {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("there is no program %s", name)
	return program{}
}

// TestAgentOpenCodeShared has two sessions in one process: one meets a limit,
// and the other does not notice.
func TestAgentOpenCodeShared(t *testing.T) {
	t.Parallel()
	l := agent(t, named(t, "opencode"), map[string]any{"processes": "shared"})
	a, b := l.chat(), l.chat()
	a.asks(playHang)
	b.asks(playHang)
	if x, y := a.works(), b.works(); x != y {
		t.Fatalf("the sessions have processes of their own, %d and %d", x, y)
	}
	a.abort()
	b.abort()
	a.settles()
	b.settles()
	pid := b.speaks()
	a.asks(playQuota)
	if outcome := a.settles(); outcome != "failed" {
		t.Fatalf("the session behind the limit is %s", outcome)
	}
	if i := a.health().Incident; i == nil || i.Kind != "provider_quota_limited" {
		t.Errorf("its incident is %+v", i)
	}
	if s := b.state(); s.State != "generating" {
		t.Errorf("the other one is %+v", s)
	}
	if outcome := b.settles(); outcome != "completed" {
		t.Errorf("the other one is %s: %+v", outcome, b.health())
	}
	if syscall.Kill(pid, 0) != nil {
		t.Error("the process they share is gone")
	}
}

// speaks starts an answer of some seconds and waits for its beginning.
func (c *chat) speaks() (pid int) {
	c.t.Helper()
	c.asks("[[drill tokens=100 rate=20]]")
	c.until("the beginning of an answer", func() bool {
		pid = c.health().Evidence.Process.PID
		_, text := c.answer()
		return pid != 0 && strings.Count(text, " ") > 3
	})
	return pid
}

// TestAgentOpenCodeServerKilled kills the server while the agent works.
func TestAgentOpenCodeServerKilled(t *testing.T) {
	t.Parallel()
	l := agent(t, named(t, "opencode"), nil)
	c := l.chat()
	c.asks("remember the heron")
	c.settles()
	c.asks(playHang)
	c.works()
	left := newMarks(t)
	left.of(l.cmd.Process.Pid)
	l.kill()
	l.start()
	left.gone()
	if outcome := c.settles(); outcome != "interrupted" {
		t.Errorf("the turn is %s", outcome)
	}
	c.recalls("remember the heron")
}

// TestAgentOpenCodeEnds has no process left when its session is deleted, nor
// when the server ends.
func TestAgentOpenCodeEnds(t *testing.T) {
	t.Parallel()
	l := agent(t, named(t, "opencode"), nil)
	first := l.chat()
	first.asks(playHang)
	left := newMarks(t)
	left.only(first.works())
	first.call("DELETE", "/session/"+first.id, nil, nil)
	left.gone()

	second := l.chat()
	second.asks(playHang)
	second.works()
	left.of(l.cmd.Process.Pid)
	if len(left.left()) == 0 && len(processes()) > 0 {
		t.Error("the agent that works has no mark")
	}
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	if err := l.cmd.Wait(); err != nil {
		t.Errorf("the server: %v", err)
	}
	l.cmd = nil
	left.gone()
}

// TestAgentTUI shows agents' sessions in OpenCode's terminal: text, a tool and
// a permission, as those of its own.
func TestAgentTUI(t *testing.T) {
	for _, name := range []string{"opencode", "claude"} {
		t.Run(name, func(t *testing.T) {
			needPeers(t, "tmux")
			t.Parallel()
			l := agent(t, named(t, name), nil)
			c := l.chat()
			c.asks("first words")
			c.settles()
			u := l.attach("-s", c.id, "--dir", l.project)
			u.sees("first words")
			if strings.Contains(u.screen(), "is not valid") {
				t.Errorf("the terminal does not know the session's model:\n%s", u.screen())
			}
			u.types(playTool)
			u.sees("Permission required", "$ echo drilled", "Allow once")
			u.press("Enter")
			u.sees("The tool drill is done.")
			u.sees("$ echo drilled")
			u.types("typed in the terminal")
			u.until("three answers", func() bool { s := c.state(); return s.MessageCount == 6 && s.State == "idle" })
			if _, text := c.answer(); !strings.Contains(text, "typed in the terminal") {
				t.Errorf("it answered %q", text)
			}
			if os.Getenv("ROUSE_SHOW") != "" {
				t.Logf("the screen:\n%s", u.screen())
			}
		})
	}
}
