package opencode

import (
	"encoding/json"
	"fmt"

	"rouse"
)

// partHead is what every part on this wire begins with.
type partHead struct {
	ID        string         `json:"id"`
	SessionID string         `json:"sessionID"`
	MessageID string         `json:"messageID"`
	Type      rouse.PartKind `json:"type"`
}

// wireText is a text or a reasoning part.
type wireText struct {
	partHead
	Text      string          `json:"text"`
	Synthetic bool            `json:"synthetic,omitempty"`
	Ignored   bool            `json:"ignored,omitempty"`
	Time      *wireSpan       `json:"time,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

type wireFile struct {
	partHead
	Mime     string          `json:"mime"`
	Filename string          `json:"filename,omitempty"`
	URL      string          `json:"url"`
	Source   json.RawMessage `json:"source,omitempty"`
}

type wireTool struct {
	partHead
	CallID   string          `json:"callID"`
	Tool     string          `json:"tool"`
	State    any             `json:"state"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

type toolPending struct {
	Status rouse.ToolState `json:"status"`
	Input  json.RawMessage `json:"input"`
	Raw    string          `json:"raw"`
}

type toolRunning struct {
	Status   rouse.ToolState `json:"status"`
	Input    json.RawMessage `json:"input"`
	Title    string          `json:"title,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Time     wireSpan        `json:"time"`
}

type toolCompleted struct {
	Status      rouse.ToolState `json:"status"`
	Input       json.RawMessage `json:"input"`
	Output      string          `json:"output"`
	Title       string          `json:"title"`
	Metadata    json.RawMessage `json:"metadata"`
	Time        wireSpan        `json:"time"`
	Attachments []wireFile      `json:"attachments,omitempty"`
}

type toolFailed struct {
	Status   rouse.ToolState `json:"status"`
	Input    json.RawMessage `json:"input"`
	Error    string          `json:"error"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Time     wireSpan        `json:"time"`
}

type wireStepStart struct {
	partHead
}

type wireStepFinish struct {
	partHead
	Reason string     `json:"reason"`
	Cost   float64    `json:"cost"`
	Tokens wireTokens `json:"tokens"`
}

// renderPart gives a part as this wire has it.
func renderPart(p *rouse.Part) any {
	head := partHead{ID: p.ID, SessionID: p.SessionID, MessageID: p.MessageID, Type: p.Kind}
	switch p.Kind {
	case rouse.TextPart, rouse.ReasoningPart:
		w := wireText{partHead: head, Text: p.Text, Synthetic: p.Synthetic, Ignored: p.Ignored, Metadata: partMetadata(p)}
		if !p.Start.IsZero() || p.Kind == rouse.ReasoningPart {
			w.Time = &wireSpan{Start: millis(p.Start), End: millis(p.End)}
		}
		return w
	case rouse.FilePart:
		return renderFile(head, p.File)
	case rouse.ToolPart:
		return renderTool(head, p)
	case rouse.StepFinish:
		w := wireStepFinish{partHead: head}
		if p.Step != nil {
			w.Reason, w.Cost, w.Tokens = p.Step.Reason, p.Step.Usage.Cost, renderTokens(p.Step.Usage.Tokens, true)
		}
		return w
	case rouse.StepStart:
		return wireStepStart{head}
	default:
		return renderExtra(head, p.Extra)
	}
}

func renderFile(head partHead, f *rouse.File) wireFile {
	w := wireFile{partHead: head}
	if f != nil {
		w.Mime, w.Filename, w.URL, w.Source = f.Mime, f.Filename, f.URL, object(f.Source)
	}
	return w
}

func renderTool(head partHead, p *rouse.Part) wireTool {
	w := wireTool{partHead: head, Metadata: partMetadata(p)}
	t := p.Tool
	if t == nil {
		t = &rouse.ToolCall{State: rouse.ToolPending}
	}
	w.CallID, w.Tool = t.CallID, t.Name
	input, span := objectOr(t.Input), wireSpan{Start: millis(p.Start), End: millis(p.End)}
	switch t.State {
	case rouse.ToolRunning:
		span.End = 0
		w.State = toolRunning{Status: t.State, Input: input, Title: t.Title, Metadata: object(t.Metadata), Time: span}
	case rouse.ToolCompleted:
		done := toolCompleted{Status: t.State, Input: input, Output: t.Output, Title: t.Title,
			Metadata: objectOr(t.Metadata), Time: span}
		for i := range t.Attachments {
			at := head
			at.ID, at.Type = fmt.Sprintf("%s_%d", head.ID, i+1), rouse.FilePart
			done.Attachments = append(done.Attachments, renderFile(at, &t.Attachments[i]))
		}
		w.State = done
	case rouse.ToolFailed:
		w.State = toolFailed{Status: t.State, Input: input, Error: t.Error, Metadata: object(t.Metadata), Time: span}
	default:
		w.State = toolPending{Status: rouse.ToolPending, Input: input, Raw: t.Raw}
	}
	return w
}

// renderExtra gives an agent, subtask or compaction part: the client's own
// body under the part's head.
func renderExtra(head partHead, extra json.RawMessage) any {
	w := map[string]any{}
	if o := object(extra); o != nil {
		_ = json.Unmarshal(o, &w) // object() has proved that it is one
	}
	w["id"], w["sessionID"], w["messageID"], w["type"] = head.ID, head.SessionID, head.MessageID, head.Type
	return w
}

// partMetadata is the part's own metadata, with the mark of a broken attempt
// under "broken" so that a reader can tell it from the answer.
func partMetadata(p *rouse.Part) json.RawMessage {
	own := object(p.Metadata)
	if p.Broken == nil {
		return own
	}
	w := map[string]any{}
	if own != nil {
		_ = json.Unmarshal(own, &w)
	}
	w["broken"] = p.Broken
	raw, err := json.Marshal(w)
	if err != nil {
		return own
	}
	return raw
}
