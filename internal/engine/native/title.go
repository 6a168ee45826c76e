package native

import (
	"cmp"
	"context"
	"strings"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/provider"
)

const titlePrompt = `You name conversations. Answer with a title for the conversation that begins with the given message: one line, at most 50 characters, in the message's language, without quotes. Never answer the message itself.`

// Bounds of a title.
const (
	titleWait  = 30 * time.Second
	titleBytes = 100
	titleAsk   = 4 << 10 // bytes of the prompt that it is made from
)

// suggestTitle asks for a title beside the first answer of a session that has
// none of its own: not before the provider answers, so that a refusal costs one
// request. It never delays the turn and its failure never matters; it
// ends with the conversation.
func (c *conversation) suggestTitle(t *turn) {
	text := strings.TrimSpace(askedText(t.messages))
	c.mu.Lock()
	wanted := !c.titled && !c.closed && rouse.IsDefaultTitle(c.spec.Session.Title) && text != ""
	c.titled = true
	if wanted {
		c.wg.Add(1)
	}
	c.mu.Unlock()
	if !wanted {
		return
	}
	model, agent := t.model, Agent{Prompt: titlePrompt}
	if a, ok := c.deps.Agent("title"); ok {
		agent = a
	}
	ref := t.model.Ref
	if c.deps.Small != nil {
		ref = c.deps.Small(ref)
	}
	generation, turnID := t.p.Generation, t.p.TurnID
	go func() {
		defer c.wg.Done()
		if ref != model.Ref {
			small, err := c.deps.Model(ref)
			if err != nil {
				return
			}
			model = small
		}
		ctx, cancel := context.WithTimeout(c.ctx, titleWait)
		defer cancel()
		if title := askTitle(ctx, model, agent, turnID, text); title != "" {
			c.send(ctx, engine.Update{Generation: generation, At: time.Now(), Body: engine.TitleSuggested{Title: title}})
		}
	}()
}

// askedText is what the person wrote in a conversation that has no answer yet.
func askedText(messages []provider.Message) string {
	var out []string
	for _, m := range messages {
		if m.Role != rouse.User {
			return ""
		}
		for _, b := range m.Blocks {
			if b.Kind == provider.TextBlock {
				out = append(out, b.Text)
			}
		}
	}
	return strings.Join(out, "\n")
}

func askTitle(ctx context.Context, m Model, a Agent, turnID, text string) string {
	var b strings.Builder
	r := provider.Request{
		Model: m.apiID(), System: []string{cmp.Or(a.Prompt, titlePrompt)}, Options: m.Options, Header: m.header(turnID, provider.PurposeTitle),
		Messages: []provider.Message{userText("The message:\n" + rouse.Clip(text, titleAsk))},
	}
	if !m.NoTemperature {
		r.Temperature = a.Temperature
	}
	_, err := m.Client.Stream(ctx, r, func(d provider.Delta) {
		if d.Kind == provider.Text && b.Len() < 4*titleBytes {
			b.WriteString(d.Text)
		}
	})
	if err != nil {
		return ""
	}
	for line := range strings.Lines(b.String()) {
		if line = strings.Trim(strings.TrimSpace(line), `"'`); line != "" {
			return rouse.Clip(line, titleBytes)
		}
	}
	return ""
}
