package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// tests runs the tests and looks for goroutines that were left behind.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	code := t.m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"rouse": func() {
			os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
		"leaky-agent": leakyAgent,
	})
}

// TestScripts runs the program as people and scripts do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("ROUSE_KEYRING", "off")
			e.Setenv("NO_COLOR", "1")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // a second at each end otherwise
			return os.MkdirAll(e.WorkDir+"/home", 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"serve":  serveInBackground,
			"vendor": vendorInBackground,
			"signal": signalAt(os.Interrupt),
			"urge":   signalAt(os.Interrupt, syscall.SIGTERM),
			"jsonl":  jsonLines,
		},
	})
}

// exits runs a command and wants its exit code: exits 3 rouse run …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// start runs rouse in the script's place.
func start(ts *testscript.TestScript, args []string) (*exec.Cmd, *bufio.Scanner) {
	path := ""
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), string(os.PathListSeparator)) {
		if st, err := os.Stat(dir + "/rouse"); err == nil && !st.IsDir() {
			path = dir + "/rouse"
			break
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "ROUSE_KEYRING", "NO_COLOR", "ROUSE_DATA", "ROUSE_CONFIG", "TMPDIR", "GOCOVERDIR", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Stderr = os.Stderr
	if !testing.Verbose() {
		cmd.Stderr = nil
	}
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// serveInBackground starts `rouse serve --ready-json --port 0 ARGS` and stops
// it at the end: serve [ARGS…]. It sets URL and TOKEN_FILE.
func serveInBackground(ts *testscript.TestScript, _ bool, args []string) {
	cmd, out := start(ts, append([]string{"serve", "--ready-json", "--port", "0"}, args...))
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		for out.Scan() {
			ts.Fatalf("serve: more than one line on stdout: %s", out.Text())
		}
		if err := cmd.Wait(); err != nil {
			ts.Fatalf("serve: told to stop, it ended with %v", err)
		}
	})
	if !out.Scan() {
		ts.Fatalf("the server did not start")
	}
	var ready struct {
		URL       string
		TokenFile string `json:"token_file"`
		PID       int
		Data      string
	}
	if err := json.Unmarshal(out.Bytes(), &ready); err != nil || ready.PID != cmd.Process.Pid || ready.Data == "" {
		ts.Fatalf("ready line %q: %v", out.Text(), err)
	}
	ts.Setenv("URL", ready.URL)
	ts.Setenv("TOKEN_FILE", ready.TokenFile)
	ts.Setenv("SERVER_PID", strconv.Itoa(ready.PID))
}

// vendorInBackground starts `rouse drill provider` as another program would
// see it, and sets VENDOR to its address.
func vendorInBackground(ts *testscript.TestScript, _ bool, _ []string) {
	cmd, out := start(ts, []string{"drill", "provider", "--json"})
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was told to end
	})
	if !out.Scan() {
		ts.Fatalf("the provider did not start")
	}
	var ready struct{ URL string }
	ts.Check(json.Unmarshal(out.Bytes(), &ready))
	ts.Setenv("VENDOR", ready.URL)
}

// signalAt runs rouse, sends it signals at the first line of stdout that holds
// a text, and wants an exit code: signal 130 TEXT ARGS…
func signalAt(signals ...os.Signal) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		cmd, out := start(ts, args[2:])
		kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		sent := false
		for out.Scan() {
			ts.Logf("%s", out.Text())
			if !sent && strings.Contains(out.Text(), args[1]) {
				sent = true
				for _, s := range signals {
					ts.Check(cmd.Process.Signal(s))
				}
			}
		}
		_ = cmd.Wait() // the code says it
		if !sent {
			ts.Fatalf("%q never came", args[1])
		}
		if code := cmd.ProcessState.ExitCode(); code != want {
			ts.Fatalf("exit code %d, want %d", code, want)
		}
	}
}

// jsonLines wants the last output to be JSON, line by line, and each argument
// key=value to hold in one of the lines (keys may be paths: a.b.0.c, a.*.c);
// the value * is anything but null.
func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	var list []any
	for line := range strings.SplitSeq(strings.TrimSpace(ts.ReadFile("stdout")), "\n") {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			ts.Fatalf("not JSON: %q", line)
		}
		list = append(list, v)
	}
	for _, arg := range args {
		path, want, _ := strings.Cut(arg, "=")
		found := false
		for _, v := range list {
			for _, got := range dig(v, strings.Split(path, ".")) {
				found = found || got != nil && want == "*" || fmt.Sprint(got) == want
			}
		}
		if found == neg {
			ts.Fatalf("%s: found %v in\n%s", arg, found, ts.ReadFile("stdout"))
		}
	}
}

// dig gives what a path names; * is every element of a list.
func dig(v any, path []string) []any {
	if len(path) == 0 {
		return []any{v}
	}
	var out []any
	switch x := v.(type) {
	case map[string]any:
		if next, ok := x[path[0]]; ok {
			out = dig(next, path[1:])
		}
	case []any:
		for i, next := range x {
			if path[0] == "*" || path[0] == strconv.Itoa(i) {
				out = append(out, dig(next, path[1:])...)
			}
		}
	}
	return out
}
