package drill

import (
	"encoding/json"
	"fmt"

	"rouse/internal/drill/trace"
	"rouse/internal/engine/acp/wire"
)

// standIns answer what a recording does not have, so that any well-made client
// gets through its handshake: from what the recorded agent said of itself.
type standIns struct {
	initialize json.RawMessage
	session    map[string]json.RawMessage // of session/new, load or resume, without the id
	refusal    json.RawMessage            // the error with which session/new was refused
	opened     int                        // sessions of our own so far
}

// newStandIns looks through the whole recording: a later process may only have
// resumed what an earlier one opened.
func newStandIns(tr *trace.Trace) *standIns {
	a := &standIns{}
	methods := map[string]string{} // id → method
	for _, e := range tr.Events {
		switch m := e.Message; {
		case m == nil || e.Raw:
		case e.Kind == trace.Client && m.IsRequest():
			methods[string(m.ID)] = m.Method
		case e.Kind == trace.Agent && m.IsAnswer():
			a.learn(methods[string(m.ID)], m)
		}
	}
	delete(a.session, "sessionId")
	return a
}

func (a *standIns) learn(method string, m *wire.Message) {
	switch method {
	case wire.MethodInitialize:
		if m.Error == nil && a.initialize == nil {
			a.initialize = m.Result
		}
	case wire.MethodNew, wire.MethodLoad, wire.MethodResume:
		switch {
		case m.Error == nil && len(a.session) == 0:
			_ = json.Unmarshal(m.Result, &a.session) // no object: nothing is known
		case m.Error != nil && method == wire.MethodNew && a.refusal == nil:
			a.refusal = encoded(map[string]any{"code": m.Error.Code, "message": m.Error.Message})
		}
	}
}

// answer is the line that answers a request, nil for what needs none.
func (a *standIns) answer(m *wire.Message) []byte {
	if !m.IsRequest() {
		return nil
	}
	key, value := "result", any(map[string]any{})
	switch m.Method {
	case wire.MethodInitialize:
		if a.initialize == nil {
			key, value = "error", rpcFault(wire.CodeInternal, "The recorded agent never answered initialize.")
			break
		}
		value = a.initialize
	case wire.MethodNew:
		if a.refusal != nil && a.session == nil {
			key, value = "error", a.refusal
			break
		}
		a.opened++
		value = a.described(map[string]any{"sessionId": fmt.Sprintf("ses_drill%04d", a.opened)})
	case wire.MethodLoad, wire.MethodResume:
		value = a.described(map[string]any{})
	case wire.MethodSetConfigOption:
		value = map[string]any{"configOptions": a.withOption(wire.Text(wire.At(m.Params, "configId")), wire.At(m.Params, "value"))}
	case wire.MethodList:
		value = map[string]any{"sessions": []any{}}
	case wire.MethodPrompt:
		key, value = "error", rpcFault(wire.CodeInternal, "The recording has no further prompt in this session.")
	case wire.MethodAuthenticate, wire.MethodSetMode, wire.MethodSetModel, wire.MethodClose:
	default:
		key, value = "error", rpcFault(wire.CodeMethodNotFound, "Method not found: "+m.Method)
	}
	return encoded(map[string]any{"jsonrpc": "2.0", "id": m.ID, key: value})
}

// described adds modes, models and options to an answer that opens a session.
func (a *standIns) described(answer map[string]any) map[string]any {
	for name, value := range a.session {
		answer[name] = value
	}
	return answer
}

// withOption sets an option as an agent does that takes every value.
func (a *standIns) withOption(id string, value json.RawMessage) []map[string]json.RawMessage {
	options := []map[string]json.RawMessage{}
	_ = json.Unmarshal(a.session["configOptions"], &options) // none: an empty list
	for _, o := range options {
		if wire.Text(o["id"]) == id && value != nil {
			o["currentValue"] = value
		}
	}
	a.keep("configOptions", options)
	return options
}

func (a *standIns) keep(name string, value any) {
	if a.session == nil {
		a.session = map[string]json.RawMessage{}
	}
	a.session[name] = encoded(value)
}

func rpcFault(code int, message string) map[string]any {
	return map[string]any{"code": code, "message": message}
}
