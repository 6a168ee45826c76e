package drill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"rouse"
	"rouse/internal/drill/trace"
)

// step plays what a driver asks for, one line at a time: nothing is written
// unless it says so, and it learns when it was. Both sides have the recording
// and name events by their index in trace.Trace.Events. Lines of text:
//
//	player: hello PID     first of all
//	driver: process N     which process of the recording this one is
//	driver: emit K        write event K, or end as it did
//	driver: pass K        the client will not send event K; answered with missing
//	player: wrote K       event K was written; an exit follows its line
//	player: missing K     it is not played: the client passes it, it answers a
//	                      request that the client did not send, or is not this
//	                      process's own
//	player: got K         a message of the client came: it is event K
//	player: other METHOD  one came that the recording does not have; a request
//	                      was answered by the player itself
//
// A driver that closes its end ends the process.
func (s *stage) step(ctx context.Context) (Ending, error) {
	d := newDriver(ctx, s.Steps)
	d.tell("hello %d", os.Getpid())
	order, ok := <-d.orders
	verb, n := split(order)
	if !ok || verb != "process" || n < 1 {
		return Ending{}, rouse.Errorf(rouse.Invalid, opPlay, "The driver's first line is %q; want \"process N\".", order)
	}
	s.script = newScript(s.tr, n)
	for d.err == nil {
		select {
		case <-ctx.Done():
			return Ending{}, rouse.Wrap(opPlay, ctx.Err())
		case m, open := <-s.said:
			if !open {
				return Ending{}, nil
			}
			at, err := s.take(m)
			switch {
			case err != nil:
				return Ending{}, err
			case at >= 0:
				d.tell("got %d", s.script.index[at])
			default:
				d.tell("other %s", m.Method)
			}
		case order, open := <-d.orders:
			if !open {
				return Ending{}, nil
			}
			end, err := s.obey(d, order)
			if err != nil {
				return Ending{}, err
			}
			if end != nil {
				return *end, nil
			}
		}
	}
	return Ending{}, d.err
}

// obey carries out one order; an Ending ends the process.
func (s *stage) obey(d *driver, order string) (*Ending, error) {
	verb, k := split(order)
	at := slices.Index(s.script.index, k)
	switch {
	case verb == "pass" && at >= 0 && s.script.events[at].Kind == trace.Client:
		s.script.leaveOut(at)
		d.tell("missing %d", k)
		return nil, nil
	case verb != "emit" || k < 0 || k >= len(s.tr.Events) || s.tr.Events[k].Kind == trace.Client:
		return nil, rouse.Errorf(rouse.Invalid, opPlay, "The driver's line %q is no \"emit K\" of an agent's event, nor a \"pass K\" of a client's.", order)
	case at < 0 || !s.script.sayable(at):
		d.tell("missing %d", k)
		return nil, nil
	}
	if err := s.perform(at); err != nil {
		return nil, err
	}
	d.tell("wrote %d", k)
	if e := s.script.events[at]; e.Kind == trace.Exit {
		end := ending(e)
		return &end, nil
	}
	return nil, nil
}

// driver is the other end of Steps.
type driver struct {
	orders <-chan string // closed at its end
	w      io.Writer
	err    error // the first failed write
}

func newDriver(ctx context.Context, rw io.ReadWriter) *driver {
	orders := make(chan string)
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(rw); lines.Scan(); {
			select {
			case orders <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return &driver{orders: orders, w: rw}
}

func (d *driver) tell(format string, args ...any) {
	if _, err := fmt.Fprintf(d.w, format+"\n", args...); err != nil {
		d.err = errors.Join(d.err, rouse.Wrap(opPlay, err))
	}
}

// split reads "verb N"; N is -1 when there is none.
func split(order string) (verb string, n int) {
	verb, number, _ := strings.Cut(order, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		n = -1
	}
	return verb, n
}
