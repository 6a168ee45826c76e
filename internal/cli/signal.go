package cli

import (
	"context"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"rouse"
)

// leaving is what is done before a second signal ends the program: what nobody
// else would clean up.
type leaving struct {
	mu   sync.Mutex
	todo map[int]func()
	n    int
	over bool // run has begun
}

// add keeps something to do until it is forgotten; while the program ends it is
// done at once. It must be quick, and may run beside the orderly end that the
// first signal began.
func (l *leaving) add(do func()) (forget func()) {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		do()
		return func() {}
	}
	defer l.mu.Unlock()
	return l.keep(do)
}

func (l *leaving) keep(do func()) (forget func()) {
	if l.todo == nil {
		l.todo = map[int]func(){}
	}
	l.n++
	n := l.n
	l.todo[n] = do
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.todo, n)
	}
}

// temporary makes a folder that is gone once remove has returned, and also when
// a second signal ends the program before.
func (l *leaving) temporary(pattern string) (dir string, remove func() error, err error) {
	l.mu.Lock() // a folder that is made is known before the program can end
	defer l.mu.Unlock()
	if l.over {
		return "", nil, errInterrupted
	}
	if dir, err = os.MkdirTemp("", pattern); err != nil {
		return "", nil, &rouse.Error{Kind: rouse.Unavailable, Op: "cli: temporary folder", Msg: "no temporary folder can be made", Err: err}
	}
	forget := l.keep(func() { _ = removeAll(dir) })
	return dir, func() error {
		defer forget() // not before it is gone
		return removeAll(dir)
	}, nil
}

// removeAll removes a folder in which somebody may still write while it is
// emptied: a server that is ending.
func removeAll(dir string) (err error) {
	for range 50 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// leavingWait bounds what a second signal waits for.
const leavingWait = 3 * time.Second

// run does what is kept, the newest first.
func (l *leaving) run() {
	l.mu.Lock()
	l.over = true
	todo := maps.Clone(l.todo)
	l.mu.Unlock()
	done := make(chan struct{})
	go func() { // the program ends after it
		defer close(done)
		for _, n := range slices.Backward(slices.Sorted(maps.Keys(todo))) {
			todo[n]()
		}
	}()
	select {
	case <-done:
	case <-time.After(leavingWait):
	}
}

// interruptible ends the context with errInterrupted at the first SIGINT or
// SIGTERM; the second ends the program, once last has run. stop must be called
// and waits.
func interruptible(parent context.Context, last *leaving) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	var wg sync.WaitGroup
	wg.Go(func() {
		for first := true; ; first = false {
			select {
			case <-done:
				return
			case <-signals:
				if !first {
					last.run()
					os.Exit(exitInterrupt)
				}
				cancel(errInterrupted)
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		wg.Wait()
		cancel(nil)
	}
}

// on calls do for each of a signal until stop, which waits. SIGPIPE ends the
// program otherwise, at the next line for a reader that is gone.
func on(sig os.Signal, do func()) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, sig)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
				do()
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(done)
		wg.Wait()
	}
}

// interrupt is Ctrl-C.
func interrupt() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }
