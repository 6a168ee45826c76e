package native

import (
	"encoding/json"
	"strings"

	"rouse"
	"rouse/internal/provider"
)

// fileLoader turns an attached file into what the model sees of it.
type fileLoader func(rouse.File) []provider.Block

// conversationOf builds the conversation that the model sees from a transcript:
// from the last summary on, without what broken attempts left behind, and with
// an answer to every tool call, because the wires refuse a call without one.
// Entries of later generations are not part of it.
func conversationOf(entries []rouse.Entry, p rouse.Prompt, load fileLoader) []provider.Message {
	from, out := 0, []provider.Message(nil)
	for i := len(entries) - 1; i >= 0; i-- {
		m := &entries[i].Message
		if m.Summary && m.Error == nil && !m.Completed.IsZero() {
			out = append(out, userText(summaryIntro+textOf(entries[i].Parts)))
			from = i + 1
			break
		}
	}
	asked := false
	for _, e := range entries[from:] {
		if e.Message.Generation > p.Generation {
			continue
		}
		if e.Message.Role == rouse.User {
			asked = asked || e.Message.ID == p.MessageID
			out = appendBlocks(out, rouse.User, userBlocks(e.Parts, load))
			continue
		}
		if e.Message.Summary {
			continue
		}
		said, results := assistantBlocks(e.Parts)
		out = appendBlocks(out, rouse.Assistant, said)
		out = appendBlocks(out, rouse.User, results)
	}
	if !asked && p.Kind == rouse.TurnAnswer { // a store that does not have it yet must not lose the prompt
		out = appendBlocks(out, rouse.User, userBlocks(p.Parts, load))
	}
	if len(out) > 0 && out[0].Role == rouse.Assistant {
		out = append([]provider.Message{userText("(The conversation begins here.)")}, out...)
	}
	return out
}

// summaryIntro stands before the summary of what was condensed.
const summaryIntro = "What happened so far, condensed:\n\n"

func userText(s string) provider.Message {
	return provider.Message{Role: rouse.User, Blocks: []provider.Block{{Kind: provider.TextBlock, Text: s}}}
}

func appendBlocks(out []provider.Message, role rouse.Role, blocks []provider.Block) []provider.Message {
	if len(blocks) == 0 {
		return out
	}
	return append(out, provider.Message{Role: role, Blocks: blocks})
}

// userBlocks gives what a person wrote and attached.
func userBlocks(parts []rouse.Part, load fileLoader) (out []provider.Block) {
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case rouse.TextPart:
			if !p.Ignored && strings.TrimSpace(p.Text) != "" {
				out = append(out, provider.Block{Kind: provider.TextBlock, Text: p.Text})
			}
		case rouse.FilePart:
			if p.File != nil {
				out = append(out, load(*p.File)...)
			}
		case rouse.AgentPart, rouse.SubtaskPart:
			if s := handOver(p); s != "" {
				out = append(out, provider.Block{Kind: provider.TextBlock, Text: s})
			}
		}
	}
	return out
}

// handOver says which sub-agent a person wants for the task.
func handOver(p *rouse.Part) string {
	var x struct{ Name, Agent, Prompt, Description string }
	if json.Unmarshal(p.Extra, &x) != nil {
		return ""
	}
	switch {
	case p.Kind == rouse.AgentPart && x.Name != "":
		return "Use the task tool with the sub-agent \"" + x.Name + "\" for what is asked above."
	case p.Kind == rouse.SubtaskPart && x.Agent != "":
		return "Call the task tool with the sub-agent \"" + x.Agent + "\", the description \"" + x.Description + "\" and this prompt:\n" + x.Prompt
	}
	return ""
}

// assistantBlocks gives what the model said and called in one step, and the
// answers to the calls. A retried step holds several attempts, each after a
// step-start of its own: only the last one counts.
func assistantBlocks(parts []rouse.Part) (said, results []provider.Block) {
	from := 0
	for i := range parts {
		if parts[i].Kind == rouse.StepStart {
			from = i + 1
		}
	}
	for i := from; i < len(parts); i++ {
		p := &parts[i]
		if p.Broken != nil || p.Synthetic || p.Ignored { // a synthetic part is a note for people
			continue
		}
		switch p.Kind {
		case rouse.TextPart:
			if p.Text != "" {
				said = append(said, provider.Block{Kind: provider.TextBlock, Text: p.Text})
			}
		case rouse.ReasoningPart:
			said = append(said, provider.Block{Kind: provider.ReasoningBlock, Text: p.Text, Metadata: p.Metadata})
		case rouse.ToolPart:
			if p.Tool == nil {
				continue
			}
			said = append(said, provider.Block{Kind: provider.CallBlock, CallID: p.Tool.CallID, Name: p.Tool.Name, Input: p.Tool.Input})
			results = append(results, resultOf(p.Tool))
		}
	}
	return said, results
}

// resultOf is the answer to a stored call.
func resultOf(c *rouse.ToolCall) provider.Block {
	b := provider.Block{Kind: provider.ResultBlock, CallID: c.CallID, Name: c.Name}
	switch c.State {
	case rouse.ToolCompleted:
		b.Text, b.Files = c.Output, c.Attachments
	case rouse.ToolFailed:
		b.Text, b.IsError = c.Error, true
	default:
		b.Text, b.IsError = "The call was interrupted before it gave a result.", true
	}
	return b
}

// textOf joins the text parts of a message.
func textOf(parts []rouse.Part) string {
	var out []string
	for i := range parts {
		if p := &parts[i]; p.Kind == rouse.TextPart && p.Broken == nil && !p.Synthetic && p.Text != "" {
			out = append(out, p.Text)
		}
	}
	return strings.Join(out, "\n")
}
