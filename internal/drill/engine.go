package drill

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// Engine is an engine whose conversations misbehave on command: the model id
// of a prompt is the mode, one of EngineModes. It needs no network and no
// process, and passes enginetest.
type Engine struct {
	// Speed divides the silences of minutes; 0 and 1 leave them.
	Speed float64
}

// silence is a wait of minutes at the engine's speed.
func (e Engine) silence(d time.Duration) time.Duration {
	if e.Speed <= 1 {
		return d
	}
	return time.Duration(float64(d) / e.Speed)
}

// EngineModes are the modes of the drill engine and what each does.
var EngineModes = map[string]string{
	"echo":          "answers with the prompt's text",
	"stream":        "200 pieces of text, 50 a second",
	"burst":         "50,000 pieces of text at once",
	"tool":          "one tool call, then text",
	"plan":          "writes a todo list, then text",
	"permission":    "asks for a permission, then says what was answered",
	"question":      "asks a question, then says what was answered",
	"retry":         "one failed attempt that had begun to answer, a retry after 1 s, then text",
	"retries":       "three known retries, the last without a word that it is over, then text",
	"withdrawn":     "asks for a permission and withdraws it after 2 s, then text",
	"hang":          "two pieces of text, then silence until it is cancelled",
	"mute":          "nothing at all until it is cancelled",
	"deaf":          "as hang, but ignores cancel: only force ends it",
	"stubborn":      "as hang, but ignores cancel and force: only the end of its context frees it, 2 s later",
	"late":          "answers as completed 1 s after cancel",
	"late-answer":   "the same as late",
	"never-answers": "answers in full, but the end of its prompt is never told: only force frees it",
	"fail":          "ends on a usage limit",
	"bare":          "ends with an error that has no class; the diagnostic comes 100 ms later",
	"silent":        "ends with an error that has no class; nothing else comes",
	"lateword":      "ends with an error that has no class; the diagnostic comes 700 ms later, when nobody waits for it",
	"diagnostic":    "a terminal diagnostic while its prompt stays open",
	"twofold":       "a terminal diagnostic, told twice, and the same failure as its answer",
	"ignored":       "diagnostics that were ignored, with their counts, then text",
	"exit":          "its process exits in mid-answer",
	"lateexit":      "answers with the prompt's text; its process exits 300 ms later",
	"slowopen":      "opening takes 15 s and listens to nobody, then as echo",
	"garbage":       "noise, updates of other generations and unknown calls, then text",
	"empty":         "ends at once without an update",
	"quiettool":     "a tool that says nothing for 15 minutes and ends well",
	"pauses":        "two pieces of text, each followed by 7 minutes of silence, then the end",
	"slowstart":     "answers with the prompt's text after 4 minutes of nothing",
	"longretry":     "a known retry after 10 minutes, then text",
	"chatter":       "as hang, with a metadata frame every second",
	"freeze":        "as hang, and its protocol does not answer either",
	"dead":          "as mute, and its protocol does not answer either",
}

// Open makes a conversation. The agent "refuse" cannot be opened.
func (e Engine) Open(_ context.Context, spec engine.Spec, sink engine.Sink) (engine.Conversation, error) {
	if spec.Agent == "refuse" {
		return nil, rouse.Errorf(rouse.Upstream, "drill: open", "the drill agent refuses to start")
	}
	if spec.Model.Model == "slowopen" {
		time.Sleep(e.silence(openSilence))
	}
	return &conversation{engine: e, sink: sink, waiting: map[string]chan rouse.Reply{}}, nil
}

type conversation struct {
	engine Engine
	sink   engine.Sink
	late   sync.WaitGroup // what comes after Prompt has returned

	mu      sync.Mutex
	cancel  chan struct{} // closed by Cancel; nil when no prompt runs
	stop    chan struct{}
	waiting map[string]chan rouse.Reply
	closed  bool
	frozen  bool // its protocol does not answer
}

// run is one prompt at work.
type run struct {
	c            *conversation
	ctx          context.Context
	p            rouse.Prompt
	cancel, stop chan struct{}
}

// Prompt plays the mode.
func (c *conversation) Prompt(ctx context.Context, p rouse.Prompt) engine.Outcome {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return cancelled()
	}
	r := &run{c: c, ctx: ctx, p: p, cancel: make(chan struct{}), stop: make(chan struct{})}
	c.cancel, c.stop = r.cancel, r.stop
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cancel, c.stop = nil, nil
	}()
	play, ok := modes[p.Model.Model]
	if !ok {
		return r.failed(rouse.ClassModel, rouse.CodeModel, "process", "the drill engine has no mode "+p.Model.Model)
	}
	return play(r)
}

