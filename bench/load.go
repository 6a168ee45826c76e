package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

func mkdir(dir string) error { return os.MkdirAll(dir, 0o700) }

// fifty: 50 sessions generate at 50 tokens a second, one reader.
func (b *bench) fifty() error {
	ours, peers, err := b.both(func(s *server) (map[string]float64, error) {
		idle := s.rss()
		var c counter
		ctx, cancel := context.WithCancel(b.ctx)
		defer cancel()
		ready, err := s.reader(ctx, "", c.add)
		if err != nil {
			return nil, err
		}
		<-ready
		ids, took, err := s.launch(50, func(int) string { return "" }, prompt("drip-50", "hello"))
		if err != nil {
			return nil, err
		}
		<-time.After(3 * time.Second)
		cpu, n, start := s.cpu(), c.n.Load(), time.Now()
		<-time.After(10 * time.Second)
		seconds := time.Since(start).Seconds()
		out := map[string]float64{"idle": idle, "rss": s.rss(), "cpu": (s.cpu() - cpu) / seconds, "rate": float64(c.n.Load()-n) / seconds,
			"p50": quantile(took, 0.5), "p99": quantile(took, 0.99)}
		return out, s.abortAll(ids, out)
	})
	if err != nil {
		return err
	}
	row("RSS before", ours["idle"], peers["idle"], "MB")
	row("RSS while 50 generate", ours["rss"], peers["rss"], "MB")
	row("cores while 50 generate", ours["cpu"], peers["cpu"], "")
	row("tokens a second at the reader", ours["rate"], peers["rate"], "")
	row("prompt_async p50 while starting 50 at once", ours["p50"], peers["p50"], "ms")
	row("prompt_async p99 while starting 50 at once", ours["p99"], peers["p99"], "ms")
	row("abort of 50, p50", ours["abort50"], peers["abort50"], "ms")
	row("abort of 50, max", ours["abortMax"], peers["abortMax"], "ms")
	return nil
}

// launch creates n sessions and prompts all of them at once.
func (s *server) launch(n int, dir func(int) string, body any) (ids []string, took []float64, err error) {
	ids = make([]string, n)
	for i := range ids {
		if ids[i], err = s.session(dir(i)); err != nil {
			return nil, nil, err
		}
	}
	took = make([]float64, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	gate := make(chan struct{}, 50)
	for i := range ids {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			d, err := s.call("POST", "/session/"+ids[i]+"/prompt_async"+query(dir(i)), body, nil)
			took[i], errs[i] = ms(d), err
		})
	}
	wg.Wait()
	for _, e := range errs {
		if e != nil {
			return nil, nil, e
		}
	}
	return ids, took, nil
}

// abortAll aborts all sessions at once.
func (s *server) abortAll(ids []string, out map[string]float64) error {
	took := make([]float64, len(ids))
	errs := make([]error, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			d, err := s.call("POST", "/session/"+id+"/abort", nil, nil)
			took[i], errs[i] = ms(d), err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	out["abort50"], out["abortMax"] = quantile(took, 0.5), quantile(took, 1)
	return nil
}

// thousand: 1,000 sessions generate at 20 tokens a second, each with a context
// of 4 KB, a directory and a reader of its own. Rouse only: the peer has no
// such figure.
func (b *bench) thousand() error {
	const n = 1000
	s, err := b.startRouse("")
	if err != nil {
		return err
	}
	defer s.stop()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var mu sync.Mutex
	var delays []float64
	counting := false
	dirs := make([]string, n)
	for i := range dirs {
		dirs[i] = filepath.Join(b.dir, "work", fmt.Sprint(i))
		if err := mkdir(dirs[i]); err != nil {
			return err
		}
		ready, err := s.reader(ctx, dirs[i], func(d delivery) {
			mu.Lock()
			if counting {
				delays = append(delays, ms(d.delay))
			}
			mu.Unlock()
		})
		if err != nil {
			return err
		}
		<-ready
	}
	ids, took, err := s.launch(n, func(i int) string { return dirs[i] }, prompt("drip-20", strings.Repeat("context ", 512)))
	if err != nil {
		return err
	}
	<-time.After(5 * time.Second)
	mu.Lock()
	counting = true
	mu.Unlock()
	cpu, disk, start := s.cpu(), s.written(), time.Now()
	<-time.After(15 * time.Second)
	seconds := time.Since(start).Seconds()
	mu.Lock()
	counting = false
	mu.Unlock()
	row("tokens a second at the readers", float64(len(delays))/seconds, 0, "")
	row("delta delay p50", quantile(delays, 0.5), 0, "ms")
	row("delta delay p99", quantile(delays, 0.99), 0, "ms")
	row("cores", (s.cpu()-cpu)/seconds, 0, "")
	row("RSS", s.rss(), 0, "MB")
	row("written to disk a second", (s.written()-disk)/seconds, 0, "MB")
	row("prompt_async p99 while starting 1,000", quantile(took, 0.99), 0, "ms")
	out := map[string]float64{}
	if err := s.abortAll(ids, out); err != nil {
		return err
	}
	row("abort of 1,000 at once, max", out["abortMax"], 0, "ms")
	return nil
}

// restart: kill -9 with 1,000 sessions of which 100 generate, each with a
// prompt waiting behind; then the time until the server answers, and until all
// that waited has been answered. Rouse only.
func (b *bench) restart() error {
	data, _, err := b.fill("restart", 1000, 0)
	if err != nil {
		return err
	}
	s, err := b.startRouse(data)
	if err != nil {
		return err
	}
	ids, _, err := s.launch(100, func(int) string { return "" }, prompt("drip-20", "hello"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := s.call("POST", "/session/"+id+"/prompt_async", prompt("instant", "after"), nil); err != nil {
			return err
		}
	}
	<-time.After(2 * time.Second)
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	start := time.Now()
	s, err = b.startRouse(data)
	if err != nil {
		return err
	}
	defer s.stop()
	row("kill -9 to the first 200", ms(s.took), 0, "ms")
	for {
		var list struct {
			Sessions []struct {
				State  string
				Queued int
			}
		}
		if _, err := s.call("GET", "/rouse/v1/sessions?limit=1000", nil, &list); err != nil {
			return err
		}
		busy := 0
		for _, r := range list.Sessions {
			if r.Queued > 0 || r.State != "idle" {
				busy++
			}
		}
		if busy == 0 {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	row("kill -9 to all queues run", ms(time.Since(start)), 0, "ms")
	return nil
}
