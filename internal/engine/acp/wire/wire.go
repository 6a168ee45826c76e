// Package wire is one line of the Agent Client Protocol (JSON-RPC 2.0, one
// JSON object per line) as a typed Message, and back. It is pure and knows no
// connection.
//
// It does not use the protocol's Go SDK: its union types are decoded by trial
// and give unknown kinds of update the label of a known one of the same shape.
// Here what is unknown stays as it came, and a field of another type than the
// schema's is absent, never an error.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// Methods of protocol version 1, stable or seen in the field.
const (
	MethodInitialize      = "initialize"
	MethodAuthenticate    = "authenticate"
	MethodNew             = "session/new"
	MethodLoad            = "session/load"
	MethodResume          = "session/resume"
	MethodList            = "session/list"
	MethodClose           = "session/close"
	MethodPrompt          = "session/prompt"
	MethodCancel          = "session/cancel"
	MethodSetMode         = "session/set_mode"
	MethodSetModel        = "session/set_model"
	MethodSetConfigOption = "session/set_config_option"
	MethodUpdate          = "session/update"
	MethodPermission      = "session/request_permission"
	MethodCancelRequest   = "$/cancel_request"
)

// Error codes that have a meaning of their own here.
const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeCancelled      = -32800
	CodeAuthRequired   = -32000
	CodeNotFound       = -32002
)

// A line that is no message. Parse gives one of these as they are, so that
// counting them costs nothing.
var (
	ErrNotJSON   = errors.New("acp: the line is not JSON")
	ErrNotObject = errors.New("acp: the line is not a JSON object")
)

// Message is one line. Which it is follows from Method and ID: both a request,
// Method alone a notification, no Method an answer. All raw fields are pieces
// of the line that was parsed.
type Message struct {
	ID     json.RawMessage // number or string as it came; nil when absent or null
	Method string
	// SessionID is params.sessionId; "" when there is none.
	SessionID string
	Params    json.RawMessage
	Result    json.RawMessage // nil when absent; `null` is a result
	Error     *Error
	// Update is set for session/update, with an empty Kind if it names none.
	Update *Update
	// Permission is set for session/request_permission.
	Permission *Permission
	// Cancels is the id that a $/cancel_request takes back; else nil.
	Cancels json.RawMessage
}

// IsRequest reports whether the sender waits for an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsAnswer reports whether m answers a request.
func (m *Message) IsAnswer() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// Error is a JSON-RPC error.
type Error struct {
	Code    int // 0 when absent
	Message string
	Data    json.RawMessage // nil when absent
}

// Parse reads one line, in either direction and without its newline. It keeps
// pieces of line, which must not be changed afterwards. The error is
// ErrNotJSON (also for a blank line) or ErrNotObject.
func Parse(line []byte) (*Message, error) {
	s := scanner{b: line}
	if s.peek() != '{' {
		s.skip()
		if s.bad || s.peek() != 0 || s.i < len(s.b) {
			return nil, ErrNotJSON
		}
		return nil, ErrNotObject
	}
	// One allocation for both: nearly every line is an update.
	both := &struct {
		m Message
		u Update
	}{}
	m := &both.m
	for key := range s.object {
		switch string(key) {
		case "id":
			m.ID = present(s.raw())
		case "method":
			m.Method = s.text()
		case "params":
			m.params(&s, &both.u)
		case "result":
			m.Result = s.raw()
		case "error":
			m.Error = s.rpcError()
		default:
			s.skip()
		}
	}
	if s.peek(); s.bad || s.i < len(s.b) {
		return nil, ErrNotJSON
	}
	switch m.Method {
	case MethodUpdate:
		m.Update = &both.u
		m.Update.settle()
	case MethodPermission:
		m.Permission = permissionOf(m.Params)
	case MethodCancelRequest:
		m.Cancels = present(At(m.Params, "requestId"))
	}
	return m, nil
}

// params reads the parameters of any method: the method may stand behind them.
func (m *Message) params(s *scanner, u *Update) {
	s.peek()
	from := s.i
	*u = Update{}
	m.SessionID = ""
	for key := range s.object {
		switch string(key) {
		case "sessionId":
			m.SessionID = s.text()
		case "update":
			u.read(s)
		default:
			s.skip()
		}
	}
	if !s.bad {
		m.Params = s.b[from:s.i:s.i]
	}
}

func (s *scanner) rpcError() *Error {
	raw := present(s.raw())
	if raw == nil {
		return nil
	}
	e := &Error{}
	if raw[0] != '{' {
		if e.Data = raw; raw[0] == '"' {
			in := scanner{b: raw}
			e.Message = in.text()
		}
		return e
	}
	in := scanner{b: raw}
	for key := range in.object {
		switch string(key) {
		case "code":
			e.Code = int(in.number())
		case "message":
			e.Message = in.text()
		case "data":
			e.Data = present(in.raw())
		default:
			in.skip()
		}
	}
	return e
}

// SameID reports whether two ids name the same request: equal as they stand,
// or the same string or number written differently.
func SameID(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return false
	}
	if bytes.Equal(a, b) {
		return true
	}
	if a[0] == '"' || b[0] == '"' {
		sa, sb := scanner{b: a}, scanner{b: b}
		return a[0] == b[0] && sa.text() == sb.text()
	}
	x, errA := strconv.ParseFloat(string(a), 64)
	y, errB := strconv.ParseFloat(string(b), 64)
	return errA == nil && errB == nil && x == y
}

// present is raw, or nil for a null.
func present(raw []byte) json.RawMessage {
	if len(raw) == 0 || raw[0] == 'n' {
		return nil
	}
	return raw
}

func floatOf(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0
	}
	return f
}

// interned is b as a string, without an allocation for the words that nearly
// every line has.
func interned(b []byte) string {
	switch string(b) {
	case MethodUpdate:
		return MethodUpdate
	case KindMessage:
		return KindMessage
	case KindThought:
		return KindThought
	case KindToolUpdate:
		return KindToolUpdate
	case "text":
		return "text"
	case "":
		return ""
	}
	return string(b)
}
