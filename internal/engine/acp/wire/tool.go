package wire

import "encoding/json"

// Tool is a tool call as one message tells it; in an update, fields that are
// "" or nil did not change.
type Tool struct {
	ID    string // toolCallId
	Title string
	// Name is the agent's own name of the tool; an extension of some agents.
	Name      string
	Kind      string // read, edit, delete, move, search, execute, think, fetch, switch_mode, other
	Status    string // pending, in_progress, completed, failed
	Content   []ToolContent
	RawInput  json.RawMessage
	RawOutput json.RawMessage
	Locations []Location
}

// ToolContent is what a tool shows.
type ToolContent struct {
	Type string // content, diff, terminal
	// Text is a content's text, or a diff's new text.
	Text string
	// OldText is a diff's; "" for a new file.
	OldText    string
	Path       string // a diff's file
	TerminalID string
	Raw        json.RawMessage
}

// Location is a file that a tool works on.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line"` // 0: none
}

// Permission is a session/request_permission.
type Permission struct {
	Tool    Tool
	Options []Option
}

// Option is one answer that a person may choose.
type Option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once, reject_always
}

// isToolField reports whether a key of an update belongs to a tool alone.
func isToolField(key []byte) bool {
	switch string(key) {
	case "toolCallId", "name", "kind", "status", "rawInput", "rawOutput", "locations":
		return true
	}
	return false
}

// field reads the value of one of isToolField's keys.
func (t *Tool) field(s *scanner, key []byte) {
	switch string(key) {
	case "toolCallId":
		t.ID = s.text()
	case "name":
		t.Name = s.text()
	case "kind":
		t.Kind = s.text()
	case "status":
		t.Status = s.text()
	case "rawInput":
		t.RawInput = present(s.raw())
	case "rawOutput":
		t.RawOutput = present(s.raw())
	case "locations":
		lenient(s.raw(), &t.Locations)
	}
}

func permissionOf(params json.RawMessage) *Permission {
	p := &Permission{}
	s := scanner{b: params}
	for key := range s.object {
		switch string(key) {
		case "toolCall":
			p.Tool.read(&s)
		case "options":
			lenient(s.raw(), &p.Options)
		default:
			s.skip()
		}
	}
	return p
}

func (t *Tool) read(s *scanner) {
	for key := range s.object {
		switch {
		case isToolField(key):
			t.field(s, key)
		case string(key) == "title":
			t.Title = s.text()
		case string(key) == "content":
			t.Content = toolContents(s.raw())
		default:
			s.skip()
		}
	}
}

// toolContents reads a tool's content list; a single one counts as a list.
func toolContents(raw json.RawMessage) []ToolContent {
	raw = present(raw)
	if raw == nil {
		return nil
	}
	s := scanner{b: raw}
	if raw[0] == '{' {
		return []ToolContent{s.toolContent()}
	}
	list := []ToolContent{}
	for range s.array {
		list = append(list, s.toolContent())
	}
	return list
}

func (s *scanner) toolContent() (c ToolContent) {
	s.peek()
	from := s.i
	for key := range s.object {
		switch string(key) {
		case "type":
			c.Type = s.text()
		case "content":
			c.Text = s.content().Text
		case "newText":
			c.Text = s.text()
		case "oldText":
			c.OldText = s.text()
		case "path":
			c.Path = s.text()
		case "terminalId":
			c.TerminalID = s.text()
		default:
			s.skip()
		}
	}
	c.Raw = s.b[from:s.i:s.i]
	return c
}
