package cli

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"rouse/internal/client"
	"rouse/internal/config"
	"rouse/internal/daemon"
)

// clientOrEmbedded finds the server that is meant: the given address, --server
// or ROUSE_SERVER, one that runs on the data folder; else it starts one in
// this process. stop ends what was started and must be called.
func (a *app) clientOrEmbedded(attach string) (cl *client.Client, stop func(), err error) {
	where := client.Where{Server: firstText(attach, a.root.Server), Token: a.root.Token, Data: a.data(), Getenv: a.getenv}
	cl, err = client.Find(where)
	named := where.Server != "" || a.getenv("ROUSE_SERVER") != ""
	if err == nil && (named || a.alive(cl)) {
		return cl, cl.Close, nil
	}
	if err != nil && (named || !errors.Is(err, client.ErrNoServer)) {
		return nil, nil, err
	}
	conf, err := config.Load(a.paths())
	if err != nil {
		return nil, nil, err
	}
	opts := daemon.Options{Paths: a.paths(), Host: "127.0.0.1", Port: 0, Data: a.data(), Drill: drillWanted(conf), Logger: a.quiet()}
	if opts.Drill {
		a.notef("! no provider is configured: the answers of this run are simulated. `rouse auth login PROVIDER`, a key such as ANTHROPIC_API_KEY or an agent program gives it a real model")
	}
	server, err := startEmbedded(a.ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	forget, heard := a.leaving.add(server.ready.Sweep), on(syscall.SIGPIPE, sync.OnceFunc(interrupt)) // each line has one more: a second Ctrl-C would cut the end short
	cl, err = client.New(server.ready.URL, server.ready.Token)
	if err != nil {
		_ = server.close() // the first error is the one to tell
		heard()
		forget()
		return nil, nil, err
	}
	return cl, func() {
		a.outlast(cl)
		cl.Close()
		defer heard()
		defer forget()
		if err := server.close(); err != nil {
			a.notef("! the server of this run did not end well: %s", say(err))
		}
	}, nil
}

// alive says whether the server that the data folder names still answers.
func (a *app) alive(cl *client.Client) bool {
	ctx, cancel := context.WithTimeout(a.ctx, 2*time.Second)
	defer cancel()
	_, err := cl.Health(ctx)
	_, refused := client.RefusalOf(err)
	return err == nil || refused
}

// drillWanted: without any provider that could answer, the simulated one lets
// a first run show something; it says itself what it is.
func drillWanted(c *config.Config) bool {
	for _, p := range c.Providers {
		if p.Unusable == "" {
			return false
		}
	}
	return c.Model.IsZero()
}

// outlast waits until nobody else works on the server of this run: another
// command may have found it through the data folder and started something.
func (a *app) outlast(cl *client.Client) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for told := false; ; told = true {
		busy, err := cl.Busy(a.ctx)
		if err != nil || len(busy) == 0 {
			return
		}
		if !told {
			a.notef("! %d other session(s) work on the server of this run; waiting for them (Ctrl-C interrupts them)", len(busy))
		}
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
	}
}
