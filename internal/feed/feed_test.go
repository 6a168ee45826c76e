package feed_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rouse"
	"rouse/internal/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(seq int64, session string) rouse.Event {
	return rouse.Event{Seq: seq, Type: rouse.SessionUpdated, SessionID: session, Directory: "/" + session}
}

func all(*rouse.Event) bool { return true }

func TestSinceCoversEverySeqOnce(t *testing.T) {
	f := feed.New(8, 100, 0)
	for seq := int64(101); seq <= 120; seq++ {
		f.Publish([]rouse.Event{event(seq, fmt.Sprint(seq%2))})
	}
	if _, _, ok := f.Since(100, all, 10); ok {
		t.Error("events that fell out of the ring were given")
	}
	var got []int64
	cursor := int64(112)
	for {
		events, next, ok := f.Since(cursor, func(e *rouse.Event) bool { return e.SessionID == "1" }, 2)
		if !ok {
			t.Fatal("fell out of the ring")
		}
		for _, e := range events {
			got = append(got, e.Seq)
		}
		if next == cursor {
			break
		}
		cursor = next
	}
	if fmt.Sprint(got) != "[113 115 117 119]" || cursor != 120 {
		t.Errorf("got %v, cursor %d", got, cursor)
	}
}

func TestBellsAreForThoseConcerned(t *testing.T) {
	f := feed.New(0, 0, 4)
	everything, _ := f.Subscribe(feed.Filter{})
	dir, _ := f.Subscribe(feed.Filter{Directory: "/a"})
	session, _ := f.Subscribe(feed.Filter{Session: "b"})
	rung := func(s *feed.Subscription) bool {
		select {
		case <-s.Bell():
			return true
		default:
			return false
		}
	}
	f.Publish([]rouse.Event{event(1, "a")})
	if !rung(everything) || !rung(dir) || rung(session) {
		t.Error("event of a")
	}
	text := f.Open(&rouse.Part{ID: "p", SessionID: "b", Open: true}, "/b")
	text.Append("hello")
	if !rung(everything) || rung(dir) || !rung(session) {
		t.Error("text of b")
	}
	if d := session.Dirty(); len(d) != 1 || d[0] != "b" || session.Dirty() != nil {
		t.Errorf("dirty %v", d)
	}
	if _, err := f.Subscribe(feed.Filter{}); err != nil {
		t.Error(err)
	}
	if _, err := f.Subscribe(feed.Filter{}); rouse.KindOf(err) != rouse.Full {
		t.Errorf("beyond the bound: %v", err)
	}
	dir.Close()
	dir.Close()
	if _, err := f.Subscribe(feed.Filter{}); err != nil {
		t.Errorf("after one left: %v", err)
	}
}

// A part's live text ends before anybody can read the event of its end.
func TestEndOfAPartEndsItsText(t *testing.T) {
	f := feed.New(0, 0, 0)
	part := &rouse.Part{ID: "p", SessionID: "s", Open: true}
	text := f.Open(part, "/s")
	text.Append("all of it")
	live := f.Live("s")
	if len(live) != 1 || string(live[0].Text) != "all of it" {
		t.Fatalf("%+v", live)
	}
	ended := *part
	ended.Open, ended.Text = false, "all of it"
	f.Publish([]rouse.Event{{Seq: 1, Type: rouse.PartUpdated, SessionID: "s", PartID: "p", Body: &ended}})
	if _, ok := f.LiveText("p"); ok || len(f.Live("s")) != 0 {
		t.Error("the text outlived its part")
	}
	if string(live[0].Text) != "all of it" {
		t.Error("what a reader had taken changed")
	}
}

// Readers that take suffixes at any time see every byte once.
func TestSuffixesSumUp(t *testing.T) {
	f := feed.New(0, 0, 0)
	text := f.Open(&rouse.Part{ID: "p", SessionID: "s", Open: true}, "/s")
	var want strings.Builder
	var wg sync.WaitGroup
	done := make(chan struct{})
	got := make([]string, 4)
	for i := range got {
		sub, err := f.Subscribe(feed.Filter{Session: "s"})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer sub.Close()
			n := 0
			take := func() {
				for _, p := range f.Live("s") {
					got[i] += string(p.Text[n:])
					n = len(p.Text)
				}
			}
			for {
				select {
				case <-sub.Bell():
					take()
				case <-done:
					take()
					return
				}
			}
		})
	}
	for i := range 2000 {
		piece := fmt.Sprintf("%d ", i)
		want.WriteString(piece)
		text.Append(piece)
	}
	close(done)
	wg.Wait()
	for i, g := range got {
		if g != want.String() {
			t.Errorf("reader %d has %d of %d bytes", i, len(g), want.Len())
		}
	}
}

func TestAwaitWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := feed.New(0, 0, 0)
		slow, _ := f.Subscribe(feed.Filter{Directory: "/s"})
		elsewhere, _ := f.Subscribe(feed.Filter{Directory: "/other"})
		defer elsewhere.Close()
		start := time.Now()
		go func() {
			<-time.After(time.Second)
			slow.Wrote(4)
			<-time.After(time.Second)
			slow.Wrote(5)
		}()
		f.AwaitWritten(t.Context(), "s", "/s", 5)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("returned after %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.AwaitWritten(ctx, "s", "/s", 6)
		if ctx.Err() == nil {
			t.Error("returned though nobody wrote so far")
		}
		slow.Close()
		f.AwaitWritten(t.Context(), "s", "/s", 6) // who left is not waited for
	})
}

func BenchmarkAppendToOneReader(b *testing.B) {
	f := feed.New(0, 0, 0)
	sub, err := f.Subscribe(feed.Filter{Directory: "/s"})
	if err != nil {
		b.Fatal(err)
	}
	defer sub.Close()
	text := f.Open(&rouse.Part{ID: "p", SessionID: "s", Open: true}, "/s")
	b.ReportAllocs()
	for b.Loop() {
		text.Append("word ")
	}
}
