package acp

import (
	"context"
	"slices"
	"strings"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
)

// The bounds of what an agent is told of earlier turns.
const (
	earlierMessages = 200
	earlierBytes    = 48 << 10 // the newest of it
	missedLooked    = 32       // newest messages among which those are looked for that it does not know
)

// before is what the agent has to know and does not: what was said since its
// own last turn, and, where it starts without memory of the session, what the
// session's record says. People are told of that.
func (c *Conversation) before(ctx context.Context, p rouse.Prompt) (out []wire.Block) {
	c.mu.Lock()
	lost := c.lost // until it was told
	c.mu.Unlock()
	if lost == "" {
		return c.missed(ctx, p)
	}
	text := "You are in a new session of your own: " + lost + "."
	if record := recordOf(c.entriesBefore(ctx, p, earlierMessages)); record != "" {
		text += " This is the record of the conversation so far, without what tools put out:\n\n" + record
	}
	text += filesAreLeft
	c.q.add(engine.Update{Generation: p.Generation, At: c.e.opt.Now(), Body: engine.Text{
		Text: "⚠️ " + c.e.agent.Title + " starts without memory of the earlier turns of this session. It was given their record as text.\n\n"}})
	return []wire.Block{wire.TextBlock(text)}
}

const filesAreLeft = " The files are as they were left; look at them before you go on."

// missed is what was stored since the agent's own last turn: notes as they
// are, and, where another agent had turns meanwhile, the record of it all.
func (c *Conversation) missed(ctx context.Context, p rouse.Prompt) (out []wire.Block) {
	since, others := c.sinceOwn(c.entriesBefore(ctx, p, missedLooked))
	if !others {
		for i := range since {
			out = append(out, wire.TextBlock(textOf(since[i].Parts)))
		}
		return out
	}
	since, _ = c.sinceOwn(c.entriesBefore(ctx, p, earlierMessages))
	return []wire.Block{wire.TextBlock("Another agent had turns in this session since your last one. This is the record of them, without what tools put out:\n\n" +
		recordOf(since) + filesAreLeft)}
}

// sinceOwn is what stands behind the last message that the agent knows, and
// whether another agent had a part in it.
func (c *Conversation) sinceOwn(entries []rouse.Entry) (since []rouse.Entry, others bool) {
	from := len(entries)
	for ; from > 0; from-- {
		m := &entries[from-1].Message
		if m.Role == rouse.User && m.TurnID == "" {
			continue // a note
		}
		if !c.others(m) {
			break
		}
		others = true
	}
	return entries[from:], others
}

// others reports that a message is of a turn that another agent had.
func (c *Conversation) others(m *rouse.Message) bool {
	return m.Model.Provider != "" && m.Model.Provider != rouse.AgentProvider+c.e.agent.Name
}

// entriesBefore are the newest messages before a prompt, oldest first.
func (c *Conversation) entriesBefore(ctx context.Context, p rouse.Prompt, limit int) []rouse.Entry {
	entries, err := c.e.opt.Messages(ctx, p.SessionID, limit)
	if err != nil {
		c.e.opt.Log.Warn("acp.earlier", "agent", c.e.agent.Name, "err", err)
		return nil
	}
	if i := slices.IndexFunc(entries, func(e rouse.Entry) bool { return e.Message.ID == p.MessageID }); i >= 0 {
		return entries[:i]
	}
	return nil
}

// recordOf is what messages say, the newest of it; "" for nothing.
func recordOf(entries []rouse.Entry) string {
	var said []string
	for i := range entries {
		text := textOf(entries[i].Parts)
		for j := range entries[i].Parts {
			if t := entries[i].Parts[j].Tool; t != nil {
				text += "\n(tool " + t.Name + ": " + rouse.Clip(orElse(t.Title, string(t.State)), 200) + ")"
			}
		}
		if text = strings.TrimSpace(text); text != "" {
			said = append(said, string(entries[i].Message.Role)+": "+text+"\n\n")
		}
	}
	if len(said) == 0 {
		return ""
	}
	size, from := 0, len(said)
	for from > 0 && size+len(said[from-1]) <= earlierBytes {
		from--
		size += len(said[from])
	}
	cut := ""
	if from > 0 {
		cut = "(what came before is left out)\n\n"
	}
	return "<record>\n" + cut + strings.Join(said[from:], "") + "</record>\n\n"
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
