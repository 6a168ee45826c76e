package acp

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/enginetest"
)

// fakeAgent is this binary as an agent.
func fakeAgent(how string) Agent {
	return Agent{Name: "fake", Title: "Fake", Type: "opencode", Command: []string{os.Args[0], "--"}, Diagnostics: []string{"--diagnose"},
		Env: []string{fakeVariable + "=" + how}, Vendor: "openai", Login: "fake login"}
}

// bed is an agent with a recorder for its updates.
type bed struct {
	e    *Engine
	spec engine.Spec
	sink *enginetest.Recorder
}

func newBed(t *testing.T, how string, change ...func(*Agent, *Options)) *bed {
	agent, opt := fakeAgent(how), Options{Log: slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, c := range change {
		c(&agent, &opt)
	}
	return &bed{e: New(agent, opt), spec: engine.Spec{Session: rouse.Session{ID: "ses_" + t.Name()}, Directory: t.TempDir()}, sink: enginetest.NewRecorder()}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func (b *bed) open(t *testing.T) *Conversation {
	t.Helper()
	c, err := b.e.OpenConversation(t.Context(), b.spec, b.sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func deeds(generation uint64, text string) rouse.Prompt {
	return rouse.Prompt{SessionID: "ses_x", TurnID: fmt.Sprintf("trn_%d", generation), Generation: generation,
		Parts: []rouse.Part{{Kind: rouse.TextPart, Text: text}}}
}

// asking runs a prompt to its end.
func asking(t *testing.T, c *Conversation, p rouse.Prompt) engine.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out := c.Prompt(ctx, p)
	if ctx.Err() != nil {
		t.Fatal("the prompt did not end in time")
	}
	return out
}

func TestEngine(t *testing.T) {
	for name, shared := range map[string]bool{"a process each": false, "a shared process": true} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T) enginetest.Fixture {
				b := newBed(t, "plain", func(a *Agent, _ *Options) { a.Shared = shared })
				return enginetest.Fixture{Engine: b.e, Spec: b.spec, Prompt: func(x enginetest.Behaviour, g uint64) (rouse.Prompt, bool) {
					text, ok := map[enginetest.Behaviour]string{
						enginetest.Echo: "say=hello", enginetest.Long: "say=one say=two hang", enginetest.Tool: "tool=t1 say=done",
						enginetest.Burst: fmt.Sprintf("burst=%d", enginetest.BurstPieces), enginetest.SlowTool: "slowtool hang",
						enginetest.Permission: "ask=x", enginetest.Fail: "quota"}[x]
					return deeds(g, text), ok
				}}
			})
		})
	}
}
