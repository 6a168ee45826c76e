package wire

import (
	"bytes"
	"encoding/json"
)

// Block is one part of a prompt.
type Block struct {
	Type     string    `json:"type"` // text, image, audio, resource, resource_link
	Text     string    `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"`     // image, audio: base64
	MimeType string    `json:"mimeType,omitempty"` // image, audio, resource_link
	URI      string    `json:"uri,omitempty"`      // resource_link
	Name     string    `json:"name,omitempty"`     // resource_link
	Resource *Resource `json:"resource,omitempty"`
}

// Resource is a file's content inside a prompt; for agents that offer
// embeddedContext.
type Resource struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	Blob     string `json:"blob,omitempty"` // base64
}

// TextBlock is a prompt's text.
func TextBlock(text string) Block { return Block{Type: "text", Text: text} }

// MCPServer is a server of tools that the agent is to start for a session.
type MCPServer struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []EnvVar `json:"env"`
}

// EnvVar is one variable of an MCPServer.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type object map[string]any

// Hello is initialize, as a client that offers no files and no terminal. meta
// is clientCapabilities._meta (an opt-in of some vendors), a JSON object; nil
// leaves it out.
func Hello(id int64, name, version string, meta json.RawMessage) []byte {
	caps := object{"fs": object{"readTextFile": false, "writeTextFile": false}, "terminal": false}
	if meta != nil {
		caps["_meta"] = meta
	}
	return request(id, MethodInitialize, object{"protocolVersion": 1, "clientCapabilities": caps,
		"clientInfo": object{"name": name, "version": version}})
}

// Authenticate asks for one of the ways that initialize offered.
func Authenticate(id int64, method string) []byte {
	return request(id, MethodAuthenticate, object{"methodId": method})
}

// NewSession opens a session in an absolute directory.
func NewSession(id int64, dir string, servers []MCPServer) []byte {
	return request(id, MethodNew, opening(dir, servers))
}

// LoadSession opens a stored session; its history is replayed as updates
// before the answer.
func LoadSession(id int64, session, dir string, servers []MCPServer) []byte {
	p := opening(dir, servers)
	p["sessionId"] = session
	return request(id, MethodLoad, p)
}

// ResumeSession opens a stored session without its history.
func ResumeSession(id int64, session, dir string, servers []MCPServer) []byte {
	p := opening(dir, servers)
	p["sessionId"] = session
	return request(id, MethodResume, p)
}

func opening(dir string, servers []MCPServer) object {
	if servers == nil {
		servers = []MCPServer{} // the schema wants a list
	}
	return object{"cwd": dir, "mcpServers": servers}
}

// ListSessions asks for the stored sessions of a directory.
func ListSessions(id int64, dir string) []byte {
	return request(id, MethodList, object{"cwd": dir})
}

// CloseSession frees a session.
func CloseSession(id int64, session string) []byte {
	return request(id, MethodClose, object{"sessionId": session})
}

// Prompt starts a turn; its answer is the turn's end.
func Prompt(id int64, session string, blocks ...Block) []byte {
	return request(id, MethodPrompt, object{"sessionId": session, "prompt": blocks})
}

// Cancel asks the running turn to end. It is a notification: the prompt's
// answer tells what came of it.
func Cancel(session string) []byte {
	return notification(MethodCancel, object{"sessionId": session})
}

// SetMode chooses one of Session.Modes.
func SetMode(id int64, session, mode string) []byte {
	return request(id, MethodSetMode, object{"sessionId": session, "modeId": mode})
}

// SetModel chooses one of Session.Models.
func SetModel(id int64, session, model string) []byte {
	return request(id, MethodSetModel, object{"sessionId": session, "modelId": model})
}

// SetConfigOption chooses a value of one of Session.ConfigOptions.
func SetConfigOption(id int64, session, option, value string) []byte {
	return request(id, MethodSetConfigOption, object{"sessionId": session, "configId": option, "value": value})
}

// Select answers a session/request_permission with one of its options.
func Select(id json.RawMessage, option string) []byte {
	return answer(id, object{"outcome": object{"outcome": "selected", "optionId": option}})
}

// SelectNone answers a session/request_permission whose turn is being
// cancelled.
func SelectNone(id json.RawMessage) []byte {
	return answer(id, object{"outcome": object{"outcome": "cancelled"}})
}

// TakeBack asks the agent to give up one of the client's own requests.
func TakeBack(id int64) []byte {
	return notification(MethodCancelRequest, object{"requestId": id})
}

// MethodNotFound answers a request of the agent's that is not served.
func MethodNotFound(id json.RawMessage, method string) []byte {
	return Refuse(id, CodeMethodNotFound, "Method not found: "+method)
}

// Refuse answers a request of the agent's with an error.
func Refuse(id json.RawMessage, code int, message string) []byte {
	return line(object{"jsonrpc": "2.0", "id": id, "error": object{"code": code, "message": message}})
}

func request(id int64, method string, params object) []byte {
	return line(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

func notification(method string, params object) []byte {
	return line(object{"jsonrpc": "2.0", "method": method, "params": params})
}

func answer(id json.RawMessage, result object) []byte {
	return line(object{"jsonrpc": "2.0", "id": id, "result": result})
}

// line is one message with its newline.
func line(m object) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		// Strings and numbers always encode; what is left is an id or a _meta
		// that is no JSON: a defect of the caller, not of any input.
		panic("acp: encode: " + err.Error())
	}
	return b.Bytes()
}
