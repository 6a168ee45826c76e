package native

import (
	"cmp"
	"fmt"
	"strings"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/provider"
)

const compactPrompt = `You condense a conversation between a person and a coding agent, so that the agent can go on with nothing but your text.
Keep the person's aims and limits in their own terms, decisions and why, what was done with exact paths, names and commands, what is under way, what failed, and the next steps. Answer nothing and address nobody.`

// Bytes of the conversation that a summary is made from, where the model's
// limit is unknown, and of one piece of it.
const (
	digestUnknown = 100 << 10
	digestText    = 8 << 10
	digestResult  = 2 << 10
)

// compact condenses the conversation once, after the model said that it is too
// long, and puts the summary in its place. The result is nil when the turn can
// go on.
func (t *turn) compact() *engine.Outcome {
	t.compacted = true
	if t.stepOpen { // the overflow came inside an answer
		t.endStep(engine.StepEnded{Finish: "error"})
	}
	summary, out := t.summarize(true)
	if out != nil {
		return &out.Outcome
	}
	last := provider.Message{Role: rouse.User}
	for i := len(t.messages) - 1; i >= 0; i-- {
		if asks := onlyAsked(t.messages[i]); len(asks) > 0 {
			last.Blocks = asks
			break
		}
	}
	t.messages = []provider.Message{userText(summaryIntro + summary)}
	if len(last.Blocks) > 0 {
		t.messages = append(t.messages, userText("What was asked last, to be finished from where the summary ends:"), last)
	}
	return nil
}

// onlyAsked gives what a person wrote in a message, without tool results.
func onlyAsked(m provider.Message) (out []provider.Block) {
	if m.Role != rouse.User {
		return nil
	}
	for _, b := range m.Blocks {
		switch {
		case b.Kind == provider.TextBlock && len(b.Text) > digestText:
			b.Text = rouse.Clip(b.Text, digestText) + "…"
			out = append(out, b)
		case b.Kind == provider.TextBlock:
			out = append(out, b)
		}
	}
	return out
}

// summarizeOnly is a turn that only condenses.
func (t *turn) summarizeOnly() engine.Outcome {
	if _, out := t.summarize(t.p.Auto); out != nil {
		return out.Outcome
	}
	return t.completed(provider.FinishStop, "condensed")
}

// summarize asks for a summary as a step of its own. One that is too long
// itself is tried once more from half the text.
func (t *turn) summarize(auto bool) (string, *ending) {
	budget := digestUnknown
	if t.model.Context > 0 {
		budget = int(t.model.Context * 2) // half the window, at four bytes a token
	}
	t.stepKind = engine.StepStarted{Compaction: true, Auto: auto}
	defer func() { t.stepKind = engine.StepStarted{} }()
	prompt := compactPrompt
	if a, ok := t.c.deps.Agent("compaction"); ok {
		prompt = cmp.Or(a.Prompt, prompt)
	}
	for try := 1; ; try++ {
		ans, out := t.call(provider.Request{
			Model: t.model.apiID(), System: []string{prompt}, MaxTokens: t.model.maxTokens(), Options: t.model.Options,
			Messages: []provider.Message{userText("The conversation:\n\n" + digest(t.messages, budget) + "\n\nCondense it now.")},
			Header:   t.model.header(t.p.TurnID, provider.PurposeCompact), IdleTimeout: t.model.IdleTimeout,
		})
		if out != nil {
			if out.overflow && try == 1 {
				budget /= 2
				continue
			}
			return "", out
		}
		usage := rouse.Usage{Tokens: ans.res.Tokens, Cost: provider.Cost(ans.res.Tokens, t.model.Price)}
		t.usage = t.usage.Add(usage)
		t.endStep(engine.StepEnded{Finish: ans.res.Finish, Usage: usage})
		return ans.text(), nil
	}
}

// digest writes a conversation as text of at most about budget bytes: long
// pieces are cut, and when that is not enough the middle is left out.
func digest(messages []provider.Message, budget int) string {
	var pieces []string
	for _, m := range messages {
		for _, b := range m.Blocks {
			if s := digestOf(m.Role, b); s != "" {
				pieces = append(pieces, s)
			}
		}
	}
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	if total <= budget || len(pieces) < 3 {
		return rouse.Clip(strings.Join(pieces, "\n\n"), max(budget, digestText))
	}
	head := pieces[:1]
	left := budget - len(head[0])
	from := len(pieces)
	for from > 1 && left >= len(pieces[from-1]) {
		from--
		left -= len(pieces[from])
	}
	return head[0] + fmt.Sprintf("\n\n[%d pieces are left out here]\n\n", from-1) + strings.Join(pieces[from:], "\n\n")
}

func digestOf(role rouse.Role, b provider.Block) string {
	cut := func(s string, n int) string {
		if len(s) > n {
			return rouse.Clip(s, n) + "…"
		}
		return s
	}
	switch b.Kind {
	case provider.TextBlock:
		who := "Person: "
		if role == rouse.Assistant {
			who = "Agent: "
		}
		return who + cut(b.Text, digestText)
	case provider.CallBlock:
		return "Agent called " + b.Name + " " + cut(string(b.Input), digestResult)
	case provider.ResultBlock:
		return "Result of " + b.Name + ": " + cut(b.Text, digestResult)
	case provider.FileBlock:
		return "Person attached " + b.File.Mime + " " + b.File.Filename
	}
	return ""
}
