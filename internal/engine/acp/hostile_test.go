package acp

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
	"rouse/internal/engine/enginetest"
)

// TestOutputCloses: an agent that closes its output and lives on can answer
// nothing any more; its turn ends, and the next one has another process.
func TestOutputCloses(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	out := asking(t, c, deeds(1, "say=one closeout"))
	if f := out.Failure; out.State != rouse.TurnFailed || f == nil || f.Code != rouse.CodeExited || !strings.Contains(f.Message, "closed its output") {
		t.Fatalf("%+v %+v", out, f)
	}
	if out := asking(t, c, deeds(2, "say=two")); out.State != rouse.TurnCompleted {
		t.Fatalf("%+v %+v", out, out.Failure)
	}
}

// TestRequestsAreRefusedBesides: an agent that asks for thousands of things and
// does not read what it gets is still read, up to its answer.
func TestRequestsAreRefusedBesides(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	began := time.Now()
	out := asking(t, c, deeds(1, "deaf requests=5000 say=done"))
	if out.State != rouse.TurnCompleted || b.sink.Text(1) != "done " {
		t.Fatalf("%+v %+v", out, out.Failure)
	}
	if took := time.Since(began); took > writeWait/2 {
		t.Errorf("its reader waited for its writer: %v", took)
	}
}

// TestHalfALine: after a line of which only a part could be written nothing
// else is written, and nobody waits for it.
func TestHalfALine(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := newConn(w, time.Now)
	c.patience = 50 * time.Millisecond
	if err := c.send([]byte(strings.Repeat("x", 1<<20) + "\n")); err == nil {
		t.Fatal("it was written")
	}
	c.later([]byte("later\n"))
	began := time.Now()
	if _, err := c.ask(func(int64) []byte { return []byte("again\n") }, nil); rouse.KindOf(err) != rouse.Upstream {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > c.patience/2 {
		t.Errorf("it waited %v", took)
	}
	c.writers.Wait()
	_ = w.Close()
	if all, err := io.ReadAll(r); err != nil || strings.Trim(string(all), "x") != "" {
		t.Errorf("%v, behind the half line is %q", err, strings.Trim(string(all), "x"))
	}
}

// TestDoesNotRead: a conversation whose agent does not read goes on in another
// process.
func TestDoesNotRead(t *testing.T) {
	for name, shared := range map[string]bool{"a process each": false, "a shared process": true} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, "plain", func(a *Agent, _ *Options) { a.Shared = shared })
			c := b.open(t)
			c.h.conn.patience = 100 * time.Millisecond
			if out := asking(t, c, deeds(1, "deaf say=one")); out.State != rouse.TurnCompleted {
				t.Fatalf("%+v", out)
			}
			pid := c.Info().PID
			out := asking(t, c, deeds(2, "say="+strings.Repeat("x", 1<<20)))
			if f := out.Failure; f == nil || !strings.Contains(f.Message, "does not read its input") {
				t.Fatalf("%+v %+v", out, f)
			}
			if out := asking(t, c, deeds(3, "say=three")); out.State != rouse.TurnCompleted || c.Info().PID == pid {
				t.Errorf("%+v %+v, process %d, was %d", out, out.Failure, c.Info().PID, pid)
			}
		})
	}
}

// TestPermissionOfNobody: what is asked while no prompt runs, or for no session
// that is open, is answered at once, and no person is asked.
func TestPermissionOfNobody(t *testing.T) {
	t.Run("in a load", func(t *testing.T) {
		b := newBed(t, "loads eager", func(_ *Agent, o *Options) { o.Start = 5 * time.Second })
		b.spec.Resume = "ses_earlier"
		if out := asking(t, b.open(t), deeds(1, "say=one")); out.State != rouse.TurnCompleted {
			t.Errorf("%+v", out)
		}
	})
	t.Run("of no session", func(t *testing.T) {
		b := newBed(t, "plain")
		c := b.open(t)
		out := asking(t, c, deeds(1, `raw={"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"options":[]}} `+
			`raw={"jsonrpc":"2.0","id":null,"method":"session/request_permission","params":null} `+
			`raw={"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"stray"}}}} say=one`))
		if out.State != rouse.TurnCompleted || b.sink.Text(1) != "one " {
			t.Errorf("%+v %q", out, b.sink.Text(1))
		}
		for _, u := range b.sink.Updates() {
			if _, ok := u.Body.(engine.PermissionAsked); ok {
				t.Error("a person was asked")
			}
		}
	})
}

