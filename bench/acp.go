package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// acp: agent programs. Rouse only; the agent is this very program (acpAgent),
// or a shell script where the memory is measured. Bounds are those of the plan.
func (b *bench) acp() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	tiny := filepath.Join(b.dir, "tiny-agent")
	if err := os.WriteFile(tiny, []byte(tinyAgent), 0o700); err != nil {
		return err
	}
	conf, err := json.Marshal(map[string]any{"acp": map[string]any{
		"fast": map[string]any{"extends": "opencode", "command": []string{self, acpAgentArg}},
		"tiny": map[string]any{"command": []string{tiny}},
	}})
	if err != nil {
		return err
	}
	b.config = filepath.Join(b.dir, "acp.json")
	defer func() { b.config = "" }()
	if err := os.WriteFile(b.config, conf, 0o600); err != nil {
		return err
	}
	s, err := b.startRouse("")
	if err != nil {
		return err
	}
	defer s.stop()
	return errors.Join(b.acpMemory(s), b.acpDiagnostic(s), b.acpThroughput(s))
}

// ask sends a prompt to an agent.
func (s *server) ask(agent, session, text string) error {
	body := map[string]any{"model": map[string]string{"providerID": "acp:" + agent, "modelID": "default"}, "parts": []map[string]string{{"type": "text", "text": text}}}
	_, err := s.call("POST", "/session/"+session+"/prompt_async", body, nil)
	return err
}

// settled follows Rouse's log and gives the time at which each end of a turn
// was read, with its session.
func (s *server) settled(ctx context.Context) (<-chan delivery, error) {
	req, err := s.request("GET", "/rouse/v1/events", nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	out := make(chan delivery, 4096)
	go func() { // ends with ctx
		defer res.Body.Close()
		defer close(out)
		in := bufio.NewScanner(res.Body)
		in.Buffer(nil, 16<<20)
		for in.Scan() {
			if !bytes.Contains(in.Bytes(), []byte(`"type":"rouse.turn.settled"`)) {
				continue
			}
			select {
			case out <- delivery{session: field(in.Bytes(), `"session":"`), at: time.Now()}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// end waits for the end of a session's turn.
func end(ends <-chan delivery, session string) (time.Time, error) {
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for {
		select {
		case d, ok := <-ends:
			if !ok {
				return time.Time{}, errors.New("the events ended")
			}
			if d.session == session {
				return d.at, nil
			}
		case <-limit.C:
			return time.Time{}, errors.New("a turn did not end")
		}
	}
}

// stamp is the time that the agent wrote into its folder.
func stamp(dir string) (time.Time, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "stamp"))
	if err != nil {
		return time.Time{}, err
	}
	ns, err := strconv.ParseInt(string(raw), 10, 64)
	return time.Unix(0, ns), err
}

// acpDiagnostic: from the agent's line on stderr to the turn's end at a reader
// of the log, 200 turns.
func (b *bench) acpDiagnostic(s *server) error {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	ends, err := s.settled(ctx)
	if err != nil {
		return err
	}
	dir := filepath.Join(b.dir, "diagnostic")
	if err := mkdir(dir); err != nil {
		return err
	}
	id, err := s.session(dir)
	if err != nil {
		return err
	}
	var took []float64
	for range 205 {
		if err := s.ask("fast", id, "fail"); err != nil {
			return err
		}
		at, err := end(ends, id)
		if err != nil {
			return err
		}
		wrote, err := stamp(dir)
		if err != nil {
			return err
		}
		took = append(took, ms(at.Sub(wrote)))
		<-time.After(20 * time.Millisecond)
	}
	took = took[5:]
	row("stderr line to turn.settled p50", quantile(took, 0.5), 0, "ms")
	row("stderr line to turn.settled p99 (bound 50)", quantile(took, 0.99), 0, "ms")
	return nil
}

// acpThroughput: how many updates a second go from an agent's pipe to the lane
// and the store, and that none is lost.
func (b *bench) acpThroughput(s *server) error {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	ends, err := s.settled(ctx)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		kind string
		n    int
	}{{"text", 50_000}, {"text", 500_000}, {"tool", 50_000}, {"both", 50_000}} {
		dir := filepath.Join(b.dir, c.kind+strconv.Itoa(c.n))
		if err := mkdir(dir); err != nil {
			return err
		}
		id, err := s.session(dir)
		if err != nil {
			return err
		}
		if err := s.ask("fast", id, fmt.Sprintf("%s %d", c.kind, c.n)); err != nil {
			return err
		}
		at, err := end(ends, id)
		if err != nil {
			return err
		}
		began, err := stamp(dir)
		if err != nil {
			return err
		}
		row(fmt.Sprintf("updates a second, %d of %s (bound 25,000)", c.n, c.kind), float64(c.n)/at.Sub(began).Seconds(), 0, "")
		if err := whole(s, id, c.kind, c.n); err != nil {
			return err
		}
	}
	return nil
}

// whole looks whether everything that an agent said was stored.
func whole(s *server, id, kind string, n int) error {
	var messages []struct {
		Parts []struct {
			Type, Text string
			State      struct{ Status string }
		}
	}
	if _, err := s.call("GET", "/session/"+id+"/message", nil, &messages); err != nil {
		return err
	}
	words, tools := 0, 0
	for _, m := range messages[1:] {
		for _, p := range m.Parts {
			if p.Type == "text" {
				words += len(strings.Fields(p.Text))
			}
			if p.Type == "tool" && p.State.Status == "completed" {
				tools++
			}
		}
	}
	wantWords, wantTools := n, 0
	switch kind {
	case "tool":
		wantWords, wantTools = 0, 1
	case "both":
		wantWords, wantTools = n/2, 1
	}
	if words != wantWords || tools != wantTools {
		return fmt.Errorf("%d of %s: %d words and %d tools were stored; want %d and %d", n, kind, words, tools, wantWords, wantTools)
	}
	return nil
}

// acpMemory: what Rouse itself holds for a session with its agent, 200 of them.
func (b *bench) acpMemory(s *server) error {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	ends, err := s.settled(ctx)
	if err != nil {
		return err
	}
	open := func(n int) error {
		for range n {
			id, err := s.session(b.dir)
			if err != nil {
				return err
			}
			if err := s.ask("tiny", id, "hello"); err != nil {
				return err
			}
			if _, err := end(ends, id); err != nil {
				return err
			}
		}
		<-time.After(3 * time.Second)
		return nil
	}
	if err := open(10); err != nil { // warms up
		return err
	}
	before := s.rss()
	if err := open(200); err != nil {
		return err
	}
	row("RSS a session with an agent (bound 300)", (s.rss()-before)*1024/200, 0, "KB")
	return nil
}
