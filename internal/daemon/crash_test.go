package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"rouse"
	"rouse/internal/config"
	"rouse/internal/daemon"
	"rouse/internal/drill"
	"rouse/internal/store"
)

// serveChild is this test binary as a server that can be killed.
func serveChild(data string) {
	home := filepath.Dir(data)
	env := func(name string) string { return map[string]string{"HOME": home, "ROUSE_KEYRING": "off"}[name] }
	err := daemon.Run(context.Background(), daemon.Options{Paths: config.DefaultPaths(env), Data: data, Drill: true,
		Logger: slog.New(slog.DiscardHandler), Ready: func(r daemon.Ready) {
			_ = json.NewEncoder(os.Stdout).Encode(r)
		}})
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// child is a server process.
type child struct {
	cmd *exec.Cmd
	r   daemon.Ready
}

func spawn(t *testing.T, data string, env ...string) *child {
	t.Helper()
	c, err := trySpawn(t, data, env...)
	if err != nil {
		t.Fatal("the server did not start:", err)
	}
	return c
}

// spawnDies reports that a server died before it was ready.
func spawnDies(t *testing.T, data string, env ...string) bool {
	t.Helper()
	c, err := trySpawn(t, data, env...)
	if err == nil {
		c.kill()
	}
	return err != nil
}

func trySpawn(t *testing.T, data string, env ...string) (*child, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "ROUSE_TEST_SERVE="+data), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	c := &child{cmd: cmd}
	if err == nil {
		err = json.Unmarshal(line, &c.r)
	}
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("%w: %s", err, line)
	}
	return c, nil
}

// kill is kill -9.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// ledger is what was promised.
type ledger struct {
	mu     sync.Mutex
	turns  map[string]string // turn -> session
	sent   int
	unsure int // no answer came: it may or may not have been accepted
	// own counts turns that the server made itself: rescues.
	own int
	// expectInterrupted: the kills must have hit running turns.
	expectInterrupted bool
}

