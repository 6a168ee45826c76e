package acp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// Conversation is one session of an agent.
type Conversation struct {
	e    *Engine
	spec engine.Spec
	q    *queue
	stop context.CancelFunc // of the queue
	pump sync.WaitGroup

	// opening is held while a process is started or a session opened.
	opening sync.Mutex

	mu      sync.Mutex
	h       *host // nil between processes
	id      string
	session wire.Session                      // as it was opened, with the options as they are now
	model   string                            // in force, as far as is known
	said    string                            // model_confirmed
	history bool                              // a load replays earlier turns
	coming  map[*turn]context.CancelCauseFunc // prompts on their way to the agent
	turns   []*turn                           // prompts that are open, oldest first
	last    *turn                             // the latest that ended: a late diagnostic may enrich it
	ended   []*turn                           // since the latest prompt began
	tools   map[string]*toolCall
	asks    map[string]*ask // by our request id
	compact bool            // the agent has a command of that name
	ignored ignored
	lost    string      // to be said with the next prompt: why earlier turns are unknown
	used    rouse.Usage // what the agent said of the session so far, where it counts so
	counted wire.Usage  // the same as the latest answer had it
	titled  bool        // it gave the session a title
	closed  bool
	// shellEnd ends a command of a person's own; nil when none runs.
	shellEnd context.CancelCauseFunc
}

// turn is one prompt that was sent.
type turn struct {
	p       rouse.Prompt
	h       *host  // that it is sent to
	id      string // of the agent's session in it
	judge   *judge.Turn
	bell    chan struct{} // 1 slot: something changed
	began   time.Time     // what was read before is not of this prompt
	sent    bool          // its line is written
	late    bool          // it was cancelled before that
	told    bool          // its end was told as a diagnostic while the prompt is open
	ended   bool          // the agent answered, or is gone
	stopped bool          // by force
	retries int
	cost    float64 // of the session when it began
	resting bool    // a retry is shown
	answer  *wire.Message
	exit    string
}

func (t *turn) ring() {
	select {
	case t.bell <- struct{}{}:
	default:
	}
}

func newConversation(e *Engine, spec engine.Spec, sink engine.Sink) *Conversation {
	ctx, stop := context.WithCancel(context.Background())
	c := &Conversation{e: e, spec: spec, q: newQueue(sink), stop: stop,
		coming: map[*turn]context.CancelCauseFunc{}, tools: map[string]*toolCall{}, asks: map[string]*ask{}}
	c.pump.Go(func() { c.q.run(ctx) })
	return c
}

// prompts is how many are open here.
func (c *Conversation) prompts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, t := range c.turns {
		if !t.ended {
			n++
		}
	}
	return n
}

// receive takes a message of this session, or of none, on the reader's
// goroutine.
func (c *Conversation) receive(h *host, at time.Time, m *wire.Message, size int) {
	c.mu.Lock()
	if c.history && m.Permission == nil { // earlier turns: nobody's progress, and they are stored
		c.mu.Unlock()
		return
	}
	genuine := false
	for _, t := range c.turns {
		if !at.Before(t.began) {
			genuine = t.judge.Agent(at, m) == judge.Genuine || genuine
		}
	}
	t := c.current(at)
	bodies := c.translate(h, t, m, at)
	var updates []engine.Update
	if t != nil {
		if genuine && t.resting {
			t.resting = false
			updates = append(updates, engine.Update{Generation: t.p.Generation, At: at, Body: engine.Resumed{}})
		}
		if len(bodies) == 0 {
			bodies = []engine.Body{engine.Noise{Kind: kindOf(m)}}
		}
		for i, b := range bodies {
			u := engine.Update{Generation: t.p.Generation, At: at, Genuine: genuine && shows(b), Body: b}
			if i == 0 {
				u.Bytes = size
			}
			updates = append(updates, u)
		}
	} else {
		for _, b := range bodies {
			if title, ok := b.(engine.TitleSuggested); ok {
				updates = append(updates, engine.Update{At: at, Body: title})
			}
		}
	}
	c.ringDecided()
	c.mu.Unlock()
	for i := range updates {
		c.q.add(updates[i])
	}
}

