// Package proc runs operating system processes: each in a group of its own,
// with a bound on time and output, and so that nothing outlives what started
// it. It is the only importer of os/exec.
package proc

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"rouse"
)

// marker is the variable that every process of one Run inherits, so that those
// that left the group are still found. It holds a word for each Rouse program
// that the process descends from, so that who starts a Rouse program that starts
// others (a recorder before an agent) still finds all.
const marker = "ROUSE_PROC"

// newMark is a mark of its own, and the environment entry that carries it.
func newMark() (mark, entry string) {
	mark = rand.Text()
	if outer := os.Getenv(marker); outer != "" {
		return marker + "=" + mark, marker + "=" + outer + " " + mark
	}
	return marker + "=" + mark, marker + "=" + mark
}

// Durations of a run.
const (
	killAfter = 2 * time.Second        // between TERM and KILL
	drainWait = 500 * time.Millisecond // for output after the exit: a child may hold the pipe
	tellEvery = 500 * time.Millisecond // how often OnOutput is called
)

// Command is what to run. Either Shell or Argv is set.
type Command struct {
	Dir   string
	Shell string   // a script for bash, or for sh where there is no bash
	Argv  []string // a program and its arguments
	// Env is added to the server's own environment, without its secrets.
	Env []string
	// Timeout ends the run; 0 is none.
	Timeout time.Duration
	// MaxOutput bounds what is kept, in bytes: the first and the last half.
	// Default 1 MiB.
	MaxOutput int
	// OnOutput is told the output so far (bounded like Output), on the calling
	// goroutine, at most every half second and only when there is more.
	OnOutput func(output string)
}

func (c Command) argv() []string {
	if c.Shell != "" {
		return []string{shell(), "-c", c.Shell}
	}
	return c.Argv
}

// Result is how a run ended. Output is stdout and stderr together, valid UTF-8.
type Result struct {
	Exit      int // -1 when a signal ended it
	Output    string
	Truncated bool // the middle of the output is missing
	TimedOut  bool
	Killed    bool // by us: ctx ended, or the timeout
}

// Run runs a command to its end. When ctx ends or the time is over, the group
// gets TERM, after two seconds KILL, and so do processes that left the group
// but carry its mark; Run returns when they are gone. The error of a run that
// ctx ended is the cause; a program that cannot be started is an error; an exit
// code other than 0 is none.
func Run(ctx context.Context, c Command) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, context.Cause(ctx)
	}
	if c.MaxOutput <= 0 {
		c.MaxOutput = 1 << 20
	}
	argv := c.argv()
	if len(argv) == 0 {
		return Result{}, rouse.Errorf(rouse.Invalid, "proc: run", "there is no command to run")
	}
	mark, entry := newMark()
	out := &output{max: c.MaxOutput}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(environ(), append(c.Env, entry)...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = drainWait
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return Result{}, startError(err, c.Dir)
	}
	r := &run{cmd: cmd, mark: mark, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = cmd.Wait()
	}()
	return r.follow(ctx, c, out)
}

func startError(err error, dir string) error {
	msg := "the command could not be started"
	switch {
	case errors.Is(err, exec.ErrNotFound):
		msg = "the program was not found"
	case errors.Is(err, os.ErrNotExist):
		if _, derr := os.Stat(dir); dir != "" && derr != nil {
			msg = "the directory does not exist"
		} else {
			msg = "the program was not found"
		}
	case errors.Is(err, os.ErrPermission):
		msg = "the program may not be run"
	}
	return &rouse.Error{Kind: rouse.Invalid, Op: "proc: start", Msg: msg, Err: err}
}

// run is a started command.
type run struct {
	cmd  *exec.Cmd
	mark string
	done chan struct{} // closed when the leader is reaped
	err  error         // of Wait, once done is closed
}

// follow waits for the end and ends it when it must.
func (r *run) follow(ctx context.Context, c Command, out *output) (Result, error) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	var over <-chan time.Time
	if c.Timeout > 0 {
		t := time.NewTimer(c.Timeout)
		defer t.Stop()
		over = t.C
	}
	var res Result
	var cause error
	for running := true; running; {
		select {
		case <-r.done:
			running = false
		case <-tick.C:
			if c.OnOutput != nil {
				if s, fresh := out.fresh(); fresh {
					c.OnOutput(s)
				}
			}
		case <-over:
			res.TimedOut, res.Killed = true, true
			r.kill(context.Background())
			running = false
		case <-ctx.Done():
			cause, res.Killed = context.Cause(ctx), true
			r.kill(context.Background())
			running = false
		}
	}
	res.Output, res.Truncated = out.text()
	res.Exit = r.cmd.ProcessState.ExitCode()
	if cause != nil {
		return res, cause
	}
	var exit *exec.ExitError
	if r.err != nil && !errors.As(r.err, &exit) && !errors.Is(r.err, exec.ErrWaitDelay) {
		return res, &rouse.Error{Kind: rouse.Internal, Op: "proc: wait", Err: r.err}
	}
	return res, nil
}

// kill ends the group and what left it, and returns when the leader is reaped.
// KILL comes after killAfter, or when ctx ends.
func (r *run) kill(ctx context.Context) {
	group := r.cmd.Process.Pid
	signalGroup(group, syscall.SIGTERM)
	signalMarked(r.mark, group, syscall.SIGTERM)
	limit := time.NewTimer(killAfter)
	defer limit.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for left := true; left; {
		select {
		case <-limit.C:
			left = false
		case <-ctx.Done():
			left = false
		case <-poll.C:
			select {
			case <-r.done:
				left = signalMarked(r.mark, group, 0) > 0
			default:
			}
		}
	}
	select {
	case <-r.done: // reaped: its number may belong to somebody else by now
	default:
		signalGroup(group, syscall.SIGKILL)
	}
	endMarked(r.mark, group)
	<-r.done
}

const mostLooks = 100 // at all processes, for what is left of one

// endMarked kills what is left of a run until nothing is: what was killed takes
// a moment to go, and if it forked meanwhile its child was not seen. It is
// bounded, as what hangs in the kernel never goes.
func endMarked(mark string, group int) {
	for looks := 0; looks < mostLooks && signalMarked(mark, group, syscall.SIGKILL) > 0; looks++ {
	}
}

// Sweep ends every process whose environment holds entry ("NAME=value"), with
// TERM and, after two seconds, KILL; the server itself is spared. It says how
// many there were. Where the system does not show environments (all but Linux)
// it finds none.
func Sweep(ctx context.Context, entry string) int {
	found := signalMarked(entry, 0, syscall.SIGTERM)
	if found == 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, killAfter)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			signalMarked(entry, 0, syscall.SIGKILL)
			return found
		case <-poll.C:
			if signalMarked(entry, 0, 0) == 0 {
				return found
			}
		}
	}
}

var shell = sync.OnceValue(func() string {
	for _, s := range []string{"/bin/bash", "/usr/bin/bash", "bash"} {
		if p, err := exec.LookPath(s); err == nil {
			return p
		}
	}
	return "/bin/sh"
})

// secrets are the server's own variables that its children must not see: they
// get a token of their session instead.
var secrets = []string{"ROUSE_TOKEN", "ROUSE_SESSION", "ROUSE_SERVER", "OPENCODE_SERVER_PASSWORD", marker}

// environ is the server's environment without its secrets.
func environ() []string {
	all := os.Environ()
	kept := all[:0]
next:
	for _, kv := range all {
		for _, s := range secrets {
			if strings.HasPrefix(kv, s+"=") {
				continue next
			}
		}
		kept = append(kept, kv)
	}
	return kept
}
