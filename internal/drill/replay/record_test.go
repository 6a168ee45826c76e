package replay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rouse/internal/diagnostics"
	"rouse/internal/drill"
	"rouse/internal/drill/record"
	"rouse/internal/drill/trace"
	"rouse/internal/engine/acp/judge"
)

// clockwork is the first argument that makes the test's own binary a recorded
// agent that plays by itself, without gaps.
const clockwork = "play-by-the-clock"

func playByTheClock(path string) {
	end, err := drill.Player{Speed: 1e12, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}.Play(context.Background(), path)
	if err != nil {
		os.Exit(9)
	}
	os.Exit(end.Code)
}

// TestNeutralIsJudgedTheSame neutralises every recording, line by line at its
// own time: every prompt's end stays what it was.
func TestNeutralIsJudgedTheSame(t *testing.T) {
	dir := t.TempDir()
	made := map[string]*trace.Trace{}
	for _, r := range rows(t) {
		o := r.options()
		tr, err := trace.Load(o.Trace)
		if err != nil {
			t.Fatal(err)
		}
		o.Agent = r.Agent
		plain := made[o.Trace]
		if plain == nil {
			plain = neutralised(t, dir, tr)
			made[o.Trace] = plain
		}
		if got, want := shown(folded(plain, o)), shown(folded(tr, o)); got != want {
			t.Errorf("%s\nneutral %s\nraw     %s", r.ID, got, want)
		}
	}
}

// neutralised writes a recording anew, as the recorder would have.
func neutralised(t *testing.T, dir string, tr *trace.Trace) *trace.Trace {
	t.Helper()
	var n record.Neutral
	var out, said bytes.Buffer
	for _, e := range tr.Events {
		ms := e.At.Milliseconds()
		switch e.Kind {
		case trace.Client, trace.Agent:
			dir := map[trace.Kind]string{trace.Client: "c2a", trace.Agent: "a2c"}[e.Kind]
			line, ok := n.Message(e.Line)
			if ok && !e.Raw {
				fmt.Fprintf(&out, "{\"t\":%d,\"dir\":%q,\"msg\":%s}\n", ms, dir, line)
			}
		case trace.Stderr:
			line, ok := diagnostics.Parse(diagnostics.Line{Text: e.Line}).Neutral(n.Session)
			if !ok {
				line = "(some bytes)"
			}
			fmt.Fprintf(&said, "[%d] %s\n", ms, line)
		case trace.Spawn:
			fmt.Fprintf(&out, "{\"t\":%d,\"dir\":\"proc\",\"ev\":\"spawn\",\"n\":%d}\n", ms, e.Process)
		case trace.Exit:
			fmt.Fprintf(&out, "{\"t\":%d,\"dir\":\"proc\",\"ev\":\"exit\",\"n\":%d,\"code\":null,\"signal\":\"SIGKILL\"}\n", ms, e.Process)
		}
	}
	name := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(tr.Path, traces), "/", "_"))
	for path, text := range map[string][]byte{name: out.Bytes(), strings.TrimSuffix(name, ".jsonl") + ".stderr.txt": said.Bytes()} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plain, err := trace.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// TestRecorded puts the recorder between a client and a recorded agent, as real
// processes: nothing that passes is changed, and what it wrote is judged as the
// first recording is. (Agents whose stderr counts are in the test above: how
// two pipes are read against each other is nobody's to say here.)
func TestRecorded(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows(t) {
		if i%5 != 0 || r.Agent == "opencode" || r.Prompt.Index > 0 || r.Decided == nil {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			o := r.options()
			o.Agent = r.Agent
			tr, err := trace.Load(o.Trace)
			if err != nil {
				t.Fatal(err)
			}
			want := folded(tr, o)
			path := filepath.Join(t.TempDir(), "new.jsonl")
			j, err := record.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			in, client := io.Pipe()
			agent, out := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				_, err := record.Proxy{Argv: []string{self, clockwork, o.Trace}, In: in, Out: out, Err: io.Discard, Journal: j}.Run(t.Context())
				_ = out.Close()
				ended <- err
			}()
			said := bufio.NewReader(agent)
			for _, e := range tr.Events[1:] {
				if e.At.Milliseconds() > *r.Decided || e.Kind == trace.Exit {
					break
				}
				switch {
				case e.Kind == trace.Client && !e.Raw:
					_, _ = client.Write(append(bytes.Clone(e.Line), '\n'))
				case e.Kind == trace.Agent:
					if line, err := said.ReadBytes('\n'); err != nil || string(bytes.TrimSpace(line)) != string(e.Line) {
						t.Fatalf("the client read %s, %v; want %s", line, err, e.Line)
					}
				}
			}
			_ = client.Close()
			go func() { _, _ = io.Copy(io.Discard, said) }()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := trace.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			o.Until = time.Hour
			got := folded(again, o)
			if want.Evidence == judge.EvidenceExit {
				return // it ended as its client did
			}
			for _, x := range []*Result{&got, &want} {
				x.LastGenuine, x.DecidedMS = nil, nil
			}
			if got, want := shown(got), shown(want); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
