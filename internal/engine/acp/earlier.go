package acp

import (
	"context"
	"strings"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
)

// The bounds of what an agent is told of earlier turns.
const (
	earlierMessages = 200
	earlierBytes    = 48 << 10 // the newest of it
	notesLooked     = 32       // newest messages among which notes are looked for
)

// before is what the agent has to know and does not: notes that were stored
// without a turn since the last one, and, where it starts without memory of the
// session, what its record says. People are told, too.
func (c *Conversation) before(ctx context.Context, p rouse.Prompt) (out []wire.Block) {
	c.mu.Lock()
	lost := c.lost // until it was told
	c.mu.Unlock()
	if lost == "" {
		for _, text := range c.notes(ctx, p) {
			out = append(out, wire.TextBlock(text))
		}
		return out
	}
	text := "You are in a new session of your own: " + lost + "."
	if record := c.record(ctx, p); record != "" {
		text += " This is the record of the conversation so far, without what tools put out:\n\n<record>\n" + record + "</record>\n\n"
	}
	text += " The files are as they were left; look at them before you go on."
	c.q.add(engine.Update{Generation: p.Generation, At: c.e.opt.Now(), Body: engine.Text{
		Text: "⚠️ " + c.e.agent.Title + " starts without memory of the earlier turns of this session. It was given their record as text.\n\n"}})
	return []wire.Block{wire.TextBlock(text)}
}

// notes are the texts of the messages directly before a prompt that started no
// turn.
func (c *Conversation) notes(ctx context.Context, p rouse.Prompt) (texts []string) {
	entries, err := c.e.opt.Messages(ctx, p.SessionID, notesLooked)
	if err != nil {
		c.e.opt.Log.Warn("acp.notes", "agent", c.e.agent.Name, "err", err)
		return nil
	}
	found := false
	for i := len(entries) - 1; i >= 0; i-- {
		m := &entries[i].Message
		switch {
		case m.ID == p.MessageID:
			found = true
		case !found:
		case m.Role != rouse.User || m.TurnID != "":
			return texts
		default:
			texts = append([]string{textOf(entries[i].Parts)}, texts...)
		}
	}
	return texts
}

// record is what was said before a prompt, the newest of it; "" for nothing.
func (c *Conversation) record(ctx context.Context, p rouse.Prompt) string {
	entries, err := c.e.opt.Messages(ctx, p.SessionID, earlierMessages)
	if err != nil {
		c.e.opt.Log.Warn("acp.record", "agent", c.e.agent.Name, "err", err)
		return ""
	}
	var said []string
	for i := range entries {
		m := &entries[i].Message
		if m.ID == p.MessageID {
			break
		}
		text := textOf(entries[i].Parts)
		for j := range entries[i].Parts {
			if t := entries[i].Parts[j].Tool; t != nil {
				text += "\n(tool " + t.Name + ": " + rouse.Clip(orElse(t.Title, string(t.State)), 200) + ")"
			}
		}
		if text = strings.TrimSpace(text); text != "" {
			said = append(said, string(m.Role)+": "+text+"\n\n")
		}
	}
	size := 0
	for i := len(said) - 1; i >= 0; i-- {
		if size += len(said[i]); size > earlierBytes {
			return "(what came before is left out)\n\n" + strings.Join(said[i+1:], "")
		}
	}
	return strings.Join(said, "")
}

// textOf is the text of a message that the conversation rests on.
func textOf(parts []rouse.Part) string {
	var out []string
	for i := range parts {
		if p := &parts[i]; p.Kind == rouse.TextPart && !p.Ignored && p.Broken == nil && p.Text != "" {
			out = append(out, p.Text)
		}
	}
	return strings.Join(out, "\n")
}
