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
)

// leaving is what is done before a second signal ends the program: what nobody
// else would clean up.
type leaving struct {
	mu   sync.Mutex
	todo map[int]func()
	n    int
}

// add keeps something to do until it is forgotten. It must be quick, and may run
// beside the orderly end that the first signal began.
func (l *leaving) add(do func()) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// leavingWait bounds what a second signal waits for.
const leavingWait = 3 * time.Second

// run does what is kept, the newest first.
func (l *leaving) run() {
	l.mu.Lock()
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

// hangups calls do for each SIGHUP until stop, which waits.
func hangups(do func()) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
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
