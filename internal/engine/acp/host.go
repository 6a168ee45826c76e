package acp

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/wire"
	"rouse/internal/proc"
)

// host is one process of an agent, initialized, with the sessions in it.
type host struct {
	agent Agent
	opt   Options
	p     *proc.Process
	conn  *conn
	// hello is what the agent said of itself.
	hello wire.Initialize
	// diagnostics says that it was started with its diagnostic arguments.
	diagnostics bool
	users       int // of a shared process; under the engine's lock

	mu    sync.Mutex
	convs map[string]*Conversation // by the agent's session id
	gone  chan struct{}            // closed when it ended and all that it wrote was read
	mute  bool                     // it closed its output and lived on; as Exit, once it is gone
	tail  []string                 // its last words on stderr, for a launch that fails
	key   diagnostics.KeyBlock     // whether a private key is what it writes there
}

// serve reads both streams to their end and then tells everybody that the
// process is gone. It owns the process.
func (h *host) serve() {
	out, errs := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(out)
		h.conn.read(h.p.Stdout, h.deliver, func(line []byte) { h.opt.Tap(Tapped{Line: line}) })
	}()
	go func() {
		defer close(errs)
		h.listen(h.p.Stderr)
	}()
	select {
	case <-h.p.Ended():
	case <-out:
		if h.mute = !h.endsSoon(); h.mute { // it can answer nothing any more
			h.p.Kill(context.Background())
		}
	}
	h.p.Drain(out, h.p.Stdout)
	h.p.Drain(errs, h.p.Stderr)
	h.mu.Lock()
	convs := slices.Collect(maps.Values(h.convs))
	clear(h.convs)
	h.mu.Unlock()
	at := h.opt.Now()
	for _, c := range convs {
		c.exited(h, at)
	}
	_ = h.p.Close()
	h.conn.writers.Wait()
	close(h.gone)
	h.opt.Tap(Tapped{Exit: true})
}

// deliver hands a message to the session that it names, and one that names none
// to all; one that is not open here is nobody's. Requests that are not served
// are refused, so that no agent waits for ever.
func (h *host) deliver(at time.Time, m *wire.Message, size int) {
	h.mu.Lock()
	c := h.convs[m.SessionID]
	var all []*Conversation
	if m.SessionID == "" {
		all = slices.Collect(maps.Values(h.convs))
	}
	h.mu.Unlock()
	if c != nil {
		c.receive(h, at, m, size)
	}
	for _, each := range all {
		each.receive(h, at, m, size)
	}
	if m.IsRequest() && (m.Permission == nil || c == nil) {
		h.conn.later(wire.MethodNotFound(m.ID, m.Method))
	}
}

// listen reads stderr to its end, whatever is on it: the agent never waits for
// us. Only the parsed record of a line goes on.
func (h *host) listen(r io.Reader) {
	var framer diagnostics.Framer
	told := func(line diagnostics.Line) {
		rec := diagnostics.Parse(line)
		at := h.opt.Now()
		h.mu.Lock()
		convs := slices.Collect(maps.Values(h.convs))
		h.remember(line.Text)
		h.mu.Unlock()
		prompts := 0
		for _, c := range convs {
			prompts += c.prompts()
		}
		for _, c := range convs {
			c.diagnosed(at, rec, prompts)
		}
		h.opt.Tap(Tapped{Stderr: true, Line: line.Text})
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		framer.Feed(buf[:n], told)
		if err != nil {
			framer.Close(told)
			return
		}
	}
}

// tailLines bounds what is kept of an agent's last words. They stay in memory,
// and are shown, sanitized, only when the agent could not be started.
const tailLines = 5

func (h *host) remember(line []byte) {
	if h.key.Holds(line) {
		line = []byte("[redacted]")
		if n := len(h.tail); n > 0 && h.tail[n-1] == string(line) {
			return
		}
	}
	if len(line) == 0 || len(line) > 4<<10 || h.tail == nil && len(h.convs) > 0 {
		return
	}
	h.tail = append(h.tail, string(line))
	if len(h.tail) > tailLines {
		h.tail = h.tail[1:]
	}
}

// join makes a session's messages go to c from now on.
func (h *host) join(id string, c *Conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.convs[id] = c
	h.tail = nil
}

// forget ends that.
func (h *host) forget(c *Conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.convs, func(_ string, other *Conversation) bool { return other == c })
}

// othersWork reports that a session of another conversation has an open prompt.
func (h *host) othersWork(c *Conversation) bool {
	h.mu.Lock()
	convs := slices.Collect(maps.Values(h.convs))
	h.mu.Unlock()
	return slices.ContainsFunc(convs, func(other *Conversation) bool { return other != c && other.prompts() > 0 })
}

func (h *host) alive() bool {
	select {
	case <-h.p.Ended():
		return false
	default:
		return true
	}
}

// usable reports that it lives and can be spoken to, as far as is known.
func (h *host) usable() bool { return h.alive() && h.conn.usable() }

// exitWait is how long an agent may take to end by itself when its input
// closes: 0.05 to 2 s were measured, and codex-acp 0.16 never does.
const exitWait = time.Second

// endsSoon waits for an end that is to be expected, and reports whether it
// came.
func (h *host) endsSoon() bool {
	limit := time.NewTimer(exitWait)
	defer limit.Stop()
	select {
	case <-h.p.Ended():
		return true
	case <-limit.C:
		return false
	}
}

// reason is why it ended, for people; only once it is gone.
func (h *host) reason() string {
	if h.mute {
		return "it closed its output"
	}
	return h.p.Exit().Reason()
}

// close ends the process: asked first, then by force.
func (h *host) close() {
	_ = h.p.Stdin.Close()
	if !h.endsSoon() {
		h.p.Kill(context.Background())
	}
	<-h.gone
}

// kill ends it by force and returns when it is gone, or ctx ends.
func (h *host) kill(ctx context.Context) {
	hurry, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	h.p.Kill(hurry)
	select {
	case <-h.gone:
	case <-ctx.Done():
	}
}
