// Package enginetest is the suite that every engine passes: what a lane may
// rely on, whatever answers behind the border.
package enginetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// Behaviour is what the other side shall do with a prompt.
type Behaviour string

// The behaviours that the suite asks for.
const (
	Echo       Behaviour = "echo"       // answer with some text and end
	Long       Behaviour = "long"       // begin an answer and never end it
	Burst      Behaviour = "burst"      // answer with BurstPieces pieces as fast as can be
	Tool       Behaviour = "tool"       // call a tool, then answer
	SlowTool   Behaviour = "slow-tool"  // call a tool that does not end by itself
	Permission Behaviour = "permission" // ask for a permission, then answer
	Question   Behaviour = "question"   // ask a question, then answer
	Fail       Behaviour = "fail"       // end with a failure
)

// BurstPieces is how many pieces of text a Burst has.
const BurstPieces = 50_000

// Fixture is an engine to be tested.
type Fixture struct {
	Engine engine.Engine
	Spec   engine.Spec
	// Prompt gives a prompt that makes the other side behave so; false for a
	// behaviour that this engine does not know.
	Prompt func(b Behaviour, generation uint64) (rouse.Prompt, bool)
}

// patience bounds every wait of the suite; nothing is timed below it.
const patience = 20 * time.Second

// Run runs the suite; open makes a fresh fixture for each test.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for name, test := range map[string]func(*testing.T, *rig){
		"answers in order":                    answersInOrder,
		"one prompt after another":            oneAfterAnother,
		"a tool runs from pending to its end": toolRuns,
		"a burst arrives whole":               burst,
		"a failure says what is known":        failure,
		"cancel ends a long answer":           cancelLong,
		"stop ends a long answer":             stopLong,
		"the context ends a long answer":      contextLong,
		"cancel ends a tool":                  cancelTool,
		"cancel without a prompt":             cancelIdle,
		"a permission is waited for":          permission,
		"a rejected permission":               rejected,
		"a question is waited for":            question,
		"cancel while a permission is open":   cancelPermission,
		"answers nobody waits for":            lateAnswer,
		"close while a prompt runs":           closeRunning,
		"close twice":                         closeTwice,
		"a full sink is waited for":           slowSink,
	} {
		t.Run(name, func(t *testing.T) { test(t, newRig(t, open(t))) })
	}
}

// rig is one open conversation with a sink that records.
type rig struct {
	Fixture
	conv engine.Conversation
	sink *Recorder
}

func newRig(t *testing.T, f Fixture) *rig {
	t.Helper()
	r := &rig{Fixture: f, sink: NewRecorder()}
	conv, err := f.Engine.Open(t.Context(), f.Spec, r.sink)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	r.conv = conv
	t.Cleanup(func() {
		if err := conv.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// prompt gives a prompt or skips the test.
func (r *rig) prompt(t *testing.T, b Behaviour, generation uint64) rouse.Prompt {
	t.Helper()
	p, ok := r.Prompt(b, generation)
	if !ok {
		t.Skipf("the engine does not know %s", b)
	}
	p.Generation = generation
	return p
}

// start runs a prompt beside the test.
func (r *rig) start(ctx context.Context, p rouse.Prompt) <-chan engine.Outcome {
	done := make(chan engine.Outcome, 1)
	go func() { done <- r.conv.Prompt(ctx, p) }()
	return done
}

// ended waits for an outcome.
func ended(t *testing.T, done <-chan engine.Outcome) engine.Outcome {
	t.Helper()
	select {
	case out := <-done:
		return out
	case <-time.After(patience):
		t.Fatal("Prompt did not return")
		return engine.Outcome{}
	}
}

// Recorder is a sink that keeps what it is told.
type Recorder struct {
	mu      sync.Mutex
	updates []engine.Update
	news    chan struct{} // closed and replaced with each update
	gate    chan struct{} // nil: open; else Update waits for it
}

// NewRecorder makes a sink.
func NewRecorder() *Recorder { return &Recorder{news: make(chan struct{})} }

// Update keeps an update.
func (r *Recorder) Update(ctx context.Context, u engine.Update) {
	r.mu.Lock()
	gate := r.gate
	r.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates = append(r.updates, u)
	close(r.news)
	r.news = make(chan struct{})
}

// Updates gives what was recorded so far.
func (r *Recorder) Updates() []engine.Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.updates)
}

// Await waits until an update fits and gives it.
func (r *Recorder) Await(t testing.TB, what string, fits func(engine.Update) bool) engine.Update {
	t.Helper()
	limit := time.After(patience)
	for from := 0; ; {
		r.mu.Lock()
		news, all := r.news, r.updates
		r.mu.Unlock()
		for ; from < len(all); from++ {
			if fits(all[from]) {
				return all[from]
			}
		}
		select {
		case <-news:
		case <-limit:
			t.Fatalf("no update: %s; got %d updates", what, len(all))
		}
	}
}

// block makes the sink full until the returned function is called.
func (r *Recorder) block() (release func()) {
	gate := make(chan struct{})
	r.mu.Lock()
	r.gate = gate
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		r.gate = nil
		r.mu.Unlock()
		close(gate)
	}
}

// Text joins the answer of a generation.
func (r *Recorder) Text(generation uint64) string {
	var b strings.Builder
	for _, u := range r.Updates() {
		if x, ok := u.Body.(engine.Text); ok && u.Generation == generation {
			b.WriteString(x.Text)
		}
	}
	return b.String()
}

func isText(u engine.Update) bool { _, ok := u.Body.(engine.Text); return ok }

func toolRunning(u engine.Update) bool {
	x, ok := u.Body.(engine.ToolStarted)
	return ok && x.State == rouse.ToolRunning
}
