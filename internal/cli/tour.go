package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rouse"
	"rouse/internal/client"
	"rouse/internal/daemon"
)

type drillTour struct {
	Once bool `help:"End when all is seen; exit with 1 if something was not as it should be."`
	Port int  `short:"p" default:"0" help:"Port of the server; 0 lets the system choose."`
}

func (drillTour) Help() string {
	return `Starts a server in a temporary folder, launches a handful of sessions on
simulated models through its public API, some of which fail, and shows what the
server tells about each one. Then it keeps serving until Ctrl-C. Needs no
network and no key.

Example:
  rouse drill tour`
}

// tourDeadline bounds what should take ten seconds.
const tourDeadline = 90 * time.Second

// Run gives the tour.
func (c *drillTour) Run(a *app) (err error) {
	if c.Port < 0 || c.Port > 65535 {
		return usage("--port %d: use 0 to 65535", c.Port)
	}
	dir, remove, err := a.leaving.temporary("rouse-tour-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	work := filepath.Join(dir, "project")
	if err := os.Mkdir(work, 0o755); err != nil {
		return rouse.Wrap("tour", err)
	}
	paths := a.paths()
	paths.Explicit, paths.Own, paths.OpenCode, paths.Accounts = "", []string{filepath.Join(dir, "rouse.jsonc")}, nil, nil
	server, err := startEmbedded(a.ctx, daemon.Options{Paths: paths, Host: "127.0.0.1", Port: c.Port, Data: filepath.Join(dir, "data"), Drill: true, Logger: a.quiet()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	cl, err := client.New(server.ready.URL, server.ready.Token)
	if err != nil {
		return err
	}
	defer cl.Close()
	fmt.Fprintf(a.out, "A server runs at %s; its sessions work on simulated models.\n\n", server.ready.URL)
	ctx, cancel := context.WithTimeoutCause(a.ctx, tourDeadline, errTimeout)
	defer cancel()
	wrong, err := c.perform(ctx, a, cl, work)
	switch {
	case err != nil && a.ctx.Err() != nil:
		return a.ctx.Err()
	case err != nil:
		return err
	case wrong > 0:
		fmt.Fprintf(a.out, "\n%d of them did not end as they should.\n", wrong)
	default:
		fmt.Fprintln(a.out, "\nAll of them ended as they should.")
	}
	if c.Once {
		if wrong > 0 {
			return &exit{exitInternal, rouse.Errorf(rouse.Internal, "tour", "%d session(s) did not end as they should", wrong)}
		}
		return nil
	}
	fmt.Fprintf(a.out, "\nThe server goes on until Ctrl-C. From another terminal:\n"+
		"  export ROUSE_DATA=%[1]s\n  %[2]s ps\n  %[2]s run -m drill/stream \"hello\"\n", server.ready.Data, os.Args[0]) // it need not be on the PATH
	<-a.ctx.Done()
	return nil
}

// perform starts all acts and watches until they have ended; it gives how many
// ended otherwise than they should.
func (c *drillTour) perform(ctx context.Context, a *app, cl *client.Client, work string) (int, error) {
	b := newBoard(a)
	following, stop := context.WithCancel(ctx)
	open, followed := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() { // waited for below
		v := newView(b, "", "")
		followed <- cl.Follow(following, client.Stream{Open: func() { once.Do(func() { close(open) }) }}, v.event)
	}()
	defer func() { stop(); <-followed }()
	select {
	case <-open:
	case err := <-followed:
		followed <- err
		return 0, err
	}
	if err := b.start(ctx, cl, work); err != nil {
		return 0, err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		b.draw(time.Now())
		if b.ended() {
			break
		}
		for _, act := range b.silent(time.Now()) {
			b.note(act, "aborted by hand")
			if err := cl.Abort(ctx, act.session); err != nil {
				return 0, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return b.verdict(ctx, cl)
}
