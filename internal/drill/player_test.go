package drill

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse/internal/drill/trace"
	"rouse/internal/engine/acp/wire"
)

// linesOf is a writer that hands on whole lines.
type linesOf chan string

func (l linesOf) Write(b []byte) (int, error) {
	l <- strings.TrimSuffix(string(b), "\n")
	return len(b), nil
}

// talker talks to a Player.
type talker struct {
	t        *testing.T
	in       *io.PipeWriter
	out, err linesOf
	end      chan Ending
}

const instant = 1e12 // a speed at which nothing is waited for

// playing starts a Player; the test's end closes and awaits it.
func playing(t *testing.T, path string, p Player) *talker {
	t.Helper()
	r, w := io.Pipe()
	c := &talker{t: t, in: w, out: make(linesOf, 1<<12), err: make(linesOf, 1<<12), end: make(chan Ending, 1)}
	p.In, p.Out, p.Err = r, c.out, c.err
	go func() {
		end, err := p.Play(t.Context(), path)
		if err != nil {
			t.Error(err)
		}
		_ = r.Close() // what is written from here on reaches nobody
		c.end <- end
	}()
	return c
}

func (c *talker) write(line []byte) {
	_, _ = c.in.Write(append(bytes.TrimSpace(line), '\n')) // a player that ended is seen by what it wrote
}

// next is the agent's next line.
func (c *talker) next() *wire.Message {
	c.t.Helper()
	select {
	case line := <-c.out:
		m, err := wire.Parse([]byte(line))
		if err != nil {
			c.t.Fatal(err)
		}
		return m
	case <-time.After(10 * time.Second):
		c.t.Fatal("the agent says nothing")
		return nil
	}
}

// closes ends the client's side and gives the ending.
func (c *talker) closes() Ending {
	c.t.Helper()
	_ = c.in.Close()
	select {
	case end := <-c.end:
		return end
	case <-time.After(10 * time.Second):
		c.t.Fatal("the player does not end")
		return Ending{}
	}
}

func recordings(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir("testdata/traces", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".jsonl") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatal(err, len(paths))
	}
	return paths
}

