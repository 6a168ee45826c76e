package opencode

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"rouse"
)

// maxDelay is the longest delay of a prompt in seconds: one day.
const maxDelay = 86400

// promptBody is the body of a prompt, on all its routes.
type promptBody struct {
	SessionID string // only on the route without a session in its path
	MessageID string
	Parts     []rouse.Part
	Agent     string
	Model     rouse.ModelRef
	Variant   string // beside the model
	System    string
	Tools     map[string]bool
	Format    json.RawMessage
	NoReply   bool
	DelaySec  int
}

// parsePrompt reads a prompt. The error is Invalid and names the field.
func parsePrompt(body []byte) (promptBody, error) {
	f, err := parseObject(body)
	if err != nil {
		return promptBody{}, err
	}
	f.need("parts")
	p := promptBody{
		SessionID: f.text("sessionID"), MessageID: f.messageID("messageID", false),
		Agent: f.text("agent"), Model: f.model("model"), System: f.text("system"),
		Tools: f.flags("tools"), NoReply: f.flag("noReply"),
		DelaySec: int(f.integer("delay_sec", 0, maxDelay)),
	}
	if p.Variant = f.text("variant"); p.Variant == "default" {
		p.Variant = ""
	}
	p.Format = f.format()
	for _, in := range f.list("parts") {
		p.Parts = append(p.Parts, in.part())
	}
	return p, *f.err
}

// format reads the wish for a structured answer; plain text is none.
func (f *fields) format() json.RawMessage {
	in := f.inner("format")
	if in == nil {
		return nil
	}
	switch kind := in.text("type"); kind {
	case "text":
		return nil
	case "json_schema":
		in.need("schema")
		in.object("schema")
		in.integer("retryCount", 0, 100)
		return object(f.raw["format"])
	default:
		in.fault("type", "expected \"text\" or \"json_schema\", got %q", rouse.Clip(kind, 40))
		return nil
	}
}

// part reads one part of a prompt.
func (f *fields) part() rouse.Part {
	p := rouse.Part{Kind: rouse.PartKind(f.text("type"))}
	if id := f.text("id"); id != "" {
		if rouse.CheckID(rouse.PartPrefix, id) != nil {
			f.fault("id", "expected an id that starts with %q, got %q", rouse.PartPrefix, rouse.Clip(id, 40))
		}
		p.ID = id
	}
	switch p.Kind {
	case rouse.TextPart:
		f.need("text")
		p.Text, p.Synthetic, p.Ignored, p.Metadata = f.text("text"), f.flag("synthetic"), f.flag("ignored"), f.object("metadata")
	case rouse.FilePart:
		f.need("mime", "url")
		if u := f.text("url"); *f.err == nil && !readable(u) {
			f.fault("url", "expected a file:, http: or data: address; base64 in it must be whole")
		}
		p.File = &rouse.File{Mime: f.text("mime"), URL: f.text("url"), Filename: f.text("filename"), Source: f.object("source")}
	case rouse.AgentPart:
		f.need("name")
		f.text("name")
		p.Extra = f.rest()
	case rouse.SubtaskPart:
		f.need("prompt", "description", "agent")
		f.text("prompt")
		f.text("description")
		f.text("agent")
		f.model("model")
		f.text("command")
		p.Extra = f.rest()
	case "":
		f.need("type")
	default:
		f.fault("type", "expected \"text\", \"file\", \"agent\" or \"subtask\", got %q", rouse.Clip(string(p.Kind), 40))
	}
	return p
}

// rest is the object without what the part's own columns hold.
func (f *fields) rest() json.RawMessage {
	own := map[string]json.RawMessage{}
	for name, raw := range f.raw {
		if !slices.Contains([]string{"id", "type", "sessionID", "messageID"}, name) {
			own[name] = raw
		}
	}
	raw, err := json.Marshal(own)
	if err != nil {
		return nil // cannot happen: every value came out of valid JSON
	}
	return raw
}

// sessionBody is the body of POST /session.
type sessionBody struct {
	Title      string
	ParentID   string
	Agent      string
	Model      rouse.ModelRef
	Permission []rouse.PermissionRule
	Metadata   json.RawMessage
}

func parseSession(body []byte) (sessionBody, error) {
	f, err := parseObject(body)
	if err != nil {
		return sessionBody{}, err
	}
	s := sessionBody{Title: f.text("title"), ParentID: f.text("parentID"), Agent: f.text("agent"),
		Model: f.model("model"), Permission: f.rules("permission"), Metadata: f.object("metadata")}
	if s.ParentID != "" && rouse.CheckID(rouse.SessionPrefix, s.ParentID) != nil {
		f.fault("parentID", "expected an id that starts with %q, got %q", rouse.SessionPrefix, rouse.Clip(s.ParentID, 40))
	}
	return s, *f.err
}

// readable says whether a file's address may be one. Base64 of a data address
// is checked here: later the turn could only go on without the file.
func readable(address string) bool {
	head, payload, isData := strings.Cut(address, ",")
	if !strings.HasPrefix(head, "data:") {
		return address != ""
	}
	if !isData || !strings.HasSuffix(head, ";base64") {
		return isData
	}
	_, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(payload, "="))
	return err == nil
}
