// Package trace reads recordings of agents: what an agent and its client wrote
// to each other and when, and what the agent wrote to stderr. It is pure
// reading; who plays it is package drill.
//
// A recording is a file NAME.jsonl, one object a line with t (milliseconds) and
// dir: c2a and a2c (a message of the client or the agent in msg, or other text
// in raw), proc (a process was started, answered initialize, or exited), prov
// and note (the recorder's own, left out). Beside it NAME.stderr.txt holds the lines of stderr, each behind
// its time: "[1234] text".
package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"rouse"
	"rouse/internal/engine/acp/wire"
)

// Kind is what happened.
type Kind int

// The kinds of event.
const (
	Client Kind = iota // the client wrote Line
	Agent              // the agent wrote Line to stdout
	Stderr             // the agent wrote Line to stderr
	Spawn              // the process was started
	Exit               // the process ended
)

// Event is one thing that happened.
type Event struct {
	At   time.Duration // since the recording began, in whole milliseconds
	Kind Kind
	// Process is which process it belongs to, counted from 1. A recording does
	// not say it of lines; it is the one that was started last.
	Process int
	// Line is the text without its newline. Of Client and Agent it is JSON, but
	// for what a client wrote on purpose to see what happens, and what an agent
	// wrote that is no message.
	Line []byte
	// Message is Line as a message; nil for Stderr and for text that is none.
	Message *wire.Message
	// Raw says that the recorder's client wrote Line past its own protocol.
	Raw bool
	// Code is Exit's status; -1 when a signal ended it.
	Code int
	// Signal is the signal that ended the process, such as "SIGKILL"; or "".
	Signal string
}

// Trace is one recording.
type Trace struct {
	Path   string
	Events []Event // by time
}

const op = "trace: load"

// cut is the size at which the recorder cut a file of stderr: what stands last
// in a file of this size is a torn line.
const cut = 190_000

// Load reads the recording at path, the .jsonl file. A missing .stderr.txt is
// an empty one. Errors are NotFound and Invalid.
func Load(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &rouse.Error{Kind: rouse.NotFound, Op: op, Msg: "The recording cannot be read: " + path + ": " + reason(err) + ".", Err: err}
	}
	defer func() { _ = f.Close() }() // only read from
	beside := strings.TrimSuffix(path, ".jsonl") + ".stderr.txt"
	said, err := os.ReadFile(beside)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, &rouse.Error{Kind: rouse.Invalid, Op: op, Msg: "The recording's stderr " + beside + " cannot be read: " + reason(err) + ".", Err: err}
	}
	// At the same time stderr counts as first, so it stands first in what is
	// sorted stably.
	events := stderrOf(said)
	events, err = appendLines(events, f)
	if err != nil {
		return nil, &rouse.Error{Kind: rouse.KindOf(err), Op: op, Msg: path + ": " + rouse.SafeMessage(err), Err: err}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	process := 1
	for i := range events {
		if e := &events[i]; e.Kind == Spawn || e.Kind == Exit {
			process = max(process, e.Process)
		} else {
			e.Process = process
		}
	}
	return &Trace{Path: path, Events: events}, nil
}

// reason is the operating system's word without the path.
func reason(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// record is one line of the file.
type record struct {
	T      int64           `json:"t"`
	Dir    string          `json:"dir"`
	Msg    json.RawMessage `json:"msg"`
	Raw    *string         `json:"raw"`
	Ev     string          `json:"ev"`
	N      int             `json:"n"`
	Code   *int            `json:"code"`
	Signal string          `json:"signal"`
}

func appendLines(events []Event, r io.Reader) ([]Event, error) {
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var rec record
			if json.Unmarshal(line, &rec) != nil {
				return nil, rouse.Errorf(rouse.Invalid, op, "Line %d of the recording is not JSON.", n)
			}
			events = append(events, rec.events()...)
		}
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, &rouse.Error{Kind: rouse.Invalid, Op: op, Msg: "The recording cannot be read: it is not a file.", Err: err}
		}
	}
}

// events are what a record tells: none for the recorder's own notes, several
// for text of several lines.
func (rec record) events() []Event {
	e := Event{At: time.Duration(rec.T) * time.Millisecond, Process: max(rec.N, 1)}
	switch {
	case rec.Dir == "c2a":
		e.Kind = Client
	case rec.Dir == "a2c":
		e.Kind = Agent
	case rec.Dir == "proc" && rec.Ev == "spawn":
		e.Kind = Spawn
		return []Event{e}
	case rec.Dir == "proc" && rec.Ev == "exit":
		e.Kind, e.Code, e.Signal = Exit, -1, rec.Signal
		if rec.Code != nil {
			e.Code = *rec.Code
		}
		return []Event{e}
	default:
		return nil
	}
	lines := [][]byte{rec.Msg}
	if rec.Raw != nil {
		e.Raw = e.Kind == Client
		lines = bytes.Split([]byte(*rec.Raw), []byte("\n"))
	}
	var all []Event
	for _, line := range lines {
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 {
			continue // nobody reads an empty line
		}
		e.Line = line
		e.Message, _ = wire.Parse(line) // text that is no message stays text
		all = append(all, e)
	}
	return all
}

// stderrOf reads the lines of a .stderr.txt. A line without a time belongs to
// the time of the one before.
func stderrOf(said []byte) []Event {
	lines := bytes.Split(said, []byte("\n"))
	if last := len(lines) - 1; len(lines[last]) == 0 {
		lines = lines[:last]
	}
	if len(said) >= cut {
		lines = lines[:max(len(lines)-1, 0)]
	}
	var events []Event
	var at time.Duration
	for _, line := range lines {
		if ms, rest, ok := bytes.Cut(line, []byte("] ")); ok && len(ms) > 1 && ms[0] == '[' {
			if n, err := strconv.ParseInt(string(ms[1:]), 10, 64); err == nil {
				at, line = time.Duration(n)*time.Millisecond, rest
			}
		}
		events = append(events, Event{At: at, Kind: Stderr, Line: line})
	}
	return events
}

// Prompt is one session/prompt of a recording.
type Prompt struct {
	Event   int // its index in Events
	ID      json.RawMessage
	Session string
}

// Prompts are the prompts that the recorder's client sent by its own protocol,
// in order.
func (t *Trace) Prompts() []Prompt {
	var all []Prompt
	for i, e := range t.Events {
		if e.Kind == Client && !e.Raw && e.Message != nil && e.Message.Method == wire.MethodPrompt {
			all = append(all, Prompt{Event: i, ID: e.Message.ID, Session: e.Message.SessionID})
		}
	}
	return all
}