// TestEveryRecordingPlays is each process of each recording against a client
// that says what the recorded one said, under ids of its own.
func TestEveryRecordingPlays(t *testing.T) {
	for _, path := range recordings(t) {
		tr, err := trace.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= tr.Events[len(tr.Events)-1].Process; n++ {
			t.Run(fmt.Sprintf("%s/%d", strings.TrimPrefix(path, "testdata/traces/"), n), func(t *testing.T) {
				t.Parallel()
				c := playing(t, path, Player{Process: n, Speed: instant})
				s := newScript(tr, n)
				var said, want []string
				var end Ending
				for at, e := range s.events {
					switch e.Kind {
					case trace.Client:
						line := e.Line
						if e.Message.IsRequest() {
							line = renamed(e.Message.ID, line)
						}
						c.write(line)
					case trace.Agent:
						line := e.Line
						if s.strays[at] {
							line = withID(line, stray(e.Message.ID))
						} else if e.Message != nil && e.Message.IsAnswer() {
							line = renamed(e.Message.ID, line)
						}
						want = append(want, string(line))
						said = append(said, <-c.out)
					case trace.Stderr:
						// Its time is now; all else is as recorded.
						got, want := restamped([]byte(<-c.err), time.Time{}), restamped(e.Line, time.Time{})
						if !bytes.Equal(got, want) {
							t.Errorf("stderr %.200q, want %.200q", got, want)
						}
					case trace.Exit:
						end = ending(e)
					}
				}
				if got := c.closes(); end.Signal != "" && got != end && got != (Ending{}) || end.Signal == "" && got != end {
					t.Errorf("ended %+v, want %+v", got, end)
				}
				if !slices.Equal(said, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
}

// renamed is a line of either side with the id 1000 + n instead of n.
func renamed(id, line []byte) []byte {
	return bytes.Replace(line, fmt.Appendf(nil, `"id":%s`, id), fmt.Appendf(nil, `"id":1%03s`, id), 1)
}

func TestPlayerGetsAnyClientThrough(t *testing.T) {
	// The recorded client authenticated; this one sets a mode and an option.
	c := playing(t, "testdata/traces/gemini-0.61.0/normal.jsonl", Player{Speed: instant})
	c.write(wire.Hello(1, "x", "0", nil))
	if m := c.next(); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	c.write(wire.NewSession(2, "/w", nil))
	m := c.next()
	session, err := wire.Decode[wire.Session](m.Result)
	if err != nil || session.SessionID == "" || session.Models == nil {
		t.Fatalf("%s %v", m.Result, err)
	}
	c.write(wire.SetMode(3, session.SessionID, "plan"))
	c.write(wire.SetModel(4, session.SessionID, "m"))
	c.write([]byte("no JSON"))
	c.write(wire.SetConfigOption(5, session.SessionID, "model", "m"))
	c.write([]byte(`{"id":6,"method":"x/y"}`))
	c.write(wire.Prompt(7, session.SessionID, wire.TextBlock("hi")))
	answers := map[string]*wire.Message{}
	for len(answers) < 5 {
		if m := c.next(); m.IsAnswer() {
			answers[string(m.ID)] = m
		}
	}
	for _, id := range []string{"3", "4", "5", "7"} {
		if m := answers[id]; m == nil || m.Error != nil {
			t.Errorf("%s: %+v", id, m)
		}
	}
	if m := answers["6"]; m == nil || m.Error == nil || m.Error.Code != wire.CodeMethodNotFound {
		t.Errorf("unknown method: %+v", m)
	}
	c.closes()
}

func TestPlayerResumesUnderAnotherName(t *testing.T) {
	c := playing(t, "testdata/traces/claude-agent-acp-0.101.0/normal.jsonl", Player{Speed: instant})
	c.write(wire.Hello(1, "x", "0", nil))
	c.next()
	c.write(wire.ResumeSession(2, "mine", "/w", nil))
	if m := c.next(); m.Error != nil || wire.At(m.Result, "configOptions") == nil || wire.At(m.Result, "sessionId") != nil {
		t.Fatalf("%s", m.Result)
	}
	c.write(wire.Prompt(3, "mine", wire.TextBlock("hi")))
	for m := c.next(); !wire.SameID(m.ID, []byte("3")); m = c.next() {
		if m.SessionID != "mine" && m.SessionID != "" {
			t.Errorf("%s", m.Params)
		}
	}
	c.closes()
}

// TestPlayerPlaysOneOfTwoSessions is a client with a process per session.
func TestPlayerPlaysOneOfTwoSessions(t *testing.T) {
	c := playing(t, "testdata/traces/opencode-1.0.185/two.jsonl", Player{Speed: instant})
	c.write(wire.Hello(1, "x", "0", nil))
	c.next()
	c.write(wire.NewSession(2, "/w", nil))
	session := wire.Text(wire.At(c.next().Result, "sessionId"))
	c.write(wire.Prompt(3, session, wire.TextBlock("hi")))
	c.write(wire.Cancel(session))
	for m := c.next(); !m.IsAnswer(); m = c.next() {
		if m.SessionID != session {
			t.Errorf("another session: %s", m.Params)
		}
	}
	c.closes()
}

func TestPlayerIsCancelled(t *testing.T) {
	// Recorded without a cancel and with gaps that a test could not wait for.
	c := playing(t, "testdata/traces/codex-acp-2.6.0/normal.jsonl", Player{Speed: 1e-6})
	c.write(wire.Hello(1, "x", "0", nil))
	c.write(wire.NewSession(2, "/w", nil))
	c.write(wire.Prompt(3, "00000000-0000-4000-8000-000000000001", wire.TextBlock("hi")))
	c.write(wire.Cancel("00000000-0000-4000-8000-000000000001"))
	if m := c.next(); !wire.SameID(m.ID, []byte("3")) || wire.Text(wire.At(m.Result, "stopReason")) != "cancelled" {
		t.Errorf("%+v", m)
	}
	c.closes()
	if _, err := (Player{}).Play(context.Background(), "none.jsonl"); err == nil {
		t.Error("a recording out of nothing")
	}
}
