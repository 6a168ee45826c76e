package record

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"rouse"
	"rouse/internal/proc"
)

// Proxy runs an agent between a client's streams and records what passes.
type Proxy struct {
	Argv     []string
	In       io.Reader // what the client writes
	Out, Err io.Writer // what the client reads
	Journal  *Journal
}

// The bounds of a line: the engine's own, and that of diagnostics.
const (
	longestLine   = 64 << 20
	longestStderr = 256 << 10
)

// hurry is how long an agent may take to end when the proxy is asked to: less
// than whoever asks usually gives.
const hurry = time.Second

// inherited are the variables that proc keeps from children and this child is
// to have: it stands in the place of the proxy itself.
var inherited = []string{"ROUSE_SERVER", "ROUSE_TOKEN", "ROUSE_SESSION"}

// Run runs the agent to its end and says how it ended. When ctx ends the agent
// is asked to end, and is killed after a second. Its input is closed when In
// ends. An error is a program that could not be started.
func (p Proxy) Run(ctx context.Context) (proc.Exit, error) {
	var env []string
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	agent, err := proc.Start(proc.Command{Argv: p.Argv, Env: env})
	if err != nil {
		return proc.Exit{}, &rouse.Error{Kind: rouse.KindOf(err), Op: "drill: record", Msg: p.Argv[0] + " cannot be started: " + rouse.SafeMessage(err), Err: err}
	}
	p.Journal.Spawn(filepath.Base(p.Argv[0]))
	go func() { // ends with In, or with the program
		pass(agent.Stdin, p.In, &splitter{most: longestLine, told: p.Journal.Client})
		_ = agent.Stdin.Close() // it learns that its client is gone
	}()
	out, errs := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(out)
		pass(p.Out, agent.Stdout, &splitter{most: longestLine, told: p.Journal.Agent})
	}()
	go func() {
		defer close(errs)
		pass(p.Err, agent.Stderr, &splitter{most: longestStderr, told: p.Journal.Stderr})
	}()
	select {
	case <-agent.Ended():
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), hurry)
		agent.Kill(end)
		cancel()
	}
	agent.Drain(out, agent.Stdout)
	agent.Drain(errs, agent.Stderr)
	exit := agent.Exit()
	p.Journal.Exit(exit.Code, SignalName(exit.Signal))
	return exit, agent.Close()
}

// pass hands on what it reads, read by read, and notes each line before its
// newline is handed on, so that no answer stands in front of its question. A
// reader that is gone does not stop the recording or the other side.
func pass(to io.Writer, from io.Reader, s *splitter) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		s.feed(buf[:n])
		if n > 0 && to != nil {
			if _, bad := to.Write(buf[:n]); bad != nil {
				to = nil
			}
		}
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				s.end() // an unfinished line
			}
			return
		}
	}
}

// SignalName is a signal as recordings name it, from the system's words for
// it; "" for none.
func SignalName(words string) string {
	switch words {
	case "":
		return ""
	case "terminated":
		return "SIGTERM"
	case "interrupt":
		return "SIGINT"
	case "aborted":
		return "SIGABRT"
	}
	return "SIGKILL"
}
