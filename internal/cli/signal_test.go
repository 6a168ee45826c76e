package cli

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"rouse/internal/drill"
)

// served is a server in a process of its own.
type served struct {
	t   *testing.T
	dir string
	env []string
	cmd *exec.Cmd
	out *bufio.Reader
	log *os.File // the reading end of its stderr
}

// serveApart starts a server whose configuration is conf.
func serveApart(t *testing.T, conf string) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir()}
	file := filepath.Join(s.dir, "rouse.json")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "HOME="+s.dir, "ROUSE_KEYRING=off", "NO_COLOR=1", "ROUSE_DATA="+filepath.Join(s.dir, "data"),
		"ROUSE_CONFIG="+file, "GORACE=atexit_sleep_ms=0")
	s.cmd = s.command("serve", "--ready-json", "--port", "0", "--drill")
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr, s.log = write, read
	err = s.cmd.Start()
	_ = write.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where it has not ended
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
		_ = read.Close()
	})
	s.out = bufio.NewReader(out)
	if _, err := s.out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *served) command(args ...string) *exec.Cmd {
	cmd := exec.Command("rouse", args...)
	cmd.Env, cmd.Dir = s.env, s.dir
	return cmd
}

// A second signal ends the server at once, and with it an agent that takes no
// notice of SIGTERM.
func TestSecondSignal(t *testing.T) {
	s := serveApart(t, `{"acp": {"stubborn": {"command": ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]}}}`)
	launch := s.command("launch", "--agent", "stubborn", "hello")
	if err := launch.Start(); err != nil {
		t.Fatal(err)
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	session := ""
	for deadline := time.Now().Add(30 * time.Second); session == "" || drill.Marked(session) == 0; <-poll.C {
		if time.Now().After(deadline) {
			t.Fatal("no agent runs")
		}
		list, _ := s.command("ps", "--json").Output() // it is asked again
		_, id, _ := bytes.Cut(list, []byte(`"ses_`))
		if id, _, found := bytes.Cut(id, []byte(`"`)); found {
			session = "ses_" + string(id)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	for over := false; !over; {
		_ = s.cmd.Process.Signal(syscall.SIGTERM) // several that wait are one
		select {
		case <-ended:
			over = true
		case <-poll.C:
		}
	}
	_ = launch.Wait() // its server is gone
	if code := s.cmd.ProcessState.ExitCode(); code != exitInterrupt {
		t.Errorf("exit code %d", code)
	}
	if n := drill.Marked(session); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// A server whose log nobody reads any more goes on.
func TestNobodyReads(t *testing.T) {
	s := serveApart(t, `{}`)
	_ = s.log.Close()
	for range 2 { // each is a line of the log
		if out, err := s.command("run", "-m", "drill/echo", "hello").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("hello")) {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// An output that nobody reads ends a run in order: what it started is ended.
func TestNobodyReadsARun(t *testing.T) {
	dir := t.TempDir()
	run := exec.Command("rouse", "run", "-m", "drill/stream", "hello")
	run.Dir, run.Env = dir, append(os.Environ(), "HOME="+dir, "ROUSE_KEYRING=off", "ROUSE_DATA="+filepath.Join(dir, "data"), "GORACE=atexit_sleep_ms=0")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	run.Stdout = write
	_ = read.Close()
	err = run.Start()
	_ = write.Close()
	if err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // with the code of an interrupt
	if code := run.ProcessState.ExitCode(); code != exitInterrupt {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "server.json")); err == nil {
		t.Error("its server did not end in order")
	}
}
