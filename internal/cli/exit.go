package cli

import (
	"context"
	"errors"
	"net/http"

	"rouse"
	"rouse/internal/client"
)

// The exit codes. They are a promise to scripts.
const (
	exitDone          = 0
	exitInternal      = 1
	exitUsage         = 2
	exitFailed        = 3 // the turn failed
	exitWall          = 4 // a usage limit or billing stopped the turn
	exitAborted       = 5 // cancelled or interrupted
	exitNotGenerating = 6
	exitNeedsPerson   = 7
	exitRefused       = 8 // the server said no (4xx)
	exitUnreachable   = 9
	exitTimeout       = 124
	exitInterrupt     = 130
)

// exit is an error that chooses its own code; an empty message prints nothing.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}
func (e *exit) Unwrap() error { return e.err }

var (
	errInterrupted = errors.New("interrupted")
	errTimeout     = errors.New("the time given with --timeout is over")
)

// usage is a mistake in the command line.
func usage(format string, args ...any) error {
	return &exit{exitUsage, rouse.Errorf(rouse.Invalid, "cli", format, args...)}
}

// codeOf is the one mapping from an error to an exit code.
func codeOf(err error) int {
	var own *exit
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &own):
		return own.code
	case errors.Is(err, errTimeout):
		return exitTimeout
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupt
	case errors.Is(err, client.ErrUnreachable):
		return exitUnreachable
	}
	if r, ok := client.RefusalOf(err); ok {
		switch {
		case r.Name == "WallOpen":
			return exitWall
		case r.Status < http.StatusInternalServerError, r.Status == http.StatusNotImplemented, r.Status == http.StatusServiceUnavailable:
			return exitRefused
		}
		return exitInternal
	}
	switch rouse.KindOf(err) {
	case rouse.Invalid, rouse.NotFound, rouse.Unsupported:
		return exitUsage // found here, before any server was asked
	case rouse.Conflict, rouse.Denied, rouse.Full:
		return exitRefused
	}
	return exitInternal
}

// say is what a person reads of an error.
func say(err error) string {
	if errors.Is(err, errInterrupted) {
		return "interrupted"
	}
	if msg := rouse.SafeMessage(unwrapExit(err)); msg != "" {
		return msg
	}
	return err.Error()
}

func unwrapExit(err error) error {
	var own *exit
	if errors.As(err, &own) && own.err != nil {
		return own.err
	}
	return err
}
