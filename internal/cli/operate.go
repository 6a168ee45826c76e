package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"rouse"
	"rouse/internal/daemon"
)

type drainCmd struct {
	Timeout time.Duration `default:"10m" help:"How long running turns may take; then they are interrupted." placeholder:"DURATION"`
	JSON    bool          `name:"json" help:"Print {running, stopped}."`
}

func (drainCmd) Help() string {
	return `For an update or a reboot: no other turn starts, running ones go on to their
end, then the server stops. Prompts that come meanwhile are stored (202) and run
after the next start, as do those that waited. Ctrl-C ends this command, not the
drain: the server goes on with it.

Example:
  rouse drain --timeout 5m && rouse serve`
}

// Run drains and waits for the server to be gone.
func (c *drainCmd) Run(a *app) error {
	if c.Timeout < time.Second || c.Timeout > 24*time.Hour {
		return usage("--timeout %s: use 1s to 24h", c.Timeout)
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	running, err := cl.Drain(a.ctx, c.Timeout)
	if err != nil {
		return err
	}
	a.notef("waiting for %d running turn(s), at most %s", running, c.Timeout)
	if err := cl.Gone(a.ctx); err != nil {
		if errors.Is(err, errInterrupted) {
			a.notef("the server goes on draining: it starts nothing more and stops when its turns have ended, at the latest %s after the drain began", c.Timeout)
		}
		return err
	}
	if c.JSON {
		return a.printJSON(map[string]any{"running": running, "stopped": true})
	}
	_, err = fmt.Fprintln(a.out, "stopped")
	return rouse.Wrap("cli: print", err)
}

type backupCmd struct {
	File string `arg:"" help:"Where to write the copy; must not exist."`
	JSON bool   `name:"json" help:"Print {file}."`
}

func (backupCmd) Help() string {
	return `Copies the data folder's database, also while the server runs. Keys and the
server's token are not in it.

Example:
  rouse backup "rouse-$(date +%F).db"`
}

// Run copies.
func (c *backupCmd) Run(a *app) error {
	file, err := filepath.Abs(c.File)
	if err != nil {
		return usage("%s: %v", c.File, err)
	}
	if err := daemon.Backup(a.ctx, a.data(), file); err != nil {
		return &exit{exitRefused, err}
	}
	if c.JSON {
		return a.printJSON(map[string]string{"file": file})
	}
	_, err = fmt.Fprintln(a.out, file)
	return rouse.Wrap("cli: print", err)
}

type restoreCmd struct {
	File string `arg:"" help:"A copy that rouse backup wrote."`
	JSON bool   `name:"json" help:"Print {restored, kept}; kept is empty if there was no database."`
}

func (restoreCmd) Help() string {
	return `Puts a backup in the place of the data folder's database. The server must be
stopped. The old database is kept beside it and its name is printed.

Example:
  rouse restore rouse-2026-11-30.db`
}

// Run restores.
func (c *restoreCmd) Run(a *app) error {
	kept, err := daemon.Restore(a.ctx, a.data(), c.File, time.Now())
	if err != nil {
		return &exit{exitRefused, err}
	}
	if c.JSON {
		return a.printJSON(map[string]string{"restored": c.File, "kept": kept})
	}
	said := "restored " + c.File
	if kept != "" {
		said += "; the old database is kept as " + kept
	}
	_, err = fmt.Fprintln(a.out, said)
	return rouse.Wrap("cli: print", err)
}
