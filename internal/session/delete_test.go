package session_test

import (
	"context"
	"sync/atomic"
	"testing"

	"rouse/internal/engine"
)

// counted counts the conversations that are open.
type counted struct {
	engine.Engine
	open *atomic.Int32
}

type countedConversation struct {
	engine.Conversation
	open *atomic.Int32
}

func (e counted) Open(ctx context.Context, spec engine.Spec, sink engine.Sink) (engine.Conversation, error) {
	conv, err := e.Engine.Open(ctx, spec, sink)
	if err != nil {
		return nil, err
	}
	e.open.Add(1)
	return countedConversation{conv, e.open}, nil
}

func (c countedConversation) Close() error {
	c.open.Add(-1)
	return c.Conversation.Close()
}

// A deleted session's conversation ends with it, not when it would have been
// idle for long enough: it may be a process.
func TestDeleteEndsTheConversation(t *testing.T) {
	for _, mode := range []string{"echo", "hang", "deaf"} {
		bubble(t, func(t *testing.T, w *world) {
			var open atomic.Int32
			plain := w.lanes.Engine
			w.lanes.Engine = func(name string) (engine.Engine, error) {
				e, err := plain(name)
				return counted{e, &open}, err
			}
			s := w.session()
			w.prompt(s.ID, mode, "x")
			rest()
			if open.Load() != 1 {
				t.Fatalf("%s: %d conversations are open", mode, open.Load())
			}
			if err := w.lanes.Delete(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			rest()
			if open.Load() != 0 {
				t.Errorf("%s: the conversation of the deleted session is open", mode)
			}
		})
	}
}