// drive sends prompts to one session until the server is gone.
func (l *ledger) drive(r daemon.Ready, client *http.Client, session string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	models := []string{"echo", "stream", "tool", "echo"}
	for i := 0; ; i++ {
		body, _ := json.Marshal(map[string]any{"model": "drill/" + models[rng.IntN(len(models))],
			"parts": []map[string]string{{"type": "text", "text": "[[drill tokens=20 rate=200]] x"}}})
		req, err := http.NewRequest("POST", r.URL+"/session/"+session+"/prompt_async", bytes.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+r.Token)
		req.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d-%d", session, seed, i))
		l.mu.Lock()
		l.sent++
		l.mu.Unlock()
		res, err := client.Do(req)
		l.mu.Lock()
		if err != nil {
			l.unsure++
			l.mu.Unlock()
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode/100 == 2 {
			l.turns[res.Header.Get("X-Rouse-Turn")] = session
		}
		l.mu.Unlock()
		if res.StatusCode == http.StatusConflict && rng.IntN(3) == 0 { // the queue is full
			return
		}
	}
}

// TestKill kills a busy server again and again. Whatever was answered 2xx must
// end in exactly one settled turn, dispatched at most once, and the log must
// have no gap.
func TestKill(t *testing.T) {
	lives := 200
	if testing.Short() {
		lives = 3
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	l := &ledger{turns: map[string]string{}, expectInterrupted: true}
	var sessions []string
	rng := rand.New(rand.NewPCG(1, 2))
	for life := range lives {
		c := spawn(t, data)
		for life == 0 && len(sessions) < 6 {
			var s struct{ ID string }
			call(t, c.r, "POST", "/session?directory="+dir, map[string]any{"title": "x"}, &s)
			sessions = append(sessions, s.ID)
		}
		var wg sync.WaitGroup
		for i, s := range sessions {
			wg.Go(func() { l.drive(c.r, client, s, uint64(life*100+i)) })
		}
		<-time.After(time.Duration(20+rng.IntN(400)) * time.Millisecond)
		c.kill()
		wg.Wait()
		client.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
	}
	c := spawn(t, data)
	awaitIdle(t, c.r, len(sessions))
	c.kill()
	http.DefaultClient.CloseIdleConnections()
	l.check(t, filepath.Join(data, "rouse.db"))
}

func awaitIdle(t *testing.T, r daemon.Ready, sessions int) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		var status map[string]any
		call(t, r, "GET", "/session/status", nil, &status)
		var list struct {
			Sessions []struct {
				State  string
				Queued int
			}
		}
		call(t, r, "GET", "/rouse/v1/sessions", nil, &list)
		busy := len(status)
		for _, s := range list.Sessions { // what is queued has not begun yet
			if s.Queued > 0 || s.State != "idle" {
				busy++
			}
		}
		if busy == 0 && len(list.Sessions) == sessions {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d sessions are still busy", busy)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// check holds the database against what was promised.
func (l *ledger) check(t *testing.T, path string) {
	t.Helper()
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	running, settled, last := map[string]int{}, map[string]int{}, int64(0)
	for after := int64(0); ; {
		events, cursor, err := s.Events(t.Context(), after, store.EventFilter{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Seq != last+1 {
				t.Fatalf("gap: %d follows %d", e.Seq, last)
			}
			last = e.Seq
			switch e.Type {
			case rouse.TurnQueuedEvent:
				running[e.TurnID] += 0
				if turn, err := s.Turn(t.Context(), e.TurnID); err == nil && turn.Rescue != "" {
					l.own++
				}
			case rouse.TurnRunningEvent:
				running[e.TurnID]++
			case rouse.TurnSettledEvent:
				settled[e.TurnID]++
			}
		}
		if len(events) == 0 {
			break
		}
		after = cursor
	}
	states := l.statesIn(t, s)
	for state, n := range states {
		if !state.Settled() {
			t.Errorf("%d turns are %s", n, state)
		}
	}
	for id, dispatched := range running {
		if dispatched > 1 { // none of these models retries, so running is said once
			t.Errorf("turn %s was dispatched %d times", id, dispatched)
		}
		if settled[id] != 1 {
			t.Errorf("turn %s settled %d times", id, settled[id])
		}
	}
	if extra := len(running) - len(l.turns) - l.own; extra < 0 || extra > l.unsure {
		t.Errorf("%d turns, %d promised, %d unsure", len(running), len(l.turns), l.unsure)
	}
	if l.expectInterrupted && !testing.Short() && (states[rouse.TurnInterrupted] == 0 || states[rouse.TurnCompleted] == 0) {
		t.Errorf("the kills hit nothing: %v", states)
	}
	t.Logf("sent %d, promised %d, unsure %d, ends %v, events %d", l.sent, len(l.turns), l.unsure, states, last)
}

// states counts the promised turns by state.
func (l *ledger) states(t *testing.T, path string) map[rouse.TurnState]int {
	t.Helper()
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return l.statesIn(t, s)
}

func (l *ledger) statesIn(t *testing.T, s *store.Store) map[rouse.TurnState]int {
	t.Helper()
	states := map[rouse.TurnState]int{}
	for id, session := range l.turns {
		turn, err := s.Turn(t.Context(), id)
		if err != nil {
			t.Errorf("an accepted prompt of %s is lost: %v", session, err)
			continue
		}
		states[turn.State]++
	}
	return states
}

// What a killed server's tools left running is gone after the next start.
func TestNoOrphans(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	c := spawn(t, data)
	var s struct{ ID string }
	call(t, c.r, "POST", "/session?directory="+dir, map[string]any{}, &s)
	async(t, c.r, s.ID, "slowtool", `[[drill cmd="setsid sleep 987654 & sleep 987654"]] x`)
	for deadline := time.Now().Add(20 * time.Second); drill.Marked(s.ID) < 2; {
		if time.Now().After(deadline) {
			t.Fatal("the tool did not start")
		}
		<-time.After(10 * time.Millisecond)
	}
	c.kill()
	if drill.Marked(s.ID) == 0 {
		t.Fatal("a kill of the server ended its tools: nothing is left to sweep")
	}
	c = spawn(t, data)
	if n := drill.Marked(s.ID); n > 0 {
		t.Errorf("%d processes of the killed server live", n)
	}
	c.kill()
	http.DefaultClient.CloseIdleConnections()
}

// Held orphans are a runner that is gone: prompts are stored behind them (202)
// and run once they are released.
func TestHeldOrphans(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	c := spawn(t, data)
	var s struct{ ID string }
	call(t, c.r, "POST", "/session?directory="+t.TempDir(), map[string]any{}, &s)
	orphan := async(t, c.r, s.ID, "hang", "x").Header.Get("X-Rouse-Turn")
	for state := ""; state != "generating"; {
		var out struct{ State string }
		call(t, c.r, "GET", "/session/"+s.ID, nil, &out)
		state = out.State
	}
	c.kill()
	http.DefaultClient.CloseIdleConnections()
	opt := options(t, data)
	opt.HoldOrphans, opt.DrillSpeed = true, 600 // a tick is a tenth of a second
	r, _ := start(t, opt)
	var held struct {
		Verdict    string
		Generation uint64
		TimedOut   bool `json:"timed_out"`
	}
	call(t, r, "GET", "/rouse/v1/sessions/"+s.ID+"/wait?for=settled&timeout=1", nil, &held)
	if !held.TimedOut || held.Verdict != "orphaned" || held.Generation != 1 {
		t.Errorf("ten ticks later: %+v", held)
	}
	behind := async(t, r, s.ID, "echo", "after")
	if behind.StatusCode != 202 {
		t.Errorf("behind a runner that is gone: %d", behind.StatusCode)
	}
	var out struct{ Interrupted int }
	if call(t, r, "POST", "/rouse/v1/drill/release", nil, &out); out.Interrupted != 1 {
		t.Errorf("released: %+v", out)
	}
	l := &ledger{turns: map[string]string{behind.Header.Get("X-Rouse-Turn"): s.ID}}
	l.await(t, data)
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := daemon.Backup(t.Context(), data, file); err != nil {
		t.Fatal(err)
	}
	if states := (&ledger{turns: map[string]string{orphan: s.ID}}).states(t, file); states[rouse.TurnInterrupted] != 1 {
		t.Errorf("the orphan: %v", states)
	}
}
