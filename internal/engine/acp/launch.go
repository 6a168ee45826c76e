package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
	"rouse/internal/proc"
)

// start launches the agent and initializes it. Where the diagnostic arguments
// are what it exits on, it is started once more without.
func (e *Engine) start(ctx context.Context, dir string, env []string) (*host, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.opt.Start, errSilent)
	defer cancel()
	h, err := e.launch(ctx, dir, env, len(e.agent.Diagnostics) > 0)
	if err != nil && len(e.agent.Diagnostics) > 0 && errors.Is(err, errExited) && ctx.Err() == nil {
		e.opt.Log.Info("acp.diagnostics", "agent", e.agent.Name, "supported", false)
		h, err = e.launch(ctx, dir, env, false)
	}
	return h, err
}

var (
	errSilent = rouse.Errorf(rouse.Upstream, "acp: start", "it did not answer in time")
	errExited = errors.New("acp: the agent exited before it was ready")
)

func (e *Engine) launch(ctx context.Context, dir string, env []string, diagnostic bool) (*host, error) {
	p, err := proc.Start(proc.Command{Dir: dir, Argv: e.agent.argv(diagnostic),
		Env: slices.Concat(e.agent.environment(os.Getenv), e.opt.Env, env)})
	if err != nil {
		return nil, e.launchError("could not be started: "+rouse.SafeMessage(err), "", err)
	}
	h := &host{agent: e.agent, opt: e.opt, p: p, conn: newConn(p.Stdin, e.opt.Now), diagnostics: diagnostic,
		convs: map[string]*Conversation{}, gone: make(chan struct{})}
	go h.serve()
	m, err := h.conn.call(ctx, wire.MethodInitialize, func(id int64) []byte {
		return wire.Hello(id, "rouse", e.opt.Version, e.agent.Meta)
	})
	if err == nil {
		h.hello, err = wire.Decode[wire.Initialize](m.Result)
	}
	if err == nil && h.hello.ProtocolVersion != protocolVersion {
		err = &otherVersion{h.hello.ProtocolVersion}
	}
	if err != nil {
		return nil, h.failed(e, "initialize", err)
	}
	if method := h.loginMethod(); method != "" {
		if _, err := h.conn.call(ctx, wire.MethodAuthenticate, func(id int64) []byte { return wire.Authenticate(id, method) }); err != nil {
			return nil, h.failed(e, "authenticate", err)
		}
	}
	return h, nil
}

func (h *host) loginMethod() string {
	if h.agent.Auth == nil {
		return ""
	}
	return h.agent.Auth(h.agent.getenv(os.Getenv), h.hello.AuthMethods)
}

// failed turns an error of the start into words, and ends what was started.
func (h *host) failed(e *Engine, step string, err error) error {
	if errors.Is(err, errGone) || errors.Is(err, io.ErrClosedPipe) || !h.alive() {
		h.p.Kill(context.Background())
		<-h.gone
		return errors.Join(errExited, e.launchError("exited before it was ready ("+h.reason()+")", h.lastWords(), err))
	}
	defer func() {
		h.p.Kill(context.Background())
		<-h.gone
	}()
	if re, ok := refused(err); ok {
		return e.refusedError(step, re)
	}
	if other, ok := errors.AsType[*otherVersion](err); ok {
		return e.launchError(other.Error(), "", err)
	}
	if errors.Is(err, errSilent) || errors.Is(err, context.DeadlineExceeded) {
		return e.launchError("did not answer "+step+" in time ("+e.opt.Start.String()+")", h.lastWords(), err)
	}
	return e.launchError("could not be spoken to", "", err)
}

// lastWords is the end of its stderr, sanitized.
func (h *host) lastWords() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return diagnostics.Sanitize(strings.Join(h.tail, " "))
}

// launchError is a launch that failed, in the agent's own safe words.
func (e *Engine) launchError(what, words string, cause error) error {
	msg := e.agent.Title + " " + what
	if words != "" {
		msg += ": " + words
	}
	return &engine.LaunchError{Failure: rouse.Failure{Class: rouse.ClassNone, Code: rouse.CodeLaunch, Provider: e.agent.Name,
		Message: rouse.Clip(msg, 2000), Source: sourceProcess}, Err: cause}
}

// refusedError is an agent's refusal of a step of the start.
func (e *Engine) refusedError(step string, re *wire.Error) error {
	f := e.rpcFailure(re, e.opt.Now())
	f.Code = rouse.CodeLaunch
	if re.Code == wire.CodeAuthRequired || f.Class == rouse.ClassAuth {
		f.Class, f.Code = rouse.ClassAuth, rouse.CodeAuth
		how := "log in with the agent's own program"
		if e.agent.Login != "" {
			how = "log in with `" + e.agent.Login + "`"
		}
		f.Message = how + ": " + f.Message
	}
	f.Message = rouse.Clip(e.agent.Title+" refused "+step+": "+f.Message, 2000)
	return &engine.LaunchError{Failure: *f}
}

// protocolVersion is the one that Rouse speaks.
const protocolVersion = 1

// otherVersion is an agent that answers with another version of the protocol,
// or with none.
type otherVersion struct{ said int }

func (o *otherVersion) Error() string {
	return fmt.Sprintf("speaks version %d of the Agent Client Protocol; Rouse speaks %d", o.said, protocolVersion)
}
