package proc

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"rouse"
)

// Process is a long-lived program that is talked to over pipes. It leads a
// process group of its own, and whatever it starts carries its mark, so that
// nothing of it is left once Ended is closed.
type Process struct {
	// Stdin is the program's input. It takes write deadlines, so that a program
	// that does not read cannot hold up its writer. Closing it is the writer's.
	Stdin *os.File
	// Stdout and Stderr end when the program and its children are gone. Whoever
	// started it must read both to the end, or the program may block.
	Stdout, Stderr *os.File

	run    run
	ended  chan struct{}
	exit   Exit
	killed sync.Once
	forced chan struct{} // closed when Kill was called
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // "killed", "terminated" …; "" when none did
	Killed bool   // Kill was called before it ended
}

// Reason is the exit as a person reads it: "exit code 1", "signal: killed".
func (e Exit) Reason() string {
	if e.Signal != "" {
		return "signal: " + e.Signal
	}
	return "exit code " + strconv.Itoa(e.Code)
}

// Start starts a program. Command's Dir, Argv, Shell and Env are used; its
// bounds are not. A program that cannot be started is an Invalid error whose
// message says why. The caller reads Stdout and Stderr, and calls Kill or waits
// for Ended, then Close.
func Start(c Command) (*Process, error) {
	argv := c.argv()
	if len(argv) == 0 {
		return nil, rouse.Errorf(rouse.Invalid, "proc: start", "there is no command to run")
	}
	p := &Process{ended: make(chan struct{}), forced: make(chan struct{})}
	theirs, err := p.pipes()
	if err != nil {
		return nil, &rouse.Error{Kind: rouse.Unavailable, Op: "proc: start", Msg: "there are too many open files", Err: err}
	}
	mark, entry := newMark()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(environ(), append(c.Env, entry)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	ownGroup(cmd)
	err = cmd.Start()
	for _, f := range theirs {
		_ = f.Close() // the child has its own
	}
	if err != nil {
		p.closeFiles()
		return nil, startError(err, c.Dir)
	}
	p.run = run{cmd: cmd, mark: mark, done: make(chan struct{})}
	go p.wait()
	return p, nil
}

// pipes opens ours and gives the child's ends of stdin, stdout and stderr.
func (p *Process) pipes() (theirs [3]*os.File, err error) {
	var ours [3]*os.File
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			for j := range i {
				_ = ours[j].Close()
				_ = theirs[j].Close()
			}
			return theirs, err
		}
		ours[i], theirs[i] = r, w
		if i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	p.Stdin, p.Stdout, p.Stderr = ours[0], ours[1], ours[2]
	return theirs, nil
}

// wait reaps the leader and ends what it left behind: wrappers leave the real
// agent running when they are killed (measured for Gemini, Qwen, Claude,
// Copilot and Codex), and an orphan would hold the pipes open.
func (p *Process) wait() {
	p.run.err = p.run.cmd.Wait()
	state := p.run.cmd.ProcessState
	p.exit = Exit{Code: state.ExitCode()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		p.exit.Signal = ws.Signal().String()
	}
	select {
	case <-p.forced:
		p.exit.Killed = true
	default:
	}
	close(p.run.done)
	endMarked(p.run.mark, 0)
	close(p.ended)
}

// Find gives the path of a program on the PATH; "" when there is none.
func Find(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// PID is the leader's.
func (p *Process) PID() int { return p.run.cmd.Process.Pid }

// Ended is closed when the leader is reaped and nothing of it is left.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Exit says how it ended; only after Ended is closed.
func (p *Process) Exit() Exit { return p.exit }

// Kill ends the process and everything that it started: TERM to the group and
// to what left it, KILL after two seconds, sooner if ctx ends. It returns when
// all are gone; a second call waits for the first.
func (p *Process) Kill(ctx context.Context) {
	p.killed.Do(func() {
		select {
		case <-p.run.done:
			return
		default:
		}
		close(p.forced)
		p.run.kill(ctx)
	})
	<-p.ended
}

// Suspend stops the group, Continue lets it go on: what a suspended machine
// does to it.
func (p *Process) Suspend() { p.signal(syscall.SIGSTOP) }

// Continue undoes Suspend.
func (p *Process) Continue() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) {
	select {
	case <-p.run.done: // its number may be somebody else's
	default:
		signalGroup(p.PID(), s)
	}
}

// Interrupt asks the leader to end, as Ctrl-C does.
func (p *Process) Interrupt() {
	select {
	case <-p.run.done:
	default:
		_ = p.run.cmd.Process.Signal(os.Interrupt)
	}
}

// Close kills what still runs and frees the pipes. A second call is no error.
func (p *Process) Close() error {
	p.Kill(context.Background())
	p.closeFiles()
	return nil
}

func (p *Process) closeFiles() {
	for _, f := range []*os.File{p.Stdin, p.Stdout, p.Stderr} {
		_ = f.Close()
	}
}

// Memory is the resident memory of the process and of all that it started, in
// bytes; 0 when it is not known.
func (p *Process) Memory() int64 {
	select {
	case <-p.run.done:
		return 0
	default:
	}
	return treeMemory(p.PID(), p.run.mark)
}

// LookTree is Look with the memory of everything that the process started: its
// children and theirs, and what left its group.
func LookTree(pid int) (alive bool, rss int64) {
	if alive, rss = Look(pid); !alive {
		return false, 0
	}
	if all := treeMemory(pid, ""); all > rss {
		rss = all
	}
	return true, rss
}

const drainPipes = 2 * time.Second // for what a dead process had already written

// Drain waits until a reader of Stdout or Stderr is done, at most two seconds
// after the process ended: what it had written is read, and a pipe that
// somebody else still holds is not waited for.
func (p *Process) Drain(done <-chan struct{}, pipe *os.File) {
	limit := time.NewTimer(drainPipes)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		_ = pipe.SetReadDeadline(time.Now())
		<-done
	}
}
