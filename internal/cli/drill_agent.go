package cli

import (
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"rouse"
	"rouse/internal/drill"
)

type drillAgent struct {
	Trace   string  `arg:"" help:"The recording, a .jsonl file; its .stderr.txt stands beside it."`
	Process int     `default:"1" placeholder:"N" help:"Which process of the recording to be."`
	Speed   float64 `default:"1" placeholder:"N" help:"Divide recorded gaps by N."`
	Step    string  `placeholder:"SOCKET" help:"Write only what the driver that listens on this Unix socket orders."`
}

func (drillAgent) Help() string {
	return `A recorded agent as a process that speaks the Agent Client Protocol: use it as
an agent's command. It ends as the recorded one did, or with its input.

Example:
  rouse drill agent --speed 10 codex/quota.jsonl`
}

// Run plays the recording on the standard streams.
func (c *drillAgent) Run(a *app) error {
	if c.Speed <= 0 || c.Process < 1 {
		return usage("--speed and --process must be above zero")
	}
	p := drill.Player{Process: c.Process, Speed: c.Speed, In: a.in, Out: a.out, Err: a.err}
	if c.Step != "" {
		driver, err := net.Dial("unix", c.Step)
		if err != nil {
			return &exit{exitUsage, &rouse.Error{Kind: rouse.Unavailable, Op: "drill: agent", Msg: "No driver listens at " + c.Step + ".", Err: err}}
		}
		defer func() { _ = driver.Close() }() // the process ends with it
		p.Steps = io.ReadWriter(driver)
	}
	end, err := p.Play(a.ctx, c.Trace)
	switch {
	case err != nil:
		return err
	case end.Signal != "":
		return dieBy(end.Signal)
	case end.Code != 0:
		return &exit{code: end.Code}
	}
	return nil
}

// dieBy ends this very process by a signal, as the recorded one ended.
func dieBy(name string) error {
	sig := syscall.SIGKILL
	switch name {
	case "SIGTERM":
		sig = syscall.SIGTERM
	case "SIGINT":
		sig = syscall.SIGINT
	case "SIGABRT":
		sig = syscall.SIGABRT
	}
	signal.Reset(sig) // it is to kill, not to ask
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		return rouse.Wrap("drill: agent", err)
	}
	select {} // the signal is on its way
}
