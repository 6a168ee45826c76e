package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"rouse"
	"rouse/internal/store"
)

// commits counts what is committed together.
type commits struct {
	mu    sync.Mutex
	sizes []int
}

func (c *commits) add(e []rouse.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sizes = append(c.sizes, len(e))
}

func (c *commits) take() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sizes := c.sizes
	c.sizes = nil
	return sizes
}

func TestWhatComesDuringAPromiseSharesItsCommit(t *testing.T) {
	c := &commits{}
	s, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "r.db"), store.Options{Committed: c.add})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	defer func() {
		stop()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Error(err)
		}
	}()
	row := newSession(t, s, "/d")
	boom := errors.New("boom")
	for _, k := range []struct {
		name        string
		first       store.Durability
		ends, other error // of the first write, of the one in the middle
		want        []int // events of each commit
	}{
		{"a promise takes them along", store.Promise, nil, nil, []int{4}},
		{"an error is its own", store.Promise, nil, boom, []int{3}},
		{"a refused promise takes nobody along", store.Promise, boom, nil, []int{3}},
		{"a lazy write is not held up", store.Lazy, nil, nil, []int{1, 3}},
	} {
		t.Run(k.name, func(t *testing.T) {
			c.take()
			var wg sync.WaitGroup
			running, submitted := make(chan struct{}), make(chan struct{})
			write := func(d store.Durability, ends error) func(*store.Tx) error {
				return func(tx *store.Tx) error {
					fresh, err := tx.Session(row.ID)
					return errors.Join(err, tx.UpdateSession(fresh), ends)
				}
			}
			wg.Go(func() {
				err := s.Write(context.Background(), k.first, func(tx *store.Tx) error {
					close(running)
					<-submitted
					return write(k.first, k.ends)(tx)
				})
				if !errors.Is(err, k.ends) {
					t.Errorf("the first: %v", err)
				}
			})
			<-running
			for i := range 3 {
				var ends error
				if i == 1 {
					ends = k.other
				}
				wg.Add(1)
				s.Go(context.Background(), store.Lazy, write(store.Lazy, ends), func(err error) {
					defer wg.Done()
					if !errors.Is(err, ends) {
						t.Errorf("write %d: %v", i, err)
					}
				})
			}
			close(submitted)
			wg.Wait()
			if got := c.take(); !slices.Equal(got, k.want) {
				t.Errorf("commits of %v events, want %v", got, k.want)
			}
		})
	}
}

func TestAPartTakesItsChunksAndNobodyElses(t *testing.T) {
	for _, n := range []int{0, 1, 2, 15, 16, 17, 33, 48} {
		s, _ := open(t, filepath.Join(t.TempDir(), "r.db"))
		row := newSession(t, s, "/d")
		if err := s.Write(context.Background(), store.Lazy, func(tx *store.Tx) error {
			var mine []int64
			for range n + 1 { // one after each of another part's
				other, own := s.NewChunk(), s.NewChunk()
				if err := errors.Join(tx.AppendChunk(other, "prt_other", "o"), tx.AppendChunk(own, "prt_mine", "m")); err != nil {
					return err
				}
				mine = append(mine, own)
			}
			part := &rouse.Part{ID: "prt_mine", SessionID: row.ID, MessageID: "msg_1", Kind: rouse.TextPart}
			if err := tx.PutPart(row, part, 1, mine[:n]...); err != nil {
				return err
			}
			left, err := tx.TakeChunks([]string{"prt_mine", "prt_other"})
			if err == nil && (len(left["prt_mine"]) != 1 || len(left["prt_other"]) != n+1) {
				t.Errorf("%d chunks folded: %d of its own and %d of another part are left", n, len(left["prt_mine"]), len(left["prt_other"]))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
