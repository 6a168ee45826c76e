package drill

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"rouse/internal/drill/trace"
	"rouse/internal/engine/acp/wire"
)

// script is one process of a recording from the agent's side: what it waits
// for, what it says, and how a living client's ids and sessions are called
// there. It is pure; positions count its own events.
type script struct {
	events []trace.Event
	index  []int // of each event in the whole recording

	requests map[int]int      // answer, of either side → its request
	strays   map[int]bool     // answers of the agent to what nobody asked
	waiting  map[string][]int // messages of the client that did not come yet, by keyOf
	received map[int]bool
	silenced map[int]bool            // events that will not happen
	ids      map[int]json.RawMessage // request → the living client's id
	opened   map[int]string          // session/new, load or resume → its session
	sessions map[string]string       // recorded → living
	absent   map[string]bool         // recorded sessions that the client never opened
}

// newScript takes process n of a recording. What the orphans of a dead process
// still wrote is left out: the player leaves none. So are the answers to what
// the recorder's client wrote past its protocol.
func newScript(tr *trace.Trace, n int) *script {
	s := &script{requests: map[int]int{}, strays: map[int]bool{}, waiting: map[string][]int{}, received: map[int]bool{}, ids: map[int]json.RawMessage{}, silenced: map[int]bool{},
		opened: map[int]string{}, sessions: map[string]string{}, absent: map[string]bool{}}
	initialized, dead := false, false
	open := map[string]int{}  // id → the client's request
	asked := map[string]int{} // id → the agent's
	past := map[string]bool{} // id → the client's, past its protocol
	for k, e := range tr.Events {
		if e.Process != n || dead || e.Kind == trace.Spawn {
			continue
		}
		m, at := e.Message, len(s.events)
		if e.Raw {
			if m != nil && m.IsRequest() {
				past[string(m.ID)] = true
			}
			continue
		}
		switch e.Kind {
		case trace.Client:
			if m == nil {
				continue
			}
			if m.IsRequest() {
				open[string(m.ID)] = at
			}
			if request, ok := asked[string(m.ID)]; ok && m.IsAnswer() {
				s.requests[at] = request
			}
			key := keyOf(m, m.SessionID)
			s.waiting[key] = append(s.waiting[key], at)
			if m.Method == wire.MethodLoad || m.Method == wire.MethodResume {
				s.opened[at] = m.SessionID
			}
		case trace.Agent:
			if m == nil {
				break
			}
			if m.IsAnswer() {
				request, ours := open[string(m.ID)]
				if !ours {
					if !initialized || past[string(m.ID)] {
						continue
					}
					s.strays[at] = true
					break
				}
				s.requests[at] = request // an agent may answer twice
				method := s.events[request].Message.Method
				initialized = initialized || method == wire.MethodInitialize
				if method == wire.MethodNew {
					s.opened[request] = wire.Text(wire.At(m.Result, "sessionId"))
				}
			} else if !initialized && m.SessionID != "" {
				continue // an orphan's
			} else if m.IsRequest() {
				asked[string(m.ID)] = at
			}
		case trace.Exit:
			dead = true
		}
		s.events, s.index = append(s.events, e), append(s.index, k)
	}
	return s
}

// keyOf names a message so that the n-th of a kind in the recording is the n-th
// of the living client's. Opening a session counts by itself, the rest counts
// within its session; an answer goes by the id of the agent's request.
func keyOf(m *wire.Message, session string) string {
	switch m.Method {
	case "":
		return "answer " + string(m.ID)
	case wire.MethodNew, wire.MethodLoad, wire.MethodResume:
		return m.Method
	}
	return m.Method + " " + session
}

// receive finds the recorded message that a living one stands for. ok is false
// for one that the recording does not have.
func (s *script) receive(m *wire.Message) (at int, ok bool) {
	key := keyOf(m, s.recorded(m.SessionID))
	if len(s.waiting[key]) == 0 {
		return 0, false
	}
	at = s.waiting[key][0]
	s.waiting[key] = s.waiting[key][1:]
	s.received[at], s.ids[at] = true, m.ID
	if session := s.opened[at]; session != "" {
		s.sessions[session] = session
		if m.SessionID != "" {
			s.sessions[session] = m.SessionID
		}
	}
	return at, true
}

// recorded is what the recording calls a living session. One that it does not
// know stands for the first session that nobody opened.
func (s *script) recorded(live string) string {
	if live == "" {
		return ""
	}
	for name, called := range s.sessions {
		if called == live {
			return name
		}
	}
	for at := range s.events {
		if name := s.opened[at]; name != "" && s.sessions[name] == "" && !s.absent[name] {
			s.sessions[name] = live
			return name
		}
	}
	return live
}

