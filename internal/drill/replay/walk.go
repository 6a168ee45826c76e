package replay

import (
	"time"

	"rouse"
	"rouse/internal/drill/trace"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// play walks through the recording until the prompt that is told about has its
// end, or the time is over.
func (s *stage) play() error {
	prompts := map[int]int{} // events that are prompts
	for n, p := range s.tr.Prompts() {
		prompts[p.Event] = n
	}
	before := time.Duration(0)
	for k, e := range s.tr.Events {
		if e.At > s.o.Until {
			break
		}
		if err := s.pause(e.At - before); err != nil {
			return err
		}
		before = e.At
		s.clock.Store(int64(e.At))
		var err error
		switch e.Kind {
		case trace.Client:
			n, ok := prompts[k]
			if !ok {
				n = -1
			}
			err = s.client(k, e, n)
		case trace.Agent, trace.Stderr:
			err = s.agent(k, e)
		case trace.Exit:
			err = s.exit(k, e)
		}
		if err != nil {
			return err
		}
		if v, ok := s.verdict(); ok && v.Outcome != judge.Open {
			return nil
		}
	}
	s.clock.Store(int64(s.o.Until)) // a deadline that lies before it has passed
	return nil
}

// pause leaves a recorded gap, divided by the speed.
func (s *stage) pause(gap time.Duration) error {
	if s.o.Speed <= 0 || gap <= 0 {
		return nil
	}
	t := time.NewTimer(time.Duration(float64(gap) / s.o.Speed))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.ctx.Done():
		return rouse.Wrap(op, s.ctx.Err())
	}
}

// agent has a line written and waits until the engine has dealt with it.
func (s *stage) agent(k int, e trace.Event) error {
	s.mu.Lock()
	out, errs := s.out, s.err
	s.mu.Unlock()
	if !s.players.emit(e.Process, k) {
		return nil // its process is not ours to have: nothing of it matters to the prompt
	}
	var missing bool
	if err := s.until("line of the agent", func() bool { missing = s.players.missing[k]; return missing || s.players.wrote[k] }); err != nil || missing {
		return err
	}
	if err := s.until("engine that reads the agent's line", func() bool {
		if e.Kind == trace.Stderr {
			return s.err > errs
		}
		return s.out > out
	}); err != nil {
		return err
	}
	return s.settled(e)
}

// settled waits for what an answer of the agent releases in the client: the
// session that it opens.
func (s *stage) settled(e trace.Event) error {
	if e.Message == nil || e.Message.Result == nil {
		return nil
	}
	id := wire.Text(wire.At(e.Message.Result, "sessionId"))
	if id == "" {
		return nil
	}
	return s.until("session", func() bool { return s.convs[id] != nil })
}

// exit ends a process as it ended, and waits until the engine knows.
func (s *stage) exit(k int, e trace.Event) error {
	s.mu.Lock()
	exits := s.exits
	s.mu.Unlock()
	if !s.players.emit(e.Process, k) {
		return nil
	}
	return s.until("end of the agent's process", func() bool {
		return s.exits > exits && s.players.conns[e.Process] == nil || s.players.missing[k]
	})
}

// client does what the recorder's client did, through the engine.
func (s *stage) client(k int, e trace.Event, prompt int) error {
	m := e.Message
	if m == nil || e.Raw {
		return nil
	}
	came := func() bool { return s.players.got[k] }
	switch m.Method {
	case wire.MethodInitialize:
		if err := s.enter(e.Process); err != nil {
			return err
		}
		return s.until("start of the agent", came)
	case wire.MethodNew:
		s.mu.Lock()
		asked := came()
		s.mu.Unlock()
		if !asked && s.sessionsBefore(k, e.Process) > 0 {
			s.open(s.sessionOf(k))
		}
		return s.until("new session", came)
	case wire.MethodLoad, wire.MethodResume:
		// The engine may prefer the other of the two.
		return s.until("session that is opened again", func() bool { return came() || s.connected[e.Process] || s.convs[m.SessionID] == nil })
	case wire.MethodPrompt:
		c := s.of(m.SessionID)
		if c == nil || prompt < 0 {
			return nil
		}
		s.ask(c, prompt)
		return s.until("prompt", came)
	case wire.MethodCancel:
		c := s.of(m.SessionID)
		if c == nil || !s.asking(k) { // the engine has nothing to cancel
			if !s.players.pass(e.Process, k) {
				return nil
			}
			return s.until("cancel that is passed", func() bool { return s.players.missing[k] || s.players.conns[e.Process] == nil })
		}
		s.do(func() error { return c.c.Cancel(s.ctx) })
		return s.until("cancel", came)
	case "":
		return s.reply(k, m)
	}
	return nil
}