// TestAfterOpening: what an agent tells right after it opened a session is not
// lost, however slow the opener is.
func TestAfterOpening(t *testing.T) {
	for _, how := range []string{"plain", "loads"} {
		for range 10 {
			b := newBed(t, how)
			if how == "loads" {
				b.spec.Resume = "ses_earlier"
			}
			c := b.open(t)
			asking(t, c, deeds(1, "say=one")) // by then it is told
			p := deeds(2, "")
			p.Kind = rouse.TurnCompact
			if out := asking(t, c, p); out.State == rouse.TurnFailed && out.Failure.Source == "rouse" {
				t.Fatalf("%s: %+v", how, out.Failure)
			}
			_ = c.Close()
		}
	}
}

// TestAnswersTwice: the first answer to the prompt counts; others, and those to
// no request, are nobody's.
func TestAnswersTwice(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	if out := asking(t, c, deeds(1, "say=one twice")); out.State != rouse.TurnFailed || out.Evidence != "stop_reason" {
		t.Errorf("%+v", out)
	}
	if out := asking(t, c, deeds(2, "say=two")); out.State != rouse.TurnCompleted || b.sink.Text(2) != "two " {
		t.Errorf("%+v", out)
	}
}

// TestAnswerThenExit: what was answered counts, whatever became of the process
// afterwards, and the next prompt has another one.
func TestAnswerThenExit(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	for g := range uint64(5) {
		if out := asking(t, c, deeds(g+1, "burst=500 exit")); out.State != rouse.TurnCompleted {
			t.Fatalf("%d: %+v %+v", g+1, out, out.Failure)
		}
		for h := c.h; h.conn.usable(); { // its output has ended; that it is gone is noticed later
			runtime.Gosched()
		}
	}
}

// TestHugeLine: a line beyond the bound is skipped, and the turn goes on.
func TestHugeLine(t *testing.T) {
	b := newBed(t, "plain")
	if out := asking(t, b.open(t), deeds(1, "flood=65 say=one")); out.State != rouse.TurnCompleted || b.sink.Text(1) != "one " {
		t.Errorf("%+v", out)
	}
}

// TestCancelBeforeAsked: a prompt that is cancelled while its agent starts ends
// at once and is never sent.
func TestCancelBeforeAsked(t *testing.T) {
	b := newBed(t, "slow")
	c := b.open(t)
	if out := asking(t, c, deeds(1, "say=one kill")); out.State != rouse.TurnFailed {
		t.Fatalf("%+v", out)
	}
	done := make(chan engine.Outcome, 1)
	began := time.Now()
	go func() { done <- c.Prompt(t.Context(), deeds(2, "say=two")) }()
	for asked := false; !asked; runtime.Gosched() {
		c.mu.Lock()
		asked = len(c.coming) > 0
		c.mu.Unlock()
	}
	if err := c.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := <-done
	if out.State != rouse.TurnCancelled || b.sink.Text(2) != "" || time.Since(began) > 1500*time.Millisecond {
		t.Errorf("%+v %q after %v", out, b.sink.Text(2), time.Since(began))
	}
}

