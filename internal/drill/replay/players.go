package replay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"rouse"
	"rouse/internal/engine/acp/wire"
)

// players are the processes of the recording, each at the other end of a Unix
// socket; see drill.Player for what is spoken there.
type players struct {
	stage  *stage
	dir    string
	socket string
	listen net.Listener
	done   sync.WaitGroup

	// Under the stage's lock.
	conns map[int]net.Conn
	begun int // processes that were started
	// got are the client's messages that came, wrote the agent's lines that
	// were written, missing those that could not be; by event.
	got, wrote, missing map[int]bool
	extras              int // lines of a player's own
}

func newPlayers(ctx context.Context, s *stage) (*players, error) {
	dir, err := os.MkdirTemp("", "rouse-replay-*")
	if err != nil {
		return nil, &rouse.Error{Kind: rouse.Internal, Op: op, Msg: "No temporary folder could be made.", Err: err}
	}
	p := &players{stage: s, dir: dir, socket: filepath.Join(dir, "s"), conns: map[int]net.Conn{},
		got: map[int]bool{}, wrote: map[int]bool{}, missing: map[int]bool{}}
	if p.listen, err = (&net.ListenConfig{}).Listen(ctx, "unix", p.socket); err != nil {
		_ = os.RemoveAll(dir)
		return nil, &rouse.Error{Kind: rouse.Internal, Op: op, Msg: "No socket could be made.", Err: err}
	}
	p.done.Go(p.accept)
	return p, nil
}

// accept takes one player after the other: the n-th is the n-th process.
func (p *players) accept() {
	for {
		conn, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.hear(conn) })
	}
}

// hear takes what a player says.
func (p *players) hear(conn net.Conn) {
	n := 0
	for in := bufio.NewScanner(conn); in.Scan(); {
		verb, arg, _ := strings.Cut(in.Text(), " ")
		k, err := strconv.Atoi(arg)
		p.stage.change(func() {
			switch verb {
			case "hello":
				p.begun++
				n = p.begun
				p.conns[n] = conn
				_, err = fmt.Fprintf(conn, "process %d\n", n)
			case "wrote":
				p.wrote[k] = err == nil
			case "missing":
				p.missing[k] = err == nil
			case "got":
				p.got[k] = err == nil
			case "other":
				err = nil
				if arg != wire.MethodCancel && arg != wire.MethodCancelRequest {
					p.extras++
				}
			}
			if err != nil && !errors.Is(err, strconv.ErrSyntax) && p.stage.failed == nil {
				p.stage.failed = rouse.Errorf(rouse.Invalid, op, "The player does not listen.")
			}
		})
	}
	p.stage.change(func() {
		if p.conns[n] == conn {
			delete(p.conns, n)
		}
	})
	_ = conn.Close() // it is over
}

// emit has a process write an event; false when it is not there.
func (p *players) emit(process, event int) bool { return p.order(process, "emit", event) }

// pass tells a process that the client will not send an event, which it then
// says is missing; false when it is not there.
func (p *players) pass(process, event int) bool { return p.order(process, "pass", event) }

func (p *players) order(process int, verb string, event int) bool {
	p.stage.mu.Lock()
	conn := p.conns[process]
	p.stage.mu.Unlock()
	if conn == nil {
		return false
	}
	_, err := fmt.Fprintf(conn, "%s %d\n", verb, event)
	return err == nil
}

// part lets go of a process, which ends it; false when it is not there.
func (p *players) part(process int) bool {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	conn := p.conns[process]
	if conn == nil {
		return false
	}
	return conn.Close() == nil
}

// close lets go of the players, which ends them.
func (p *players) close() {
	_ = p.listen.Close() // accept ends
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// wait returns when nobody is heard any more.
func (p *players) wait() {
	p.done.Wait()
	_ = os.RemoveAll(p.dir) // a temporary folder
}
