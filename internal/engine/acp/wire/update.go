package wire

import "encoding/json"

// Kinds of session/update, stable or seen in the field.
const (
	KindUserMessage  = "user_message_chunk"
	KindMessage      = "agent_message_chunk"
	KindThought      = "agent_thought_chunk"
	KindTool         = "tool_call"
	KindToolUpdate   = "tool_call_update"
	KindPlan         = "plan"
	KindPlanUpdate   = "plan_update"
	KindCommands     = "available_commands_update"
	KindMode         = "current_mode_update"
	KindConfigOption = "config_option_update"
	KindSessionInfo  = "session_info_update"
	KindUsage        = "usage_update"
)

// Update is what a session/update says. Only the fields of its kind are set;
// an unknown kind has Kind, Meta and Raw.
type Update struct {
	Kind string
	// Content is a chunk's.
	Content   Content
	MessageID string
	// Tool is set for tool_call and tool_call_update.
	Tool *Tool
	// Plan is a plan's entries.
	Plan []PlanEntry
	// Usage is set for usage_update.
	Usage *ContextUsage
	// ModeID is current_mode_update's.
	ModeID string
	// ConfigOptions are config_option_update's, nil for every other kind.
	ConfigOptions []ConfigOption
	// Title is session_info_update's; a tool's is in Tool.
	Title string
	Meta  json.RawMessage // _meta; nil when absent
	Raw   json.RawMessage // the whole update object

	rare *rareFields
}

// Content is a content block, or a list of them as one.
type Content struct {
	// Text is the text of all text blocks.
	Text string
	// Other says that there is a block that is no text: image, audio,
	// resource, resource_link or a kind that is not known.
	Other bool
	Raw   json.RawMessage // nil when there is no content
}

// PlanEntry is one line of a plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"` // high, medium, low
	Status   string `json:"status"`   // pending, in_progress, completed
}

// ContextUsage is how full the context window is. It is no proof that a model
// worked: some agents send it before they ask one.
type ContextUsage struct {
	Used, Size int64 // tokens
	Cost       *Cost // nil when the agent tells none
}

// Cost is what a session has cost so far.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"` // ISO 4217
}

// rareFields holds what a chunk never has, until the kind is known: the kind
// may be the last field of its object.
type rareFields struct {
	tool                          Tool
	used, size                    float64
	cost, entries, options, lists json.RawMessage
	mode                          string
}

func (u *Update) other() *rareFields {
	if u.rare == nil {
		u.rare = &rareFields{}
	}
	return u.rare
}

// read takes the update object in one pass.
func (u *Update) read(s *scanner) {
	s.peek()
	from := s.i
	*u = Update{}
	for key := range s.object {
		switch string(key) {
		case "sessionUpdate":
			u.Kind = s.text()
		case "content":
			if s.peek() == '[' {
				u.other().lists = s.raw()
			} else {
				u.Content = s.content()
			}
		case "messageId":
			u.MessageID = s.text()
		case "title":
			u.Title = s.text()
		case "_meta":
			u.Meta = present(s.raw())
		case "used":
			u.other().used = s.number()
		case "size":
			u.other().size = s.number()
		case "cost":
			u.other().cost = s.raw()
		case "entries":
			u.other().entries = s.raw()
		case "currentModeId":
			u.other().mode = s.text()
		case "configOptions":
			u.other().options = s.raw()
		default:
			if !isToolField(key) {
				s.skip()
				break
			}
			u.other().tool.field(s, key)
		}
	}
	if !s.bad {
		u.Raw = s.b[from:s.i:s.i]
	}
}

// settle gives the fields to the kind that they belong to.
func (u *Update) settle() {
	r := u.rare
	u.rare = nil
	title := u.Title
	if u.Kind != KindSessionInfo {
		u.Title = ""
	}
	switch u.Kind {
	case KindUserMessage, KindMessage, KindThought:
		if r != nil && r.lists != nil {
			u.Content = contentOf(r.lists)
		}
		return
	}
	single := u.Content.Raw
	u.Content = Content{}
	if r == nil {
		r = &rareFields{}
	}
	switch u.Kind {
	case KindTool, KindToolUpdate:
		u.Tool = &r.tool
		u.Tool.Title = title
		if r.lists == nil && single != nil {
			r.lists = single
		}
		u.Tool.Content = toolContents(r.lists)
	case KindPlan:
		lenient(r.entries, &u.Plan)
	case KindUsage:
		u.Usage = &ContextUsage{Used: int64(r.used), Size: int64(r.size)}
		if c := present(r.cost); c != nil && c[0] == '{' {
			u.Usage.Cost = &Cost{}
			lenient(c, u.Usage.Cost)
		}
	case KindMode:
		u.ModeID = r.mode
	case KindConfigOption:
		lenient(r.options, &u.ConfigOptions)
	}
}

func contentOf(raw json.RawMessage) Content {
	s := scanner{b: raw}
	return s.content()
}

// content reads a block, a list of blocks, or a bare string.
func (s *scanner) content() (c Content) {
	switch s.peek() {
	case 'n':
		s.skip()
		return Content{}
	case '"':
		from := s.i
		c.Text = s.text()
		c.Raw = s.b[from:s.i:s.i]
	case '[':
		from := s.i
		for range s.array {
			one := s.content()
			c.Text += one.Text
			c.Other = c.Other || one.Other
		}
		c.Raw = s.b[from:s.i:s.i]
	case '{':
		from := s.i
		kind := ""
		for key := range s.object {
			switch string(key) {
			case "type":
				kind = s.text()
			case "text":
				c.Text = s.text()
			default:
				s.skip()
			}
		}
		if kind != "" && kind != "text" {
			c.Text, c.Other = "", true
		}
		c.Raw = s.b[from:s.i:s.i]
	default:
		s.skip()
	}
	return c
}
