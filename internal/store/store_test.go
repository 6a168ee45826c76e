package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse"
	"rouse/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open serves a store until the test ends and collects what is committed.
func open(t testing.TB, path string) (*store.Store, *committed) {
	t.Helper()
	c := &committed{}
	s, err := store.Open(context.Background(), path, store.Options{Committed: c.add, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, c
}

type committed struct {
	mu     sync.Mutex
	events []rouse.Event
}

func (c *committed) add(e []rouse.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e...)
}

func newSession(t testing.TB, s *store.Store, dir string) *rouse.Session {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	row := &rouse.Session{ID: rouse.NewID(rouse.SessionPrefix, now), Directory: dir, Title: "t", Engine: "native", Created: now, Updated: now}
	if err := s.Write(context.Background(), store.Promise, func(tx *store.Tx) error { return tx.InsertSession(row) }); err != nil {
		t.Fatal(err)
	}
	return row
}

func TestSequenceHasNoGapUnderFailingWriters(t *testing.T) {
	s, c := open(t, filepath.Join(t.TempDir(), "r.db"))
	boom := errors.New("boom")
	var wg sync.WaitGroup
	for w := range 8 {
		row := newSession(t, s, fmt.Sprintf("/d%d", w))
		wg.Go(func() {
			for i := range 50 {
				err := s.Write(context.Background(), store.Lazy, func(tx *store.Tx) error {
					fresh, err := tx.Session(row.ID)
					if err != nil {
						return err
					}
					if err := tx.UpdateSession(fresh); err != nil {
						return err
					}
					if i%3 == 0 {
						return boom
					}
					if i%7 == 0 {
						panic("a writer that panics harms nobody else")
					}
					return nil
				})
				if (i%3 == 0 || i%7 == 0) == (err == nil) {
					t.Errorf("write %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	for i, e := range c.events {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has seq %d", i, e.Seq)
		}
	}
	stored, cursor, err := s.Events(context.Background(), 0, store.EventFilter{}, 10_000)
	if err != nil || len(stored) != len(c.events) || cursor != s.Head() {
		t.Errorf("stored %d events, announced %d, cursor %d, head %d, %v", len(stored), len(c.events), cursor, s.Head(), err)
	}
}

func TestReopenGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	var head int64
	for life := range 3 {
		t.Run(fmt.Sprint(life), func(t *testing.T) {
			s, _ := open(t, path)
			if s.Head() != head {
				t.Errorf("head %d, want %d", s.Head(), head)
			}
			newSession(t, s, "/d")
			head = s.Head()
		})
	}
}

// A start that two callers race for is accepted once.
func TestStartTurnOnce(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "r.db"))
	row := newSession(t, s, "/d")
	start := func(n int) store.Start {
		now := time.Now()
		id := rouse.NewID(rouse.MessagePrefix, now)
		return store.Start{SessionID: row.ID, Key: "k", Hash: "h", Live: func(string) bool { return true },
			Message: rouse.Message{ID: id, SessionID: row.ID, Role: rouse.User},
			Parts:   []rouse.Part{{ID: rouse.NewID(rouse.PartPrefix, now), Kind: rouse.TextPart, Text: fmt.Sprint(n)}},
			Turn:    &rouse.Turn{ID: rouse.NewID(rouse.TurnPrefix, now), SessionID: row.ID, UserMessage: id}}
	}
	var wg sync.WaitGroup
	results := make([]store.Started, 20)
	for i := range results {
		wg.Go(func() {
			var err error
			if results[i], err = s.StartTurn(context.Background(), start(i), rouse.DecideIntake); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	fresh := 0
	for _, r := range results {
		if !r.Replayed {
			fresh++
		}
		if r.TurnID != results[0].TurnID || r.Generation != 1 {
			t.Errorf("%+v", r)
		}
	}
	if fresh != 1 {
		t.Errorf("%d fresh acceptances", fresh)
	}
	if after, err := s.Session(context.Background(), row.ID); err != nil || after.Queued != 1 || after.Messages != 1 || after.Generation != 1 {
		t.Errorf("%+v %v", after, err)
	}
}

func TestMessagePaging(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "r.db"))
	row := newSession(t, s, "/d")
	base := time.Now().UTC().Truncate(time.Millisecond)
	var ids []string
	err := s.Write(context.Background(), store.Lazy, func(tx *store.Tx) error {
		for i := range 10 {
			at := base.Add(time.Duration(i/2) * time.Millisecond) // pairs share a time
			m := &rouse.Message{ID: rouse.NewID(rouse.MessagePrefix, at), SessionID: row.ID, Role: rouse.User, Created: at}
			ids = append(ids, m.ID)
			if _, err := tx.PutMessage(row, m); err != nil {
				return err
			}
			for range i % 3 {
				if err := tx.PutPart(row, &rouse.Part{ID: rouse.NewID(rouse.PartPrefix, at), SessionID: row.ID, MessageID: m.ID, Kind: rouse.TextPart, Text: m.ID}, 0); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var back []string
	var before *store.MessageCursor
	for {
		page, err := s.Messages(context.Background(), store.MessageQuery{SessionID: row.ID, Limit: 3, Before: before})
		if err != nil {
			t.Fatal(err)
		}
		var some []string
		for i, e := range page.Entries {
			some = append(some, e.Message.ID)
			for _, p := range e.Parts {
				if p.Text != e.Message.ID {
					t.Errorf("entry %d has another message's part", i)
				}
			}
		}
		back = append(some, back...)
		if !page.More {
			break
		}
		before = page.Next
	}
	var forth []string
	var after *store.MessageCursor = &store.MessageCursor{}
	for {
		page, err := s.Messages(context.Background(), store.MessageQuery{SessionID: row.ID, Limit: 4, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			forth = append(forth, e.Message.ID)
		}
		if !page.More {
			break
		}
		after = page.Next
	}
	want := strings.Join(ids, " ")
	if got := strings.Join(back, " "); got != want {
		t.Errorf("paging back:\n%s\n%s", got, want)
	}
	if got := strings.Join(forth, " "); got != want {
		t.Errorf("paging forth:\n%s\n%s", got, want)
	}
}

func TestSessionsList(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "r.db"))
	for i := range 7 {
		newSession(t, s, []string{"/a", "/b"}[i%2])
	}
	seen, cursor := 0, ""
	for {
		page, err := s.Sessions(context.Background(), store.SessionFilter{Directory: "/a", Limit: 3, Cursor: cursor})
		if err != nil || page.Total != 4 {
			t.Fatalf("%+v %v", page, err)
		}
		seen += len(page.Sessions)
		if cursor = page.Next; !page.HasMore {
			break
		}
	}
	if seen != 4 {
		t.Errorf("saw %d of 4", seen)
	}
	if _, err := s.Sessions(context.Background(), store.SessionFilter{Cursor: "nonsense"}); rouse.KindOf(err) != rouse.Invalid {
		t.Errorf("bad cursor: %v", err)
	}
}

func TestPruneKeepsTheSequence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	s, _ := open(t, path)
	for range 20 {
		newSession(t, s, "/d")
	}
	if err := s.Prune(context.Background(), store.Retention{Events: time.Hour, EventRows: 5, Keys: time.Hour}, time.Now()); err != nil {
		t.Fatal(err)
	}
	oldest, err := s.Oldest(context.Background())
	if err != nil || oldest != 16 {
		t.Errorf("oldest %d %v", oldest, err)
	}
	if err := s.Prune(context.Background(), store.Retention{Events: time.Hour, EventRows: 0, Keys: time.Hour}, time.Now().Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if oldest, _ := s.Oldest(context.Background()); oldest != s.Head() {
		t.Errorf("the newest event is gone: oldest %d, head %d", oldest, s.Head())
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	t.Run("make", func(t *testing.T) { open(t, path) })
	store.SetSchema(t, path, 99)
	_, err := store.Open(context.Background(), path, store.Options{})
	if err == nil || !strings.Contains(rouse.SafeMessage(err), "schema 99") {
		t.Errorf("newer schema: %v", err)
	}
}

func TestMigrationBacksUp(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.db")
	t.Run("make", func(t *testing.T) { s, _ := open(t, path); newSession(t, s, "/d") })
	store.AddMigration(t, "99999_more.sql", "-- +goose Up\nCREATE TABLE more (x TEXT);\n")
	t.Run("migrate", func(t *testing.T) {
		s, _ := open(t, path)
		if page, err := s.Sessions(context.Background(), store.SessionFilter{}); err != nil || page.Total != 1 {
			t.Errorf("%+v %v", page, err)
		}
	})
	backups, err := filepath.Glob(filepath.Join(dir, "backup-*.db"))
	if err != nil || len(backups) != 1 {
		t.Fatal(backups, err)
	}
	if info, err := os.Stat(backups[0]); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func BenchmarkStartTurn(b *testing.B) {
	s, _ := open(b, filepath.Join(b.TempDir(), "r.db"))
	row := newSession(b, s, "/d")
	for b.Loop() {
		now := time.Now()
		id := rouse.NewID(rouse.MessagePrefix, now)
		_, err := s.StartTurn(context.Background(), store.Start{SessionID: row.ID, Key: id, Live: func(string) bool { return true },
			Message: rouse.Message{ID: id, SessionID: row.ID, Role: rouse.User},
			Parts:   []rouse.Part{{ID: rouse.NewID(rouse.PartPrefix, now), Kind: rouse.TextPart, Text: "x"}},
			Turn:    &rouse.Turn{ID: rouse.NewID(rouse.TurnPrefix, now), SessionID: row.ID, UserMessage: id}}, rouse.DecideIntake)
		if err != nil {
			b.Fatal(err)
		}
	}
}
