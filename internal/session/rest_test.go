package session_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"testing/synctest"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/session"
	"rouse/internal/store"
)

// leaver tells updates and then either ends the turn or waits for cancel.
type leaver struct {
	updates []engine.Body
	waits   bool
}

type leaverTalk struct {
	scriptedTalk
	l    *leaver
	sink engine.Sink
}

func (l *leaver) Open(_ context.Context, _ engine.Spec, sink engine.Sink) (engine.Conversation, error) {
	return &leaverTalk{scriptedTalk: scriptedTalk{cancel: make(chan struct{}, 1)}, l: l, sink: sink}, nil
}

func (c *leaverTalk) Prompt(ctx context.Context, p rouse.Prompt) engine.Outcome {
	for _, b := range c.l.updates {
		c.sink.Update(ctx, engine.Update{Generation: p.Generation, Genuine: true, Body: b})
	}
	if !c.l.waits {
		return engine.Outcome{State: rouse.TurnCompleted, Finish: "stop"}
	}
	select {
	case <-c.cancel:
	case <-ctx.Done():
	}
	return engine.Outcome{State: rouse.TurnCancelled}
}

// TestNothingStaysOpen ends turns that leave work behind, by themselves, by an
// abort, and by a server that vanishes: what is left is closed either way.
func TestNothingStaysOpen(t *testing.T) {
	tool := func(id string) engine.Body {
		return engine.ToolStarted{CallID: id, Name: "bash", State: rouse.ToolRunning, Input: json.RawMessage(`{}`)}
	}
	ask := engine.PermissionAsked{Request: rouse.Request{ID: "per_1", CallID: "call_1", Permission: "bash", Patterns: []string{"ls"}}}
	for name, updates := range map[string][]engine.Body{
		"text":                      {engine.StepStarted{}, engine.Text{Text: "half"}},
		"reasoning":                 {engine.Reasoning{Text: "half"}},
		"tools":                     {engine.StepStarted{}, tool("call_1"), tool("call_2"), tool("call_3")},
		"a tool after its step":     {engine.StepStarted{}, tool("call_1"), engine.StepEnded{Finish: "tool-calls"}},
		"a tool of an earlier step": {engine.StepStarted{}, tool("call_1"), engine.StepEnded{Finish: "tool-calls"}, engine.StepStarted{}, engine.Text{Text: "more"}},
		"a permission":              {engine.StepStarted{}, tool("call_1"), ask},
		"nothing":                   nil,
	} {
		for _, how := range []string{"ends", "abort", "crash"} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := &leaver{updates: updates, waits: how != "ends"}
					with := func(d *session.Deps) { d.Engine = func(string) (engine.Engine, error) { return l, nil } }
					w := openWith(t, t.TempDir(), "one", with)
					defer func() { w.stop() }()
					s := w.session()
					acc := w.prompt(s.ID, "any", "go")
					rest()
					want := rouse.TurnCompleted
					switch how {
					case "abort":
						want = rouse.TurnCancelled
						if err := w.lanes.Abort(t.Context(), s.ID); err != nil {
							t.Fatal(err)
						}
					case "crash":
						want = rouse.TurnInterrupted
						left := filepath.Join(t.TempDir(), "rouse.db")
						if err := store.Copy(t.Context(), w.store.Path(), left); err != nil {
							t.Fatal(err)
						}
						w.stop()
						w = openWith(t, filepath.Dir(left), "two", with)
					}
					if turn := w.wait(acc); turn.State != want {
						t.Errorf("ended as %s, want %s", turn.State, want)
					}
					w.nothingOpen(s.ID)
				})
			})
		}
	}
}
