package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tui is `opencode attach` of the real client in a terminal of its own.
type tui struct {
	t      *testing.T
	socket string
	env    []string
}

func (s *server) attach(args ...string) *tui {
	s.t.Helper()
	u := &tui{t: s.t, socket: filepath.Join(s.t.TempDir(), "tmux"), env: s.env()}
	command := fmt.Sprintf("exec '%s' attach %s --password %s %s", filepath.Join(peers, "opencode"), s.url, s.token, strings.Join(args, " "))
	conf := filepath.Join(s.t.TempDir(), "tmux.conf") // what a client that ended said is still on the screen
	s.write(conf, "set -g remain-on-exit on\n")
	u.tmux("-f", conf, "new-session", "-d", "-x", "130", "-y", "45", "-c", s.project, command)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the screen:\n%s", u.screen())
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(u.tmux("display-message", "-p", "#{pane_pid}")))
		_ = exec.Command("tmux", "-S", u.socket, "kill-server").Run()
		gone(pid)
	})
	u.starts()
	return u
}

func (u *tui) tmux(args ...string) string {
	u.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", u.socket}, args...)...)
	cmd.Env = u.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("tmux %v: %v %s", args, err, out)
	}
	return string(out)
}

func (u *tui) screen() string {
	cmd := exec.Command("tmux", "-S", u.socket, "capture-pane", "-p")
	cmd.Env = u.env
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// sees waits until all pieces are on the screen.
func (u *tui) sees(pieces ...string) {
	u.t.Helper()
	u.until(strings.Join(pieces, ", "), func() bool {
		screen := u.screen()
		for _, p := range pieces {
			if !strings.Contains(screen, p) {
				return false
			}
		}
		return true
	})
}

func (u *tui) until(what string, ok func() bool) {
	u.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			u.t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// starts waits until the client shows something. OpenCode 1.18.33 was seen to
// end at its start, once in about a hundred: where that was looked into, the
// token began with "-", which none does any more. Should there be another
// reason, it is started once more, and what it said is logged.
func (u *tui) starts() {
	u.t.Helper()
	for again := true; ; again = false {
		dead := false
		u.until("the client's first screen", func() bool {
			drawn := strings.TrimSpace(u.screen()) != "" // read first: a dead pane says so on it
			dead = strings.TrimSpace(u.tmux("display-message", "-p", "#{pane_dead}")) == "1"
			return dead || drawn
		})
		if !dead {
			return
		}
		u.t.Logf("the client ended at its start:\n%s", u.screen())
		if !again {
			u.t.Fatal("the client does not start")
		}
		u.tmux("respawn-pane")
	}
}

// says types a prompt and sends it when the terminal shows it.
func (u *tui) says(text string) {
	u.t.Helper()
	u.sees("Ask anything")
	u.types(text)
}

func (u *tui) types(text string) {
	u.t.Helper()
	u.tmux("send-keys", "-l", text)
	u.sees(text)
	u.press("Enter")
}

func (u *tui) press(keys ...string) {
	u.t.Helper()
	u.tmux(append([]string{"send-keys"}, keys...)...)
}

// ended waits until the last session is idle with an outcome.
func (u *tui) ended(s *server, outcome string) {
	u.t.Helper()
	u.until("outcome "+outcome, func() bool {
		list := s.sessions()
		return len(list) > 0 && list[0].State == "idle" && list[0].Outcome == outcome
	})
}

func TestTUIPromptAndReopen(t *testing.T) {
	needPeers(t, "tmux")
	t.Parallel()
	s := serve(t, "echo")
	u := s.attach()
	u.says("hello from the terminal")
	u.ended(s, "completed")
	u.sees("▣  Builder · Drill echo ·")
	u.types("and a second prompt")
	u.until("two answers", func() bool { return s.messages() == 4 && s.state() == "idle" })
	u.sees("hello from the terminal", "and a second prompt")

	again := s.attach("-s", s.last().ID, "--dir", s.project)
	again.sees("hello from the terminal", "and a second prompt")
	again.types("third, after coming back")
	again.until("three answers", func() bool { return s.messages() == 6 && s.state() == "idle" })
	u.sees("third, after coming back") // the first terminal follows
}

func TestTUILiveStream(t *testing.T) {
	needPeers(t, "tmux")
	t.Parallel()
	s := serve(t, "stream")
	u := s.attach()
	u.says("[[drill tokens=400 rate=20]]")
	shown := 0
	for range 3 { // the text grows while the turn runs
		u.until("more text", func() bool {
			n := len(strings.Fields(u.screen()))
			grown := n > shown+5
			if grown {
				shown = n
			}
			return grown && s.state() == "generating"
		})
	}
	u.press("Escape")
	u.sees("again to interrupt")
	u.press("Escape")
	u.ended(s, "cancelled")
	u.sees("interrupted")
}

func TestTUITool(t *testing.T) {
	needPeers(t, "tmux")
	t.Parallel()
	s := serve(t, "tool")
	u := s.attach()
	u.says("use a tool")
	u.sees("$ echo drill", "The tool drill is done.")
	u.ended(s, "completed")
}

func TestTUIPermission(t *testing.T) {
	needPeers(t, "tmux")
	t.Parallel()
	s := serve(t, "permission")
	u := s.attach()
	u.says("ask me")
	u.sees("Permission required", "Allow once")
	u.press("Enter")
	u.sees("The permission drill is done.")
	u.ended(s, "completed")
}

func TestTUIPermissionRejected(t *testing.T) {
	needPeers(t, "tmux")
	t.Parallel()
	s := serve(t, "permission")
	u := s.attach()
	u.says("ask me")
	u.sees("Permission required")
	u.press("Escape")
	u.until("the request is answered", func() bool {
		var open []any
		s.call("GET", "/permission", nil, &open)
		return len(open) == 0
	})
	u.until("idle", func() bool { return s.state() == "idle" })
}

func TestTUIQuestion(t *testing.T) {
	needPeers(t, "tmux")
	t.Parallel()
	s := serve(t, "question")
	u := s.attach()
	u.says("ask me")
	u.sees("Which way?", "1. Left", "2. Right")
	u.press("Down")
	u.press("Enter")
	u.sees("Right", "The question drill is done.")
	u.ended(s, "completed")
}

func TestTUIAbortHang(t *testing.T) {
	needPeers(t, "tmux")
	t.Parallel()
	s := serve(t, "hang")
	u := s.attach()
	u.says("hang on")
	u.sees("Let me think about it", "interrupt")
	u.press("Escape")
	u.sees("again to interrupt")
	u.press("Escape")
	u.sees("interrupted")
	u.ended(s, "cancelled")
}

func TestTUIFailure(t *testing.T) {
	needPeers(t, "tmux")
	t.Parallel()
	s := serve(t, "quota")
	u := s.attach()
	u.says("work")
	u.sees("usage limit reached")
	u.ended(s, "failed")
}

// gone waits until a program has left; one that does not want to is killed.
func gone(pid int) {
	if pid <= 1 {
		return
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(10 * time.Second)
	for syscall.Kill(pid, 0) == nil {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-tick.C
	}
}