// overtaken reports whether a client that has not sent the message at a
// position has gone past it: a later one of the same session came. One that
// opens a session is passed by any.
func (s *script) overtaken(at int) bool {
	m := s.events[at].Message
	for later := at + 1; later < len(s.events); later++ {
		if s.received[later] && (m.SessionID == "" || s.opened[at] != "" || sessionOf(s.events[later]) == m.SessionID) {
			return true
		}
	}
	return false
}

// leaveOut gives up a message that did not come: its session, if it was to
// open one that is not known otherwise, is never played.
func (s *script) leaveOut(at int) {
	key := keyOf(s.events[at].Message, s.events[at].Message.SessionID)
	for i, w := range s.waiting[key] {
		if w == at {
			s.waiting[key] = append(s.waiting[key][:i:i], s.waiting[key][i+1:]...)
			break
		}
	}
	if session := s.opened[at]; session != "" && s.sessions[session] == "" {
		s.absent[session] = true
	}
}

// plays reports whether the event at a position happens: it does not belong to
// a session that was not opened or to a turn that was cut short, nor answer a
// request that did not come or was never made.
func (s *script) plays(at int) bool {
	e := s.events[at]
	request, answers := s.requests[at]
	if answers && e.Kind == trace.Agent && !s.received[request] || answers && s.silenced[request] || s.absent[sessionOf(e)] {
		s.silenced[at] = true
	}
	return !s.silenced[at]
}

// cutShort ends the prompt of a session that is open at a position, because
// the client cancelled it and the recorded one did not: the rest of it will not
// happen. It gives the living id of that prompt, nil when none is open.
func (s *script) cutShort(live string, at int) (id json.RawMessage) {
	session := s.recorded(live)
	prompt := -1
	for i := range s.events {
		if m := s.events[i].Message; s.received[i] && !s.silenced[i] && m.Method == wire.MethodPrompt && m.SessionID == session {
			prompt = i
		}
	}
	if prompt < 0 {
		return nil
	}
	end := len(s.events)
	for i := prompt + 1; i < len(s.events); i++ {
		request, answers := s.requests[i]
		next := s.events[i].Kind == trace.Client && s.events[i].Message.Method == wire.MethodPrompt && sessionOf(s.events[i]) == session
		if answers && request == prompt || next {
			end = i
			break
		}
	}
	if end < at {
		return nil // it has its answer
	}
	for i := at; i < end; i++ {
		if s.events[i].Kind == trace.Agent && sessionOf(s.events[i]) == session {
			s.silenced[i] = true
		}
	}
	s.silenced[prompt] = true // and with it its answer
	return s.ids[prompt]
}

// pressed reports whether the client is ahead of a position in a way that
// releases what comes before: it cancelled or answered already.
func (s *script) pressed(at int) bool {
	for later := at + 1; later < len(s.events); later++ {
		if s.received[later] && !s.events[later].Message.IsRequest() {
			return true
		}
	}
	return false
}

// sayable is false for an answer whose request did not come.
func (s *script) sayable(at int) bool {
	request, answers := s.requests[at]
	return !answers || s.events[at].Kind != trace.Agent || s.received[request]
}

// line is what the agent writes at a position, with the living client's names;
// ok is false for what is not sayable.
func (s *script) line(at int) (line []byte, ok bool) {
	if !s.sayable(at) {
		return nil, false
	}
	e := s.events[at]
	line = e.Line
	for name, live := range s.sessions {
		if name != live {
			line = bytes.ReplaceAll(line, inQuotes(name), inQuotes(live))
		}
	}
	request, answers := s.requests[at]
	switch {
	case s.strays[at]: // its id must not be one that the living client gave
		line = withID(line, stray(e.Message.ID))
	case answers: // of the agent's lines only answers carry a client's id
		line = withID(line, s.ids[request])
	}
	return line, true
}

// stray is an id that no client gave: null stays null.
func stray(id json.RawMessage) json.RawMessage {
	if id == nil {
		return json.RawMessage("null")
	}
	return inQuotes("stray " + strings.Trim(string(id), `"`))
}

// withID is a line with another id in the place of its own.
func withID(line []byte, id json.RawMessage) []byte {
	in := json.NewDecoder(bytes.NewReader(line))
	_, err := in.Token() // {
	for err == nil && in.More() {
		var key json.Token
		var value json.RawMessage
		if key, err = in.Token(); err == nil {
			err = in.Decode(&value)
		}
		if end := int(in.InputOffset()); key == "id" && err == nil {
			return slices.Concat(line[:end-len(value)], id, line[end:])
		}
	}
	return line // it has none
}

func sessionOf(e trace.Event) string {
	if e.Message == nil {
		return ""
	}
	return e.Message.SessionID
}

func inQuotes(s string) []byte { return strconv.AppendQuote(nil, s) }

// encoded is v as JSON that is not made safe for a web page: recorded text
// stays as it was.
func encoded(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null") // maps of JSON always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
