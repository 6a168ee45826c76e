package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/drill/trace"
)

// player is the first argument that makes the test's own binary a recorded
// agent, as `rouse drill agent` is one.
const player = "play-a-recording"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == player {
		play(os.Args[3], os.Args[4])
	}
	if len(os.Args) > 1 && os.Args[1] == clockwork {
		playByTheClock(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

// play is the recorded agent; it does not return.
func play(socket, path string) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	end, err := drill.Player{Steps: io.ReadWriter(conn), In: os.Stdin, Out: os.Stdout, Err: os.Stderr}.Play(context.Background(), path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	if end.Signal != "" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	os.Exit(end.Code)
}

const (
	traces  = "../testdata/traces"
	corpora = "../../engine/acp/judge/testdata"
)

// row is one case of the contract, or of ours beside it.
type row struct {
	ID     string `json:"id"`
	Agent  string `json:"agent"`
	Trace  string `json:"trace"`
	Prompt struct {
		Index int `json:"index"`
	} `json:"prompt"`
	Until   int64  `json:"until_ms"`
	Decided *int64 `json:"decided_ms"`
	Want    Result `json:"want"`
}

// rows are the cases of the contract.
func rows(t *testing.T) []row {
	t.Helper()
	return rowsOf(t, "outcomes-shared.json")
}

func rowsOf(t *testing.T, file string) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(corpora, file))
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []row }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Cases {
		all.Cases[i].Want.DecidedMS = all.Cases[i].Decided
	}
	return all.Cases
}

// replayed plays a recording with the test's own binary as the agent.
func replayed(ctx context.Context, o Options) (Result, error) {
	self, err := os.Executable()
	if err != nil {
		return Result{}, err
	}
	o.Command = []string{self, player}
	r, err := Run(ctx, o)
	r.Failure = nil // in words, not in the contract
	return r, err
}

func (r row) options() Options {
	return Options{Trace: filepath.Join(traces, filepath.FromSlash(r.Trace)), Prompt: r.Prompt.Index, Until: time.Duration(r.Until) * time.Millisecond}
}

// TestOutcomes is every judged recording through the real engine with a real
// process; a short run takes every ninth, which meets all agents, and what was
// made up.
func TestOutcomes(t *testing.T) {
	began := time.Now()
	t.Run("all", func(t *testing.T) {
		for i, r := range append(rows(t), rowsOf(t, "outcomes-more.json")...) {
			if testing.Short() && i%9 != 0 && !strings.HasPrefix(r.Trace, "made-up/") {
				continue
			}
			t.Run(r.ID, func(t *testing.T) {
				t.Parallel()
				got, err := replayed(t.Context(), r.options())
				if err != nil {
					t.Fatal(err)
				}
				if got, want := shown(got), shown(r.Want); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the recordings took %s; a minute is the bound", took)
	}
}

// TestSpeed leaves the recorded gaps, shortened, and changes nothing else.
func TestSpeed(t *testing.T) {
	for i, r := range rows(t) {
		if i%27 != 5 || r.Until > 400_000 || testing.Short() && i%54 != 5 {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			o := r.options()
			o.Speed = 200
			got, err := replayed(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := shown(got), shown(r.Want); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestWhatCannotBePlayed(t *testing.T) {
	o := Options{Trace: filepath.Join(traces, "opencode-1.18.33", "quota.jsonl"), Until: -1}
	tr, err := trace.Load(o.Trace)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	if err := os.WriteFile(broken, []byte("{\"t\":1,\"dir\":\"c2a\",\"msg\":{}}\nno JSON\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   rouse.Kind
	}{
		{"no such prompt", func(o *Options) { o.Prompt = len(tr.Prompts()) }, rouse.Invalid},
		{"a prompt below zero", func(o *Options) { o.Prompt = -1 }, rouse.Invalid},
		{"no such file", func(o *Options) { o.Trace = "nowhere.jsonl" }, rouse.NotFound},
		{"a directory", func(o *Options) { o.Trace = t.TempDir() }, rouse.Invalid},
		{"not JSON", func(o *Options) { o.Trace = broken }, rouse.Invalid},
		{"an end before the prompt", func(o *Options) { o.Until = 0 }, rouse.Invalid},
	} {
		bad := o
		c.change(&bad)
		if _, err := replayed(t.Context(), bad); rouse.KindOf(err) != c.want || rouse.SafeMessage(err) == "" {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replayed(ctx, rows(t)[0].options()); err == nil {
		t.Error("a replay that was given up has a result")
	}
}

func shown(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