var modes = map[string]func(*run) engine.Outcome{
	"echo":          func(r *run) engine.Outcome { return r.say(r.text()) },
	"stream":        func(r *run) engine.Outcome { return r.stream(200, 20*time.Millisecond) },
	"burst":         func(r *run) engine.Outcome { return r.stream(50_000, 0) },
	"tool":          (*run).tool,
	"plan":          (*run).plan,
	"permission":    (*run).permission,
	"question":      (*run).question,
	"retry":         (*run).retry,
	"retries":       (*run).retries,
	"withdrawn":     (*run).withdrawn,
	"hang":          func(r *run) engine.Outcome { r.begin(); return r.until(true, true, 0) },
	"mute":          func(r *run) engine.Outcome { return r.until(true, true, 0) },
	"deaf":          func(r *run) engine.Outcome { r.begin(); return r.until(false, true, 0) },
	"stubborn":      func(r *run) engine.Outcome { r.begin(); return r.until(false, false, 2*time.Second) },
	"late":          (*run).lateAnswer,
	"late-answer":   (*run).lateAnswer,
	"never-answers": (*run).neverAnswers,
	"fail":          (*run).quota,
	"bare":          (*run).bare,
	"silent":        func(*run) engine.Outcome { return engine.Outcome{State: rouse.TurnFailed, Finish: "error"} },
	"lateword":      (*run).lateWord,
	"diagnostic":    (*run).diagnostic,
	"twofold":       (*run).twofold,
	"ignored":       (*run).ignored,
	"exit":          (*run).exit,
	"lateexit":      (*run).lateExit,
	"slowopen":      func(r *run) engine.Outcome { return r.say(r.text()) },
	"garbage":       (*run).garbage,
	"empty":         func(*run) engine.Outcome { return completed() },
	"quiettool":     (*run).quietTool,
	"pauses":        (*run).pauses,
	"slowstart":     (*run).slowStart,
	"longretry":     (*run).longRetry,
	"chatter":       (*run).chatter,
	"freeze":        (*run).freeze,
	"dead":          (*run).dead,
}

func completed() engine.Outcome {
	return engine.Outcome{State: rouse.TurnCompleted, Finish: "stop", Evidence: "drill"}
}

// failed is a failure of the prompt's own provider: a wall that comes of it
// stands in the way of that one.
func (r *run) failed(class rouse.Class, code, source, message string) engine.Outcome {
	return engine.Outcome{State: rouse.TurnFailed, Finish: "error", Evidence: "drill", Failure: &rouse.Failure{
		Class: class, Code: code, Provider: r.p.Model.Provider, Model: r.p.Model.Model, Message: message, Source: source}}
}

func (r *run) text() string {
	var out []string
	for _, p := range r.p.Parts {
		if p.Kind == rouse.TextPart {
			out = append(out, p.Text)
		}
	}
	return strings.Join(out, "\n")
}

func (r *run) send(genuine bool, b engine.Body) {
	r.c.sink.Update(r.ctx, engine.Update{Generation: r.p.Generation, At: time.Now(), Genuine: genuine, Bytes: 64, Body: b})
}

func (r *run) step() { r.send(false, engine.StepStarted{}) }

func (r *run) done(finish string) {
	r.send(false, engine.StepEnded{Finish: finish, Usage: rouse.Usage{Tokens: rouse.Tokens{Input: 10, Output: 5}}})
}

// say is a whole step of one text.
func (r *run) say(text string) engine.Outcome {
	r.step()
	r.send(true, engine.Text{Text: text})
	r.done("stop")
	return completed()
}

// begin is what hanging modes say first.
func (r *run) begin() {
	r.step()
	r.send(true, engine.Text{Text: "one "})
	r.send(true, engine.Text{Text: "two "})
}

func (r *run) stream(n int, every time.Duration) engine.Outcome {
	r.step()
	for i := range n {
		if every > 0 && r.pause(every) || r.ended() {
			return cancelled()
		}
		r.send(true, engine.Text{Text: fmt.Sprintf("t%d ", i)})
	}
	r.done("stop")
	return completed()
}

// pause waits; true means that the prompt was ended meanwhile.
func (r *run) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-r.cancel:
	case <-r.stop:
	case <-r.ctx.Done():
	}
	return true
}

func (r *run) ended() bool {
	select {
	case <-r.cancel:
	case <-r.stop:
	case <-r.ctx.Done():
	default:
		return false
	}
	return true
}

func cancelled() engine.Outcome {
	return engine.Outcome{State: rouse.TurnCancelled, Evidence: "drill: cancelled"}
}

// until works on nothing until it is ended by what it listens to. tail is how
// long it takes to die once its context is gone.
func (r *run) until(cancel, stop bool, tail time.Duration) engine.Outcome {
	var asked, forced chan struct{}
	if cancel {
		asked = r.cancel
	}
	if stop {
		forced = r.stop
	}
	select {
	case <-asked:
	case <-forced:
	case <-r.ctx.Done():
		if tail > 0 {
			time.Sleep(tail)
		}
	}
	return cancelled()
}

// Answer hands a reply to whoever waits for it.
func (c *conversation) Answer(_ context.Context, id string, reply rouse.Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer, ok := c.waiting[id]
	if !ok {
		return rouse.Errorf(rouse.NotFound, "drill: answer", "nobody waits for %s", rouse.Clip(id, 64))
	}
	delete(c.waiting, id)
	answer <- reply
	return nil
}

// Cancel asks the running prompt to end.
func (c *conversation) Cancel(context.Context) error {
	return c.signal(func() chan struct{} { return c.cancel })
}

// Stop ends it by force.
func (c *conversation) Stop(context.Context) error {
	return c.signal(func() chan struct{} { return c.stop })
}

func (c *conversation) signal(which func() chan struct{}) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := which()
	if ch == nil {
		return nil
	}
	select {
	case <-ch:
	default:
		close(ch)
	}
	return nil
}

// Info describes the conversation.
func (c *conversation) Info() engine.Info {
	return engine.Info{EngineSession: "drill", ModelConfirmed: "true", Diagnostics: "supported"}
}

// Close ends a running prompt by force, as far as its mode lets it, and waits
// for what still comes late.
func (c *conversation) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.signal(func() chan struct{} { return c.stop })
	c.late.Wait()
	return err
}
