package replay

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rouse/internal/diagnostics"
	"rouse/internal/drill/trace"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

// TestEngineIsTheFold cuts recordings anywhere: what the engine makes of a
// prompt, over pipes and with its own clockwork, is what the pure fold makes of
// the same recording.
func TestEngineIsTheFold(t *testing.T) {
	var paths []string
	all := map[string]*trace.Trace{}
	err := filepath.WalkDir(traces, func(path string, _ fs.DirEntry, err error) error {
		if !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		tr, err := trace.Load(path)
		if err == nil && len(tr.Prompts()) > 0 {
			paths, all[path] = append(paths, path), tr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	left := 60 // each starts a process
	if testing.Short() {
		left = 12
	}
	rapid.Check(t, func(t *rapid.T) {
		if left--; left < 0 {
			return
		}
		tr := all[rapid.SampledFrom(paths).Draw(t, "trace")]
		prompt := rapid.IntRange(0, len(tr.Prompts())-1).Draw(t, "prompt")
		sent := tr.Events[tr.Prompts()[prompt].Event].At
		until := sent + time.Duration(rapid.Int64Range(0, (tr.Events[len(tr.Events)-1].At-sent).Milliseconds()).Draw(t, "after"))*time.Millisecond
		o := Options{Trace: tr.Path, Prompt: prompt, Until: until}
		got, err := replayed(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", tr.Path, err)
		}
		if got, want := shown(got), shown(folded(tr, o)); got != want {
			t.Fatalf("%s prompt %d until %s\nengine %s\nfold   %s", tr.Path, prompt, until, got, want)
		}
	})
}

// folded is the judge alone over a recording.
func folded(tr *trace.Trace, o Options) Result {
	p := tr.Prompts()[o.Prompt]
	own := tr.Events[p.Event]
	turn := judge.New(judge.Params{}, agentOf(o, tr).Type, p.Session, p.ID, zero.Add(own.At))
	for k := p.Event + 1; k < len(tr.Events) && tr.Events[k].At <= o.Until; k++ {
		e := tr.Events[k]
		at := zero.Add(e.At)
		switch {
		case e.Kind == trace.Agent && e.Message != nil:
			turn.Agent(at, e.Message)
		case e.Kind == trace.Client && e.Message != nil && !e.Raw:
			turn.Client(at, e.Message)
		case e.Kind == trace.Stderr:
			turn.Stderr(at, diagnostics.Parse(diagnostics.Line{Text: e.Line}), diagnostics.Context{ActivePrompts: inFlight(tr, k)})
		case e.Kind == trace.Exit && e.Process == own.Process:
			turn.Exit(at)
		}
	}
	turn.Tick(zero.Add(o.Until))
	return resultOf(turn.Verdict())
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