// TestCancelOfAnEarlyAsker: a cancel may come when the agent has the prompt and
// asks, and its asker has not noticed yet that the line is written.
func TestCancelOfAnEarlyAsker(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	done := make(chan engine.Outcome, 1)
	go func() { done <- c.Prompt(t.Context(), deeds(1, "ask=x")) }()
	b.sink.Await(t, "the question", func(u engine.Update) bool { _, ok := u.Body.(engine.PermissionAsked); return ok })
	c.mu.Lock()
	x := c.turns[0]
	x.sent = false
	c.mu.Unlock()
	if err := c.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.goesOn(t.Context(), x)
	if out := <-done; out.State != rouse.TurnCancelled {
		t.Errorf("%+v", out)
	}
}

// TestFlushAfterDrop: what was dropped is waited for by nobody.
func TestFlushAfterDrop(t *testing.T) {
	q := newQueue(enginetest.NewRecorder())
	q.add(engine.Update{Body: engine.Noise{}})
	q.add(engine.Update{Body: engine.Noise{}})
	came := q.put
	q.drop()
	if q.done < came {
		t.Errorf("who waited for the %d that came still waits: %d are done", came, q.done)
	}
}

// TestQueueIsBounded: updates that came from no line have a size, too.
func TestQueueIsBounded(t *testing.T) {
	q := newQueue(enginetest.NewRecorder())
	full := make(chan int)
	go func() {
		n := 0
		for q.room == nil {
			q.add(engine.Update{Body: engine.Retry{Attempt: n}})
			n++
		}
		full <- n
	}()
	select {
	case <-full:
	case <-time.After(10 * time.Second):
		t.Error("it takes whatever comes")
	}
}

// TestReadBefore: what was read before a prompt and dealt with after is not of
// it.
func TestReadBefore(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	x := &turn{p: deeds(1, ""), h: c.h, id: c.id, bell: make(chan struct{}, 1)}
	c.mu.Lock()
	c.begin(x)
	c.mu.Unlock()
	for i, text := range []string{"late ", "own"} {
		m, err := wire.Parse([]byte(`{"method":"session/update","params":{"sessionId":"` + c.id + `","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		c.receive(c.h, x.began.Add(time.Duration(i-1)*time.Millisecond), m, 100)
	}
	c.q.flush(t.Context())
	if got, v := b.sink.Text(1), x.judge.Verdict(); got != "own" || v.Genuine != 1 {
		t.Errorf("%q, %+v", got, v)
	}
	c.end(x)
}

// TestEndedIsForgotten: a conversation that waits for its next prompt does not
// keep the last one.
func TestEndedIsForgotten(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	asking(t, c, deeds(1, "say=one"))
	if c.last == nil || len(c.last.p.Parts) > 0 {
		t.Errorf("it keeps %+v", c.last)
	}
	pid := c.Info().PID
	asking(t, c, deeds(2, "kill"))
	if now := c.Info().PID; now != 0 {
		t.Errorf("process %d is gone, and it says %d", pid, now)
	}
}

// TestSharedStart: who waits for another's start of the shared process does not
// wait longer than it wants, and a start that fails is the failure of its
// caller alone.
func TestSharedStart(t *testing.T) {
	b := newBed(t, "slow", func(a *Agent, _ *Options) { a.Shared = true })
	first := make(chan error, 1)
	cancelled, cancel := contextWithCause(t)
	go func() {
		_, err := b.e.OpenConversation(cancelled, b.spec, b.sink)
		first <- err
	}()
	for len(b.e.starting) == 0 {
		runtime.Gosched()
	}
	impatient, give := contextWithCause(t)
	give(errNotNow)
	if _, err := b.e.OpenConversation(impatient, b.spec, b.sink); !errors.Is(err, errNotNow) {
		t.Errorf("%v", err)
	}
	cancel(errNotNow)
	if err := <-first; err == nil {
		t.Error("it was opened")
	}
	if out := asking(t, b.open(t), deeds(1, "say=one")); out.State != rouse.TurnCompleted {
		t.Errorf("%+v", out)
	}
}

var errNotNow = errors.New("not now")

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}
