package judge_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/drill/trace"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

const traces = "../../../drill/testdata/traces"

// row is one case of the contract, testdata/outcomes-shared.json, or of ours,
// outcomes-more.json.
type row struct {
	ID     string `json:"id"`
	Agent  string `json:"agent"`
	Trace  string `json:"trace"`
	Prompt struct {
		Index   int             `json:"index"`
		ID      json.RawMessage `json:"rpc_id"`
		Session string          `json:"session_id"`
		Sent    int64           `json:"sent_ms"`
	} `json:"prompt"`
	Until   int64  `json:"until_ms"`
	Decided *int64 `json:"decided_ms"`
	Want    outcome
}

// outcome is what a row wants to see.
type outcome struct {
	Outcome        string  `json:"outcome"`
	Class          *string `json:"class"`
	Evidence       string  `json:"evidence"`
	ToolOpen       bool    `json:"tool_open"`
	PermissionOpen bool    `json:"permission_open"`
	LastGenuine    *int64  `json:"last_genuine_event_ms"`
	Genuine        int     `json:"genuine_events"`
	Noise          int     `json:"noise_events"`
	ModelUsage     bool    `json:"model_usage_seen"`
}

// zero is the time at which a recording begins: any will do.
var zero = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestRecordings(t *testing.T) {
	loaded := map[string]*trace.Trace{}
	for _, r := range append(rows(t, "outcomes-shared.json"), rows(t, "outcomes-more.json")...) {
		t.Run(r.ID, func(t *testing.T) {
			tr := loaded[r.Trace]
			if tr == nil {
				var err error
				if tr, err = trace.Load(filepath.Join(traces, filepath.FromSlash(r.Trace))); err != nil {
					t.Fatal(err)
				}
				loaded[r.Trace] = tr
			}
			v := replay(t, tr, r)
			if got, want := show(seen(v)), show(r.Want); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if got, want := show(sinceZero(v.DecidedAt)), show(r.Decided); got != want {
				t.Errorf("decided %s, want %s", got, want)
			}
		})
	}
}

func rows(t *testing.T, file string) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct{ Cases []row }
	if err := json.Unmarshal(text, &corpus); err != nil || len(corpus.Cases) == 0 {
		t.Fatal(file, err)
	}
	return corpus.Cases
}

// replay feeds a recording up to the time at which the case ends.
func replay(t *testing.T, tr *trace.Trace, r row) judge.Verdict {
	t.Helper()
	p := tr.Prompts()[r.Prompt.Index]
	if !wire.SameID(p.ID, r.Prompt.ID) || p.Session != r.Prompt.Session || tr.Events[p.Event].At.Milliseconds() != r.Prompt.Sent {
		t.Fatalf("prompt %d is another one: %s of %s", r.Prompt.Index, p.ID, p.Session)
	}
	own := tr.Events[p.Event]
	turn := judge.New(judge.Params{}, r.Agent, p.Session, p.ID, zero.Add(own.At))
	var last judge.Verdict
	for k := p.Event + 1; k < len(tr.Events); k++ {
		e := tr.Events[k]
		at := zero.Add(e.At)
		if e.At.Milliseconds() > r.Until {
			break
		}
		switch e.Kind {
		case trace.Agent:
			if e.Message != nil {
				turn.Agent(at, e.Message)
			}
		case trace.Client:
			if e.Message != nil && !e.Raw {
				turn.Client(at, e.Message)
			}
		case trace.Stderr:
			feedStderr(turn, at, e.Line, inFlight(tr, k))
		case trace.Exit:
			if e.Process == own.Process {
				turn.Exit(at)
			}
		}
		v := turn.Verdict()
		grew(t, last, v)
		last = v
	}
	turn.Tick(zero.Add(time.Duration(r.Until) * time.Millisecond))
	return turn.Verdict()
}

// grew checks what holds between any two looks at a turn.
func grew(t *testing.T, before, after judge.Verdict) {
	t.Helper()
	if after.Genuine < before.Genuine || after.Noise < before.Noise || before.ModelUsageSeen && !after.ModelUsageSeen || after.LastGenuine.Before(before.LastGenuine) {
		t.Fatalf("counters fell: %+v after %+v", after, before)
	}
	if before.Outcome != "" && before.Outcome != judge.Open && show(before) != show(after) {
		t.Fatalf("decided twice: %+v after %+v", after, before)
	}
}

func seen(v judge.Verdict) outcome {
	o := outcome{Outcome: string(v.Outcome), Evidence: string(v.Evidence), ToolOpen: len(v.ToolOpen) > 0, PermissionOpen: len(v.PermissionOpen) > 0,
		LastGenuine: sinceZero(v.LastGenuine), Genuine: v.Genuine, Noise: v.Noise, ModelUsage: v.ModelUsageSeen}
	if v.Class != "" {
		class := string(v.Class)
		if v.Class == rouse.ClassNone {
			class = "unknown" // the contract's word
		}
		o.Class = &class
	}
	return o
}

func sinceZero(at time.Time) *int64 {
	if at.IsZero() {
		return nil
	}
	ms := at.Sub(zero).Milliseconds()
	return &ms
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// feedStderr does what the engine does for each line of stderr. The rules on a
// record's own time are not those of a replay: Now and PromptStarted stay zero.
func feedStderr(turn *judge.Turn, at time.Time, line []byte, active int) {
	turn.Stderr(at, diagnostics.Parse(diagnostics.Line{Text: line}), diagnostics.Context{ActivePrompts: active})
}

// inFlight counts the prompts of event k's process that are open before it.
func inFlight(tr *trace.Trace, k int) int {
	open := map[string]bool{}
	for _, e := range tr.Events[:k] {
		switch m := e.Message; {
		case e.Process != tr.Events[k].Process || m == nil || e.Raw:
		case e.Kind == trace.Client && m.Method == wire.MethodPrompt:
			open[string(m.ID)] = true
		case e.Kind == trace.Agent && m.IsAnswer():
			delete(open, string(m.ID))
		}
	}
	return len(open)
}
