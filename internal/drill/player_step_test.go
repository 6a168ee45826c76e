package drill

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"rouse"
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
						want := string(e.Line)
						if s.strays[at] {
							want = string(withID(e.Line, stray(e.Message.ID)))
						}
						if got := <-c.out; got != want {
							t.Errorf("%s, want %s", got, want)
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

// TestStepKnowsWhoseTurn: a driver may order any event of a recording. What is
// not this process's to say is told as missing, what the client will not send
// is passed, and what makes no sense ends the process.
func TestStepKnowsWhoseTurn(t *testing.T) {
	const path = "testdata/traces/made-up/"
	for _, x := range []struct {
		name, trace string
		process     int
		// orders and what is heard after each. A client's line is written after
		// "<".
		talk []string
	}{
		{"an answer to what the recorder wrote past its protocol", "no-messages", 1, []string{"emit 16", "missing 16"}},
		{"text", "no-messages", 1, []string{"emit 6", "wrote 6"}},
		{"another process's", "anew", 1, []string{"emit 12", "missing 12"}},
		{"its exit", "anew", 2, []string{"emit 7", "missing 7"}},
		{"nobody's answer", "strays", 1, []string{"emit 7", "wrote 7"}},
		{"an answer before its request", "strays", 1, []string{"emit 10", "missing 10"}},
		{"what was passed", "cancels", 1, []string{"pass 11", "missing 11", `<{"method":"session/cancel","params":{"sessionId":"ses_00000000000000000000000001"}}`, "got 14"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			mine, its := net.Pipe()
			_ = mine.SetDeadline(time.Now().Add(20 * time.Second))
			c := playing(t, path+x.trace+".jsonl", Player{Steps: its})
			heard := bufio.NewScanner(mine)
			heard.Scan()
			_, _ = fmt.Fprintf(mine, "process %d\n", x.process)
			for i := 0; i < len(x.talk); i += 2 {
				if line, writes := strings.CutPrefix(x.talk[i], "<"); writes {
					c.write([]byte(line))
				} else {
					_, _ = fmt.Fprintln(mine, x.talk[i])
				}
				if heard.Scan(); heard.Text() != x.talk[i+1] {
					t.Errorf("after %s: %q, want %q", x.talk[i], heard.Text(), x.talk[i+1])
				}
			}
			_ = mine.Close()
			c.closes()
		})
	}
	for _, order := range []string{"emit 1", "emit -1", "emit 9999", "emit", "pass 2", "pass 0", "say 3"} {
		if _, err := newStepper(t, path+"strays.jsonl").obey(nil, order); rouse.KindOf(err) != rouse.Invalid {
			t.Errorf("%s: %v", order, err)
		}
	}
}

// newStepper is the first process of a recording, to which nobody has spoken.
func newStepper(t *testing.T, path string) *stage {
	t.Helper()
	tr, err := trace.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{tr: tr, script: newScript(tr, 1)}
}
