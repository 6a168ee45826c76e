package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"rouse"
	"rouse/internal/store"
)

// fill makes a data folder with sessions and, in the first one, messages.
func (b *bench) fill(name string, sessions, messages int) (data, first string, err error) {
	data = filepath.Join(b.dir, name)
	if err := mkdir(data); err != nil {
		return "", "", err
	}
	s, err := store.Open(b.ctx, filepath.Join(data, "rouse.db"), store.Options{})
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	now := time.Now().UTC().Truncate(time.Millisecond)
	for i := range sessions {
		at := now.Add(time.Duration(i) * time.Millisecond)
		row := &rouse.Session{ID: rouse.NewID(rouse.SessionPrefix, at), Directory: b.dir, Title: fmt.Sprintf("session %d", i), Engine: "native", Created: at, Updated: at}
		if i == 0 {
			first = row.ID
			row.Messages = messages
		}
		if err := s.Write(ctx, store.Lazy, func(tx *store.Tx) error { return tx.InsertSession(row) }); err != nil {
			cancel()
			return "", "", err
		}
		for n := 0; i == 0 && n < messages; n += 500 {
			err := s.Write(ctx, store.Lazy, func(tx *store.Tx) error { return addMessages(tx, row, n, min(500, messages-n), at) })
			if err != nil {
				cancel()
				return "", "", err
			}
		}
	}
	cancel()
	if err := <-done; err != nil {
		return "", "", err
	}
	return data, first, s.Close()
}

func addMessages(tx *store.Tx, s *rouse.Session, from, n int, at time.Time) error {
	for i := range n {
		when := at.Add(time.Duration(from+i) * time.Millisecond)
		m := &rouse.Message{ID: rouse.NewID(rouse.MessagePrefix, when), SessionID: s.ID, Role: rouse.User, Agent: "builder", Created: when}
		if _, err := tx.PutMessage(s, m); err != nil {
			return err
		}
		p := &rouse.Part{ID: rouse.NewID(rouse.PartPrefix, when), SessionID: s.ID, MessageID: m.ID, Kind: rouse.TextPart, Text: "some text of a message, not long"}
		if err := tx.PutPart(s, p, 0); err != nil {
			return err
		}
	}
	return nil
}

// start: from the process's start to the first 200; Rouse has 1,000 sessions.
// Then memory two seconds later.
func (b *bench) start() error {
	data, _, err := b.fill("thousand-sessions", 1000, 0)
	if err != nil {
		return err
	}
	var ours, peers []float64
	var rss, peerRSS float64
	for range 5 {
		r, err := b.startRouse(data)
		if err != nil {
			return err
		}
		<-time.After(2 * time.Second)
		rss = r.rss()
		r.stop()
		o, err := b.startOpenCode()
		if err != nil {
			return err
		}
		<-time.After(2 * time.Second)
		peerRSS = o.rss()
		o.stop()
		ours, peers = append(ours, ms(r.took)), append(peers, ms(o.took))
	}
	row("start to first 200, p50 of 5", quantile(ours, 0.5), quantile(peers, 0.5), "ms")
	row("RSS two seconds after the start", rss, peerRSS, "MB")
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// both starts the two servers and runs fn on each; the peer may be missing.
func (b *bench) both(fn func(*server) (map[string]float64, error)) (ours, peers map[string]float64, err error) {
	r, err := b.startRouse("")
	if err != nil {
		return nil, nil, err
	}
	ours, err = fn(r)
	r.stop()
	if err != nil {
		return nil, nil, err
	}
	o, err := b.startOpenCode()
	if err != nil {
		return nil, nil, err
	}
	defer o.stop()
	peers, err = fn(o)
	return ours, peers, err
}

// prompt: how long prompt_async takes, 200 calls one at a time, each in a
// session of its own. Rouse's answer means that the prompt is on disk.
func (b *bench) prompt() error {
	ours, peers, err := b.both(func(s *server) (map[string]float64, error) {
		var took, created []float64
		for range 210 {
			start := time.Now()
			id, err := s.session("")
			if err != nil {
				return nil, err
			}
			made := time.Since(start)
			d, err := s.call("POST", "/session/"+id+"/prompt_async", prompt("instant", "hello"), nil)
			if err != nil {
				return nil, err
			}
			took, created = append(took, ms(d)), append(created, ms(made))
			<-time.After(15 * time.Millisecond)
		}
		took, created = took[10:], created[10:] // the first ones warm up
		return map[string]float64{"p50": quantile(took, 0.5), "p99": quantile(took, 0.99), "c50": quantile(created, 0.5)}, nil
	})
	if err != nil {
		return err
	}
	row("POST /session p50", ours["c50"], peers["c50"], "ms")
	row("prompt_async p50", ours["p50"], peers["p50"], "ms")
	row("prompt_async p99", ours["p99"], peers["p99"], "ms")
	return nil
}

// delta: from sending a prompt to its first text at an event reader.
func (b *bench) delta() error {
	ours, peers, err := b.both(func(s *server) (map[string]float64, error) {
		got := make(chan delivery, 1024)
		ctx, cancel := context.WithCancel(b.ctx)
		defer cancel()
		ready, err := s.reader(ctx, "", func(d delivery) { got <- d })
		if err != nil {
			return nil, err
		}
		<-ready
		var took []float64
		for range 110 {
			id, err := s.session("")
			if err != nil {
				return nil, err
			}
			start := time.Now()
			if _, err := s.call("POST", "/session/"+id+"/prompt_async", prompt("instant", "hello"), nil); err != nil {
				return nil, err
			}
			for d := range got {
				if d.session == id {
					took = append(took, ms(d.at.Sub(start)))
					break
				}
			}
			<-time.After(30 * time.Millisecond)
		}
		took = took[10:]
		return map[string]float64{"p50": quantile(took, 0.5), "p99": quantile(took, 0.99)}, nil
	})
	if err != nil {
		return err
	}
	row("prompt_async to first delta p50", ours["p50"], peers["p50"], "ms")
	row("prompt_async to first delta p99", ours["p99"], peers["p99"], "ms")
	return nil
}

// tail: GET message?limit=1 on 100 and on 100,000 messages; the peer has 2,000.
func (b *bench) tail() error {
	measure := func(s *server, id string, q float64) (float64, error) {
		var took []float64
		for range 300 {
			d, err := s.call("GET", "/session/"+id+"/message?limit=1", nil, nil)
			if err != nil {
				return 0, err
			}
			took = append(took, ms(d))
		}
		return quantile(took[20:], q), nil
	}
	values := map[int]float64{}
	for _, n := range []int{100, 100_000} {
		data, id, err := b.fill(fmt.Sprintf("messages-%d", n), 1, n)
		if err != nil {
			return err
		}
		s, err := b.startRouse(data)
		if err != nil {
			return err
		}
		values[n], err = measure(s, id, 0.5)
		s.stop()
		if err != nil {
			return err
		}
	}
	o, err := b.startOpenCode()
	if err != nil {
		return err
	}
	defer o.stop()
	id, err := o.session("")
	if err != nil {
		return err
	}
	for range 2000 {
		body := prompt("instant", "some text of a message, not long")
		body["noReply"] = true
		if _, err := o.call("POST", "/session/"+id+"/message", body, nil); err != nil {
			return err
		}
	}
	peer, err := measure(o, id, 0.5)
	if err != nil {
		return err
	}
	row("limit=1 of 100 messages p50", values[100], 0, "ms")
	row("limit=1 of 100,000 (opencode: of 2,000) p50", values[100_000], peer, "ms")
	fmt.Printf("  100,000 against 100: %.2f\n", values[100_000]/values[100])
	return nil
}
