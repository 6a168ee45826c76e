package drill

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"rouse"
	"rouse/internal/drill/trace"
	"rouse/internal/engine/acp/wire"
)

// Player is a recorded agent as a process: it takes a living client's messages
// for the recorded client's, and writes what the agent wrote then, in the same
// order.
//
// A message counts for the n-th recorded one of its method and session; what
// follows in the recording is held until it comes. One that the client leaves
// out (an authenticate, a set_mode, a second session) is passed when a later
// one comes; one that the recording does not have is answered plausibly. A
// cancel or the answer to a permission releases at once what came before it.
// The first session that a client opens is the first recorded one; of a second
// that it does not open nothing is played.
type Player struct {
	// Process is which process of the recording to be, from 1; default 1.
	Process int
	// Speed divides the recorded gaps; default 1.
	Speed float64
	// Steps is the other end of a driver that plays the lines by itself; nil
	// plays them by the clock. What both write is told at stage.step.
	Steps io.ReadWriter

	In       io.Reader // what the client writes
	Out, Err io.Writer // what the agent writes
}

// Ending is how the process is to end.
type Ending struct {
	Code   int    // the exit status, if Signal is ""
	Signal string // the signal to end by, such as "SIGKILL"
}

const opPlay = "drill: agent"

// Play plays the recording at path until it ends or the client closes In.
func (p Player) Play(ctx context.Context, path string) (Ending, error) {
	tr, err := trace.Load(path)
	if err != nil {
		return Ending{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &stage{Player: p, tr: tr, said: listen(ctx, p.In), extras: newStandIns(tr)}
	if p.Steps != nil {
		return s.step(ctx)
	}
	s.script = newScript(tr, cmp.Or(p.Process, 1))
	if len(s.script.events) == 0 {
		return Ending{}, rouse.Errorf(rouse.Invalid, opPlay, "The recording has nothing of a process %d.", cmp.Or(p.Process, 1))
	}
	return s.run(ctx)
}

// stage is a Player at work.
type stage struct {
	Player
	tr     *trace.Trace
	script *script
	extras *standIns
	at     int                  // of the event that is next, when playing by the clock
	said   <-chan *wire.Message // closed at the end of In
}

// errOver says that the client has closed its end.
var errOver = errors.New("drill: the client is gone")

// listen reads the client's messages; what is none is passed over, as agents
// do. It ends with In, or with ctx once In gives something.
func listen(ctx context.Context, in io.Reader) <-chan *wire.Message {
	said := make(chan *wire.Message)
	go func() {
		defer close(said)
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadBytes('\n')
			if m, bad := wire.Parse(bytes.TrimSpace(line)); bad == nil {
				select {
				case said <- m:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return said
}

// run plays by the clock.
func (s *stage) run(ctx context.Context) (Ending, error) {
	before := time.Duration(0) // recorded time of the event before
	for at, e := range s.script.events {
		if s.at = at; !s.script.plays(at) {
			continue
		}
		gap := e.At - before
		before = e.At
		var err error
		if e.Kind == trace.Client {
			err = s.await(ctx, at)
		} else {
			err = s.pause(ctx, at, gap)
		}
		if e.Kind == trace.Exit && e.Code == 0 && err == nil {
			err = s.idle(ctx) // it ended because its client did
		}
		if err == nil && s.script.plays(at) { // what came meanwhile may have ended the turn
			err = s.perform(at)
		}
		switch {
		case errors.Is(err, errOver):
			return Ending{}, nil
		case err != nil:
			return Ending{}, err
		case e.Kind == trace.Exit:
			return ending(e), nil
		}
	}
	err := s.idle(ctx)
	if errors.Is(err, errOver) {
		err = nil
	}
	return Ending{}, err
}

// await holds until the client's message at a position came or was passed.
func (s *stage) await(ctx context.Context, at int) error {
	for !s.script.received[at] && s.script.plays(at) {
		if s.script.overtaken(at) {
			s.script.leaveOut(at)
			return nil
		}
		if err := s.hear(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// pause lets a recorded gap pass, and listens meanwhile. One that is no longer
// than a clock's tick is none.
func (s *stage) pause(ctx context.Context, at int, gap time.Duration) error {
	gap = time.Duration(float64(gap) / cmp.Or(s.Speed, 1))
	if gap < time.Millisecond {
		return nil
	}
	timer := time.NewTimer(gap)
	defer timer.Stop()
	for !s.script.pressed(at) && s.script.plays(at) {
		if err := s.hear(ctx, timer); errors.Is(err, errTime) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// idle answers what comes until the client closes its end: errOver.
func (s *stage) idle(ctx context.Context) error {
	for {
		if err := s.hear(ctx, nil); err != nil {
			return err
		}
	}
}

// errTime says that the time is up.
var errTime = errors.New("drill: time is up")

// hear takes the client's next message, or gives errTime when the timer fires
// first.
func (s *stage) hear(ctx context.Context, timer *time.Timer) error {
	var up <-chan time.Time
	if timer != nil {
		up = timer.C
	}
	select {
	case <-ctx.Done():
		return rouse.Wrap(opPlay, ctx.Err())
	case <-up:
		return errTime
	case m, ok := <-s.said:
		if !ok {
			return errOver
		}
		_, err := s.take(m)
		return err
	}
}

// take gives a message to the script, or answers what it does not have. at is
// its position there, -1 for none.
func (s *stage) take(m *wire.Message) (at int, err error) {
	at, ok := s.script.receive(m)
	if ok {
		return at, nil
	}
	line := s.extras.answer(m)
	if m.Method == wire.MethodCancel && s.Steps == nil {
		if id := s.script.cutShort(m.SessionID, s.at); id != nil {
			line = encoded(map[string]any{"jsonrpc": "2.0", "id": id, "result": map[string]any{"stopReason": "cancelled"}})
		}
	}
	if line != nil {
		err = s.write(s.Out, line)
	}
	return -1, err
}

// perform writes what the agent wrote at a position.
func (s *stage) perform(at int) error {
	switch e := s.script.events[at]; e.Kind {
	case trace.Agent:
		line, ok := s.script.line(at)
		if !ok {
			return rouse.Errorf(rouse.Internal, opPlay, "The request that event %d answers did not come.", s.script.index[at])
		}
		return s.write(s.Out, line)
	case trace.Stderr:
		if s.Steps == nil {
			return s.write(s.Err, restamped(e.Line, time.Now()))
		}
		return s.write(s.Err, e.Line)
	}
	return nil
}

func (s *stage) write(w io.Writer, line []byte) error {
	_, err := w.Write(append(bytes.Clone(line), '\n'))
	return rouse.Wrap(opPlay, err)
}

func ending(e trace.Event) Ending {
	if e.Signal != "" {
		return Ending{Signal: e.Signal}
	}
	return Ending{Code: e.Code}
}