// enter starts a process of the recording by what its client opens there. The
// one before it may have outlived its client by a moment; here a session has
// one process at a time.
func (s *stage) enter(process int) error {
	for k, e := range s.tr.Events {
		if e.Process != process || e.Kind != trace.Client || e.Message == nil {
			continue
		}
		switch e.Message.Method {
		case wire.MethodNew:
			s.open(s.sessionOf(k))
			return nil
		case wire.MethodLoad, wire.MethodResume:
			if c := s.of(e.Message.SessionID); c != nil {
				if err := s.part(process - 1); err != nil {
					return err
				}
				s.do(func() error {
					err := c.c.Connect(s.ctx)
					s.change(func() { s.connected[process] = true })
					return err
				})
				return nil
			}
		}
	}
	return nil
}

// part ends a process that runs.
func (s *stage) part(process int) error {
	s.mu.Lock()
	exits := s.exits
	s.mu.Unlock()
	if !s.players.part(process) {
		return nil
	}
	return s.until("end of the process before", func() bool { return s.exits > exits })
}

// sessionsBefore counts the sessions that a process opened before an event.
func (s *stage) sessionsBefore(before, process int) (n int) {
	for _, e := range s.tr.Events[:before] {
		if e.Process == process && e.Kind == trace.Client && e.Message != nil && e.Message.Method == wire.MethodNew {
			n++
		}
	}
	return n
}

// asking reports that a prompt of the session of event k is open before it.
func (s *stage) asking(k int) bool {
	at := s.tr.Events[k]
	open := map[string]bool{}
	for _, e := range s.tr.Events[:k] {
		switch m := e.Message; {
		case e.Process != at.Process || m == nil || e.Raw:
		case e.Kind == trace.Client && m.Method == wire.MethodPrompt && m.SessionID == at.Message.SessionID:
			open[string(m.ID)] = true
		case e.Kind == trace.Agent && m.IsAnswer():
			delete(open, string(m.ID))
		}
	}
	return len(open) > 0
}

// sessionOf is the id that the answer to a session/new gives.
func (s *stage) sessionOf(request int) string {
	asked := s.tr.Events[request]
	for _, e := range s.tr.Events[request:] {
		if e.Process == asked.Process && e.Kind == trace.Agent && e.Message != nil && e.Message.IsAnswer() && wire.SameID(e.Message.ID, asked.Message.ID) {
			return wire.Text(wire.At(e.Message.Result, "sessionId"))
		}
	}
	return ""
}

// reply answers a permission as it was answered.
func (s *stage) reply(k int, m *wire.Message) error {
	asked := s.requestOf(k, m)
	if asked == nil || asked.Permission == nil {
		return nil // a request that the engine refuses by itself
	}
	c := s.of(asked.SessionID)
	if c == nil {
		return nil
	}
	id, ok := c.c.Asked(asked.ID)
	if !ok {
		return nil // nobody is asked, or it was answered with the cancel
	}
	r := rouse.Reply{Verb: rouse.ReplyCancelled}
	chosen := wire.Text(wire.At(m.Result, "outcome", "optionId"))
	for _, o := range asked.Permission.Options {
		if o.ID == chosen {
			r.Verb = map[string]string{"allow_once": rouse.ReplyOnce, "allow_always": rouse.ReplyAlways}[o.Kind]
			if r.Verb == "" {
				r.Verb = rouse.ReplyReject
			}
		}
	}
	over := false
	s.do(func() error {
		err := c.c.Answer(s.ctx, id, r)
		if rouse.KindOf(err) == rouse.NotFound { // its prompt ended meanwhile
			s.change(func() { over = true })
			return nil
		}
		return err
	})
	return s.until("answer to the permission", func() bool { return over || s.players.got[k] })
}

// requestOf is the agent's request that a message of the client answers.
func (s *stage) requestOf(answer int, m *wire.Message) *wire.Message {
	for i := answer - 1; i >= 0; i-- {
		if e := s.tr.Events[i]; e.Kind == trace.Agent && e.Message != nil && e.Message.IsRequest() && wire.SameID(e.Message.ID, m.ID) {
			return e.Message
		}
	}
	return nil
}
