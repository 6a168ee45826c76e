package proc

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse"
)

// drain reads a pipe to its end beside the test.
func drain(t *testing.T, r io.Reader) <-chan string {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r)
		got <- string(b)
	}()
	return got
}

func TestProcessTalks(t *testing.T) {
	p, err := Start(Command{Shell: `while read -r line; do echo "got $line"; echo "err $line" >&2; done; exit 3`, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	errs := drain(t, p.Stderr)
	out := bufio.NewScanner(p.Stdout)
	for _, word := range []string{"one", "two"} {
		if _, err := io.WriteString(p.Stdin, word+"\n"); err != nil {
			t.Fatal(err)
		}
		if !out.Scan() || out.Text() != "got "+word {
			t.Fatalf("%q %v", out.Text(), out.Err())
		}
	}
	if m := p.Memory(); m < 100<<10 {
		t.Errorf("memory %d", m)
	}
	if alive, rss := LookTree(p.PID()); !alive || rss == 0 {
		t.Errorf("look: %v %d", alive, rss)
	}
	_ = p.Stdin.Close()
	<-p.Ended()
	if e := p.Exit(); e.Code != 3 || e.Killed || e.Reason() != "exit code 3" {
		t.Errorf("%+v", e)
	}
	if s := <-errs; s != "err one\nerr two\n" {
		t.Errorf("%q", s)
	}
}

func TestProcessCannotStart(t *testing.T) {
	for _, c := range []Command{{Argv: []string{"no-such-program-here"}}, {Shell: "true", Dir: filepath.Join(t.TempDir(), "gone")}, {}} {
		if _, err := Start(c); rouse.KindOf(err) != rouse.Invalid || rouse.SafeMessage(err) == "" {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestProcessLeavesNothing: whether it is killed, dies or ends, a child in
// another session that ignores TERM and holds the pipes is gone with it.
func TestProcessLeavesNothing(t *testing.T) {
	script := `setsid sh -c 'trap "" TERM; echo $$ > escaped; while :; do sleep 0.05; done' &
while [ ! -s escaped ]; do sleep 0.01; done; echo ready; `
	for _, c := range []struct {
		name, then string
		end        func(p *Process)
		want       func(Exit) bool
	}{
		{"killed", "sleep 1000", func(p *Process) { p.Kill(t.Context()) }, func(e Exit) bool { return e.Killed && e.Signal == "terminated" }},
		{"killed, deaf", "while :; do sleep 0.05; done", func(p *Process) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			p.Kill(ctx)
		}, func(e Exit) bool { return e.Killed && e.Signal == "killed" }},
		{"dies", "sleep 1000", func(p *Process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL); <-p.Ended() }, func(e Exit) bool { return !e.Killed && e.Signal == "killed" }},
		{"ends", "read line; exit 0", func(p *Process) { _ = p.Stdin.Close(); <-p.Ended() }, func(e Exit) bool { return !e.Killed && e.Code == 0 && e.Signal == "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			p, err := Start(Command{Dir: dir, Shell: deaf(c.name) + script + c.then})
			if err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(p.Stdout)
			if line, err := out.ReadString('\n'); strings.TrimSpace(line) != "ready" {
				t.Fatal(line, err)
			}
			escaped := pidFrom(t, filepath.Join(dir, "escaped"))
			rest := drain(t, out)
			c.end(p)
			if !c.want(p.Exit()) {
				t.Errorf("%+v", p.Exit())
			}
			gone(t, escaped)
			if s := <-rest; s != "" {
				t.Errorf("%q", s)
			}
			for range 2 {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// deaf makes the shell of the deaf case ignore TERM from its first line on.
func deaf(name string) string {
	if strings.HasSuffix(name, "deaf") {
		return "trap '' TERM; "
	}
	return ""
}

// gone waits for a killed process to be reaped by whoever inherited it.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); alive(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
		<-time.After(time.Millisecond)
	}
}

func TestProcessSuspended(t *testing.T) {
	p, err := Start(Command{Shell: "while read -r line; do echo $line; done"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out := bufio.NewReader(p.Stdout)
	p.Suspend()
	if _, err := io.WriteString(p.Stdin, "late\n"); err != nil {
		t.Fatal(err)
	}
	_ = p.Stdout.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if line, err := out.ReadString('\n'); err == nil {
		t.Fatalf("a stopped process said %q", line)
	}
	_ = p.Stdout.SetReadDeadline(time.Time{})
	p.Continue()
	if line, err := out.ReadString('\n'); err != nil || line != "late\n" {
		t.Fatal(line, err)
	}
}

// TestProcessDoesNotRead: a writer is not held up by a program that never
// reads.
func TestProcessDoesNotRead(t *testing.T) {
	p, err := Start(Command{Shell: "sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_ = p.Stdin.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := p.Stdin.Write(make([]byte, 1<<20)); err == nil {
		t.Error("a megabyte was taken by nobody")
	}
}

// TestMarksAreInherited: what a Rouse program starts that was itself started by
// one carries both marks.
func TestMarksAreInherited(t *testing.T) {
	t.Setenv(marker, "outer")
	p, err := Start(Command{Shell: "setsid sleep 1000 & echo $" + marker + "; wait"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	line, err := bufio.NewReader(p.Stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "outer ") || len(strings.Fields(line)) != 2 {
		t.Fatalf("%q %v", line, err)
	}
	for deadline := time.Now().Add(10 * time.Second); signalMarked(marker+"=outer", 0, 0) != 2; { // the child may be between fork and exec
		if time.Now().After(deadline) {
			t.Fatalf("the outer mark finds %d processes", signalMarked(marker+"=outer", 0, 0))
		}
		<-time.After(time.Millisecond)
	}
	if n := signalMarked(p.run.mark, 0, 0); n != 2 {
		t.Errorf("the own mark finds %d processes", n)
	}
	p.Kill(t.Context())
	if n := signalMarked(marker+"=outer", 0, 0); n != 0 {
		t.Errorf("%d are left", n)
	}
}
