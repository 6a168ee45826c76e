// Package record writes down what an agent and its client say to each other, in
// the form that package trace reads, and hands everything on as it is: a proxy
// for the standard streams of an agent. What it writes is neutralised (Neutral)
// and is judged as the original was.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
)

const op = "drill: record"

// Journal is a recording that is being written. Its methods are safe for
// concurrent use; they stamp and return, a goroutine writes. What cannot be
// written is lost, and Close says so: an agent is never held up.
type Journal struct {
	began time.Time
	out   io.WriteCloser
	err   io.WriteCloser // of the lines of stderr

	mu      sync.Mutex
	waiting []entry
	bytes   int
	dropped int
	bell    chan struct{}
	closed  bool
	done    chan error
}

type entry struct {
	at   time.Duration
	dir  string // c2a, a2c, stderr, or proc with line as it is to be written
	line []byte
}

// backlog bounds what waits to be written, in bytes.
const backlog = 256 << 20

// Create begins a recording at path, a .jsonl file that must not exist, and its
// .stderr.txt. Errors are Conflict for one that exists, Invalid for one that
// cannot be made.
func Create(path string) (*Journal, error) {
	out, err := create(path)
	if err != nil {
		return nil, err
	}
	said, err := create(strings.TrimSuffix(path, ".jsonl") + ".stderr.txt")
	if err != nil {
		_ = out.Close() // nothing was written
		return nil, err
	}
	return begin(out, said), nil
}

func create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil, &rouse.Error{Kind: rouse.Conflict, Op: op, Msg: "The file " + path + " exists already; a recording is never written over.", Err: err}
	case err != nil:
		return nil, &rouse.Error{Kind: rouse.Invalid, Op: op, Msg: "The recording cannot be written to " + path + ".", Err: err}
	}
	return f, nil
}

func begin(out, said io.WriteCloser) *Journal {
	j := &Journal{began: time.Now(), out: out, err: said, bell: make(chan struct{}, 1), done: make(chan error, 1)}
	go func() { j.done <- j.write() }()
	return j
}

// Client notes a line that the client wrote, Agent one of the agent, Stderr
// one of its standard error; without their newlines. They keep the line.
func (j *Journal) Client(line []byte) { j.note(entry{dir: "c2a", line: line}) }

// Agent is described at Client.
func (j *Journal) Agent(line []byte) { j.note(entry{dir: "a2c", line: line}) }

// Stderr is described at Client.
func (j *Journal) Stderr(line []byte) { j.note(entry{dir: "stderr", line: line}) }

// Spawn notes that the agent was started. Of the command line only the
// program's name is kept.
func (j *Journal) Spawn(program string) {
	if !word(program) {
		program = hidden
	}
	j.note(entry{dir: "proc", line: fmt.Appendf(nil, `"ev":"spawn","n":1,"cmd":%s`, quoted(program))})
}

// Exit notes how it ended: a code, or the name of a signal.
func (j *Journal) Exit(code int, signal string) {
	end := fmt.Sprintf(`"code":%d,"signal":null`, code)
	if signal != "" {
		end = fmt.Sprintf(`"code":null,"signal":%s`, quoted(signal))
	}
	j.note(entry{dir: "proc", line: []byte(`"ev":"exit","n":1,` + end)})
}

func (j *Journal) note(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.at = time.Since(j.began) // under the lock: the order of the file is that of time
	if j.closed {
		return
	}
	if j.bytes+len(e.line) > backlog {
		j.dropped++
		return
	}
	j.bytes += len(e.line)
	j.waiting = append(j.waiting, e)
	j.ring()
}

func (j *Journal) ring() {
	select {
	case j.bell <- struct{}{}:
	default:
	}
}

// Close writes what waits. The error says that the recording is not whole.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.closed = true
	j.ring()
	j.mu.Unlock()
	err := errors.Join(<-j.done, j.out.Close(), j.err.Close())
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err != nil:
		return &rouse.Error{Kind: rouse.Unavailable, Op: op, Msg: "The recording could not be written whole.", Err: err}
	case j.dropped > 0:
		return rouse.Errorf(rouse.Unavailable, op, "The recording is not whole: %d lines came faster than they could be written.", j.dropped)
	}
	return nil
}

// write is the goroutine that writes; it goes on after an error, so that
// nobody waits for it.
func (j *Journal) write() (failed error) {
	var n Neutral
	for range j.bell {
		j.mu.Lock()
		items, closed := j.waiting, j.closed
		j.waiting, j.bytes = nil, 0
		j.mu.Unlock()
		for _, e := range items {
			if err := j.put(&n, e); failed == nil {
				failed = err
			}
		}
		if closed {
			return failed
		}
	}
	return failed
}

// put writes one line, whole.
func (j *Journal) put(n *Neutral, e entry) error {
	ms := e.at.Milliseconds()
	if e.dir == "stderr" {
		line, ok := diagnostics.Parse(diagnostics.Line{Text: e.line}).Neutral(n.Session)
		if !ok {
			line = fmt.Sprintf("(%d bytes)", len(e.line))
		}
		_, err := fmt.Fprintf(j.err, "[%d] %s\n", ms, line)
		return err
	}
	body := e.line
	if e.dir != "proc" {
		m, ok := n.Message(e.line)
		if ok {
			body = append([]byte(`"msg":`), m...)
		} else {
			e.dir, body = "note", fmt.Appendf(nil, `"skipped":%d`, len(e.line))
		}
	}
	_, err := fmt.Fprintf(j.out, "{\"t\":%d,\"dir\":%q,%s}\n", ms, e.dir, body)
	return err
}

func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`) // strings always encode
	}
	return b
}

// splitter cuts what passes into lines.
type splitter struct {
	rest []byte
	long bool
	most int // bytes of a line that is told; of a longer one nothing is
	told func(line []byte)
}

// feed takes what is about to be handed on.
func (s *splitter) feed(read []byte) {
	for {
		i := bytes.IndexByte(read, '\n')
		if i < 0 {
			break
		}
		s.add(read[:i])
		s.end()
		read = read[i+1:]
	}
	s.add(read)
}

func (s *splitter) add(piece []byte) {
	if s.long = s.long || len(s.rest)+len(piece) > s.most; s.long {
		s.rest = nil
		return
	}
	s.rest = append(s.rest, piece...)
}

func (s *splitter) end() {
	line := bytes.TrimSuffix(s.rest, []byte("\r"))
	if !s.long && len(line) > 0 {
		s.told(line)
	}
	s.rest, s.long = nil, false
}
