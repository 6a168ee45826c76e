package proc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"rouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		exit               int
	}{
		{"output of both", "echo out; echo err >&2", "out\nerr\n", 0},
		{"exit code", "exit 3", "", 3},
		{"a signal", "kill -9 $$", "", -1},
		{"no input", "cat", "", 0},
		{"invalid bytes", `printf 'a\377b'`, "a\ufffdb", 0},
		{"environment", "echo $GIVEN", "yes\n", 0},
	} {
		res, err := Run(t.Context(), Command{Dir: t.TempDir(), Shell: c.script, Env: []string{"GIVEN=yes"}})
		if err != nil || res.Output != c.want || res.Exit != c.exit || res.Killed || res.Truncated {
			t.Errorf("%s: %+v, %v", c.name, res, err)
		}
	}
	if res, err := Run(t.Context(), Command{Argv: []string{"echo", "a b"}}); err != nil || res.Output != "a b\n" {
		t.Errorf("argv: %+v, %v", res, err)
	}
}

func TestSecretsStayHere(t *testing.T) {
	t.Setenv("ROUSE_TOKEN", "the-token")
	res, err := Run(t.Context(), Command{Shell: "env"})
	if err != nil || strings.Contains(res.Output, "the-token") {
		t.Fatalf("%v: the token is in the child's environment", err)
	}
}

func TestCannotStart(t *testing.T) {
	for _, c := range []Command{{Argv: []string{"no-such-program-here"}}, {Shell: "true", Dir: filepath.Join(t.TempDir(), "gone")}, {}} {
		if _, err := Run(t.Context(), c); rouse.KindOf(err) != rouse.Invalid || rouse.SafeMessage(err) == "" {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	res, err := Run(t.Context(), Command{Shell: "printf 'first\n'; head -c 3000000 /dev/zero | tr '\\0' 'é'; printf 'last'", MaxOutput: 1000})
	if err != nil || !res.Truncated || len(res.Output) > 1100 || !strings.HasPrefix(res.Output, "first\n") || !strings.HasSuffix(res.Output, "last") || !utf8.ValidString(res.Output) {
		t.Fatalf("%v, %d bytes: %.80q", err, len(res.Output), res.Output)
	}
}

func TestTimeout(t *testing.T) {
	res, err := Run(t.Context(), Command{Shell: "echo before; sleep 100", Timeout: 100 * time.Millisecond})
	if err != nil || !res.TimedOut || !res.Killed || res.Output != "before\n" {
		t.Fatalf("%+v, %v", res, err)
	}
}

func TestOnOutput(t *testing.T) {
	var told []string
	res, err := Run(t.Context(), Command{Shell: "echo one; sleep 0.8; echo two; sleep 0.8", OnOutput: func(s string) { told = append(told, s) }})
	if err != nil || res.Output != "one\ntwo\n" || len(told) != 2 || told[0] != "one\n" || told[1] != "one\ntwo\n" {
		t.Fatalf("%+v, %v, told %q", res, err, told)
	}
}

// pidFrom waits until a script wrote a process id to a file.
func pidFrom(t *testing.T, path string) int {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if b, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(b), "\n") {
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
		select {
		case <-t.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Fatalf("%s was not written", path)
	return 0
}

// alive reports a process that runs; a zombie does not.
func alive(pid int) bool {
	return syscall.Kill(pid, 0) == nil && groupOf(strconv.Itoa(pid)) != 0
}

// TestCancelKillsAll: the shell, its child, a child that ignores TERM, and one
// that left the group and the session are gone when Run returns.
func TestCancelKillsAll(t *testing.T) {
	dir := t.TempDir()
	file := func(n string) string { return filepath.Join(dir, n) }
	script := `trap '' TERM
sleep 1000 & echo $! > child
( trap '' TERM; echo $BASHPID > deaf; while :; do sleep 0.05; done ) &
setsid sh -c 'echo $$ > escaped; exec sleep 1000' &
wait; wait; wait`
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	var res Result
	go func() {
		var err error
		res, err = Run(ctx, Command{Dir: dir, Shell: script})
		done <- err
	}()
	pids := []int{pidFrom(t, file("child")), pidFrom(t, file("deaf")), pidFrom(t, file("escaped"))}
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("process %d did not start", pid)
		}
	}
	start := time.Now()
	cancel(why)
	if err := <-done; !errors.Is(err, why) || !res.Killed {
		t.Fatalf("%+v, %v", res, err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

// TestOrphanHoldsThePipe: a background child that keeps the output open does
// not hold Run up, and Sweep finds it.
func TestOrphanHoldsThePipe(t *testing.T) {
	dir := t.TempDir()
	entry := "ROUSE_SESSION=ses_sweeptest" + strconv.Itoa(os.Getpid())
	start := time.Now()
	res, err := Run(t.Context(), Command{Dir: dir, Shell: "sleep 1000 & echo $! > pid; echo started", Env: []string{entry}})
	if err != nil || res.Output != "started\n" || res.Exit != 0 || time.Since(start) > 5*time.Second {
		t.Fatalf("%+v, %v after %v", res, err, time.Since(start))
	}
	pid := pidFrom(t, filepath.Join(dir, "pid"))
	if !alive(pid) {
		t.Fatal("the background child is gone")
	}
	if n := Sweep(t.Context(), entry); n != 1 {
		t.Errorf("swept %d", n)
	}
	if alive(pid) {
		t.Error("the background child is still there")
	}
	if n := Sweep(t.Context(), entry); n != 0 {
		t.Errorf("swept %d more", n)
	}
}

func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Command{Shell: "true"}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("aé\n"), 3, 4)
	f.Fuzz(func(t *testing.T, b []byte, limit, times int) {
		if limit < 1 || limit > 1000 || times < 1 || times > 50 {
			return
		}
		o := &output{max: limit}
		for range times {
			_, _ = o.Write(b)
		}
		s, cut := o.text()
		if !utf8.ValidString(s) {
			t.Fatalf("%q", s)
		}
		if !cut && s != strings.ToValidUTF8(strings.Repeat(string(b), times), "\ufffd") {
			t.Fatalf("%q", s)
		}
	})
}
