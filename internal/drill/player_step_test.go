package drill

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"rouse/internal/drill/trace"
	"rouse/internal/engine/acp/wire"
)

// TestStepsEveryRecording drives each process of each recording event by event:
// what was not ordered is not written, and the driver learns what was.
func TestStepsEveryRecording(t *testing.T) {
	for _, path := range recordings(t) {
		tr, err := trace.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= tr.Events[len(tr.Events)-1].Process; n++ {
			t.Run(fmt.Sprintf("%s/%d", strings.TrimPrefix(path, "testdata/traces/"), n), func(t *testing.T) {
				t.Parallel()
				mine, its := net.Pipe()
				defer func() { _ = mine.Close() }()
				_ = mine.SetDeadline(time.Now().Add(20 * time.Second))
				c := playing(t, path, Player{Steps: its})
				lines := bufio.NewScanner(mine)
				hear := func(want string) {
					t.Helper()
					if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
						t.Fatalf("heard %q (%v), want %q", lines.Text(), lines.Err(), want)
					}
				}
				order := func(format string, args ...any) {
					t.Helper()
					if _, err := fmt.Fprintf(mine, format+"\n", args...); err != nil {
						t.Fatal(err)
					}
				}
				hear("hello ")
				order("process %d", n)
				s := newScript(tr, n)
				want := Ending{}
				for at, e := range s.events {
					if e.Kind == trace.Client {
						c.write(e.Line)
						hear(fmt.Sprintf("got %d", s.index[at]))
						continue
					}
					if len(c.out)+len(c.err) > 0 {
						t.Fatal("something was written that nobody ordered")
					}
					order("emit %d", s.index[at])
					hear(fmt.Sprintf("wrote %d", s.index[at]))
					switch e.Kind {
					case trace.Agent:
						if got := <-c.out; got != string(e.Line) {
							t.Errorf("%s, want %s", got, e.Line)
						}
					case trace.Stderr:
						<-c.err
					case trace.Exit:
						want = ending(e)
					}
				}
				if want == (Ending{}) {
					_ = mine.Close()
				}
				if got := c.closes(); got != want {
					t.Errorf("ended %+v, want %+v", got, want)
				}
			})
		}
	}
}

func TestStepTellsWhatItCannot(t *testing.T) {
	mine, its := net.Pipe()
	_ = mine.SetDeadline(time.Now().Add(20 * time.Second))
	c := playing(t, "testdata/traces/pi-acp-0.0.34/normal.jsonl", Player{Steps: its})
	lines := bufio.NewScanner(mine)
	said := func(order string) string {
		if order != "" {
			_, _ = fmt.Fprintln(mine, order)
		}
		lines.Scan()
		return lines.Text()
	}
	said("")
	_, _ = fmt.Fprintln(mine, "process 1")
	tr, err := trace.Load("testdata/traces/pi-acp-0.0.34/normal.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := newScript(tr, 1)
	answer := 0
	for answer = range s.events {
		if _, ok := s.requests[answer]; ok {
			break
		}
	}
	if got, want := said(fmt.Sprintf("emit %d", s.index[answer])), fmt.Sprintf("missing %d", s.index[answer]); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.write(wire.SetMode(9, "x", "plan"))
	if got := said(""); got != "other session/set_mode" {
		t.Errorf("%q", got)
	}
	if m := c.next(); !wire.SameID(m.ID, []byte("9")) {
		t.Errorf("%+v", m)
	}
	_ = mine.Close()
	c.closes()
}
