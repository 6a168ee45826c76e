package session_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/session"
	"rouse/internal/store"
)

// BenchmarkAbort ends fifty running turns at once; ns/op is for all of them.
func BenchmarkAbort(b *testing.B) {
	const n = 50
	var f *feed.Feed
	st, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "rouse.db"), store.Options{Committed: func(e []rouse.Event) { f.Publish(e) }})
	if err != nil {
		b.Fatal(err)
	}
	f = feed.New(0, st.Head(), 0)
	ctx, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = st.Serve(ctx) })
	lanes := session.New(session.Deps{Store: st, Feed: f, Models: anyModel{}, Agents: anyAgent{}, Boot: "bench",
		Engine: func(string) (engine.Engine, error) { return drill.Engine{}, nil }, Log: slog.New(slog.DiscardHandler)})
	laneCtx, stopLanes := context.WithCancel(context.Background())
	lanesDone := make(chan error, 1)
	go func() { lanesDone <- lanes.Serve(laneCtx) }()
	ids := make([]string, n)
	for i := range ids {
		s, _, err := lanes.Create(b.Context(), session.NewSession{Directory: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		ids[i] = s.ID
	}
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		for _, id := range ids {
			_, err := lanes.Prompt(b.Context(), session.Prompt{SessionID: id, Model: rouse.ModelRef{Provider: "drill", Model: "hang"},
				Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "hello"}}})
			if err != nil {
				b.Fatal(err)
			}
		}
		for _, id := range ids {
			for v, _ := lanes.Vitals(id); v.Counters.Genuine == 0; v, _ = lanes.Vitals(id) {
				runtime.Gosched()
			}
		}
		if err := lanes.Barrier(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		var all sync.WaitGroup
		for _, id := range ids {
			all.Go(func() {
				if err := lanes.Abort(b.Context(), id); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
	}
	b.StopTimer()
	stopLanes()
	<-lanesDone
	stop()
	served.Wait()
	_ = st.Close()
}