// current is the prompt that an update read at a time is of: the newest, unless
// it was asked since.
func (c *Conversation) current(at time.Time) *turn {
	if n := len(c.turns); n > 0 && !at.Before(c.turns[n-1].began) {
		return c.turns[n-1]
	}
	return nil
}

// ringDecided wakes the prompts that a message may have decided or given a
// deadline.
func (c *Conversation) ringDecided() {
	for _, t := range c.turns {
		if t.judge.Verdict().Outcome != judge.Open || !t.judge.Deadline().IsZero() {
			t.ring()
		}
	}
}

// answered takes the answer to a prompt, or nil when the process ended without
// one; on the reader's goroutine.
func (c *Conversation) answered(t *turn, at time.Time, m *wire.Message) {
	if m == nil {
		return // exited tells
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.turns {
		if other.h == t.h { // another process numbers its requests anew
			other.judge.Agent(at, m)
		}
	}
	if v := t.judge.Verdict(); c.e.agent.SessionUsage && v.HasUsage {
		c.counted = v.Usage
	}
	t.ended, t.answer = true, m
	t.ring()
}

// exited is told once when the process is gone.
func (c *Conversation) exited(h *host, at time.Time) {
	exit := engine.Exit{Reason: h.reason(), Killed: h.p.Exit().Killed}
	c.mu.Lock()
	var updates []engine.Update
	for _, t := range c.turns {
		if t.h != h {
			continue // it goes on in another process
		}
		t.judge.Exit(at)
		t.ended, t.exit = true, exit.Reason
		if exit.Killed && !h.mute && !t.stopped {
			t.exit = "Rouse ended it to stop another session of the same process"
		}
		updates = append(updates, engine.Update{Generation: t.p.Generation, At: at, Body: exit})
	}
	clear(c.asks)
	c.mu.Unlock()
	for i := range updates {
		c.q.add(updates[i])
	}
	c.mu.Lock()
	for _, t := range c.turns {
		t.ring()
	}
	c.mu.Unlock()
}

// write sends a line of the session's own and tells the judges of it.
func (c *Conversation) write(h *host, line []byte) error {
	c.mu.Lock()
	c.witness(line, nil)
	c.mu.Unlock()
	return h.conn.send(line)
}

// witness tells the judges, but that of one prompt, of a line that is about to
// be written. The lock is held.
func (c *Conversation) witness(line []byte, but *turn) {
	m, err := wire.Parse(line[:len(line)-1])
	if err != nil {
		return // it is our own
	}
	at := c.e.opt.Now()
	for _, t := range c.turns {
		if t != but {
			t.judge.Client(at, m)
		}
	}
}

// Info describes the conversation as it is now.
func (c *Conversation) Info() engine.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := engine.Info{EngineSession: c.id, ModelConfirmed: c.said, Diagnostics: "unsupported", Idle: c.e.opt.Idle}
	if c.h != nil {
		if c.h.alive() { // else the number may be somebody else's
			info.PID = c.h.p.PID()
		}
		if c.h.diagnostics {
			info.Diagnostics = "supported"
		}
	}
	return info
}

// Evidence is what the judge of a prompt has seen so far; ok is false for a
// generation that is neither open, nor the last, nor ended with it.
func (c *Conversation) Evidence(generation uint64) (v judge.Verdict, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.turns {
		if t.p.Generation == generation {
			t.judge.Tick(c.e.opt.Now())
			c.ringDecided() // a replay's clock is ahead of the timer
			return t.judge.Verdict(), true
		}
	}
	for _, t := range append([]*turn{c.last}, c.ended...) {
		if t != nil && t.p.Generation == generation {
			return t.judge.Verdict(), true
		}
	}
	return judge.Verdict{}, false
}

// diagnosed takes a record of the process's stderr. prompts is how many are
// open in the whole process.
func (c *Conversation) diagnosed(at time.Time, rec diagnostics.Record, prompts int) {
	c.mu.Lock()
	updates := c.diagnose(at, rec, prompts)
	c.ringDecided()
	c.mu.Unlock()
	for i := range updates {
		c.q.add(updates[i])
	}
}

func metadata(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
