package native

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/limits"
	"rouse/internal/provider"
)

// answer is what one model call said.
type answer struct {
	blocks []provider.Block
	res    provider.Result
	sent   bool // parts were reported
	at     map[string]time.Time
}

// ending is the end of a turn by a failed call; overflow marks the one that
// compaction may mend.
type ending struct {
	engine.Outcome
	overflow bool
}

// call makes one model call, and again while limits.Retry says so. Nothing of a
// broken attempt stays in the conversation.
func (t *turn) call(req provider.Request) (*answer, *ending) {
	first := time.Now()
	for attempt := 1; ; attempt++ {
		ans := &answer{at: map[string]time.Time{}}
		var err error
		ans.res, err = t.model.Client.Stream(t.ctx, req, func(d provider.Delta) { t.take(ans, d) })
		if err == nil {
			ans.finish()
			return ans, nil
		}
		var ce *provider.CallError
		if t.ctx.Err() != nil || !errors.As(err, &ce) {
			return nil, &ending{Outcome: t.cancelled()}
		}
		now := time.Now()
		f := classify(t.model.Ref, ce, now)
		wait, again := limits.Retry(f, attempt, now.Sub(first), now, rand.Float64())
		t.c.deps.Log.Info("native.attempt", "session", t.p.SessionID, "generation", t.p.Generation, "attempt", attempt,
			"class", f.Class, "kind", ce.Kind, "status", ce.Status, "again", again)
		if !again {
			return nil, t.failed(f, ce, attempt)
		}
		t.send(engine.Retry{Attempt: attempt, Next: now.Add(wait), Class: f.Class, Message: messageOf(f, ce), Broken: ans.sent}, false, 0)
		t.dropOpen(ans)
		if !pause(t.ctx, wait) {
			return nil, &ending{Outcome: t.cancelled()}
		}
		t.send(engine.Resumed{}, false, 0)
		if ans.sent {
			t.stepOpen = false // the next attempt begins the step anew
		}
	}
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// inputEvery is how often the growing arguments of a call are reported as
// movement.
const inputEvery = 500 * time.Millisecond

// take folds one delta and reports it.
func (t *turn) take(a *answer, d provider.Delta) {
	switch d.Kind {
	case provider.Began:
		if !t.stepOpen {
			t.beginStep(t.stepKind)
		}
		if !t.stepKind.Compaction { // the provider answers: it may be asked for a title too
			t.c.suggestTitle(t)
		}
	case provider.Text:
		a.grow(provider.TextBlock, d.Text, nil)
		t.send(engine.Text{Text: d.Text}, true, d.Bytes)
	case provider.Reasoning:
		a.grow(provider.ReasoningBlock, d.Text, d.Metadata)
		t.send(engine.Reasoning{Text: d.Text, Metadata: d.Metadata}, true, d.Bytes)
	case provider.ToolBegan:
		t.mark(d.ID, true)
		a.at[d.ID] = time.Now()
		t.send(engine.ToolStarted{CallID: d.ID, Name: d.Name, State: rouse.ToolPending}, true, d.Bytes)
	case provider.ToolInput:
		if now := time.Now(); now.Sub(a.at[d.ID]) >= inputEvery {
			a.at[d.ID] = now
			t.send(engine.ToolProgress{CallID: d.ID}, true, d.Bytes)
		}
	case provider.ToolDone:
		a.blocks = append(a.blocks, provider.Block{Kind: provider.CallBlock, CallID: d.ID, Name: d.Name, Input: json.RawMessage(d.Text)})
	}
	a.sent = a.sent || d.Kind != provider.Began
}

// grow adds to the block of a kind, which is begun if another one grew before.
func (a *answer) grow(kind provider.BlockKind, text string, metadata json.RawMessage) {
	n := len(a.blocks)
	if n == 0 || a.blocks[n-1].Kind != kind {
		a.blocks = append(a.blocks, provider.Block{Kind: kind})
		n++
	}
	b := &a.blocks[n-1]
	if text != "" {
		b.Input = append(b.Input, text...) // grows in place; finish makes it text
	}
	if metadata != nil {
		b.Metadata = metadata
	}
}

func (a *answer) finish() {
	for i := range a.blocks {
		if b := &a.blocks[i]; b.Kind != provider.CallBlock {
			b.Text, b.Input = string(b.Input), nil
		}
	}
}

func (a *answer) text() string {
	var b strings.Builder
	for i := range a.blocks {
		if a.blocks[i].Kind == provider.TextBlock {
			b.WriteString(a.blocks[i].Text)
		}
	}
	return b.String()
}

// dropOpen forgets the calls of a broken attempt: the lane closes their parts.
func (t *turn) dropOpen(a *answer) {
	for id := range a.at {
		t.mark(id, false)
	}
}

// header tells the drill, and nobody else, what a request is for.
func (m *Model) header(turnID, purpose string) http.Header {
	if !m.Drill {
		return m.Header
	}
	h := m.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set(provider.TurnHeader, turnID)
	if purpose != "" {
		h.Set(provider.PurposeHeader, purpose)
	}
	return h
}
