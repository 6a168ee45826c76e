package enginetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
)

func want(t *testing.T, out engine.Outcome, state rouse.TurnState) {
	t.Helper()
	if out.State != state {
		t.Fatalf("the outcome is %+v (failure %+v), want %s", out, out.Failure, state)
	}
	if out.Evidence == "" {
		t.Error("the outcome has no evidence")
	}
}

// checkUpdates holds for every generation: stamped, within the time of the
// prompt, text only inside steps where the engine knows steps.
func checkUpdates(t *testing.T, updates []engine.Update, generation uint64, from time.Time) {
	t.Helper()
	steps := slices.ContainsFunc(updates, func(u engine.Update) bool { _, ok := u.Body.(engine.StepStarted); return ok })
	open := false
	for i, u := range updates {
		if u.Generation != generation {
			t.Errorf("update %d (%T) has generation %d, want %d", i, u.Body, u.Generation, generation)
		}
		if u.At.Before(from) || u.At.After(time.Now()) {
			t.Errorf("update %d (%T) is stamped %v", i, u.Body, u.At)
		}
		switch u.Body.(type) {
		case engine.StepStarted:
			if u.Genuine {
				t.Errorf("update %d: a step's start is no progress", i)
			}
			open = true
		case engine.StepEnded:
			open = false
		case engine.Text, engine.Reasoning, engine.ToolStarted:
			if steps && !open {
				t.Errorf("update %d (%T) is outside a step", i, u.Body)
			}
			if !u.Genuine {
				t.Errorf("update %d (%T) is progress", i, u.Body)
			}
		}
	}
	if open {
		t.Error("the last step has no end")
	}
}

func answersInOrder(t *testing.T, r *rig) {
	from := time.Now()
	out := ended(t, r.start(t.Context(), r.prompt(t, Echo, 7)))
	want(t, out, rouse.TurnCompleted)
	if out.Finish == "" || len(out.OpenTools)+len(out.OpenRequests) != 0 {
		t.Errorf("%+v", out)
	}
	if r.sink.Text(7) == "" {
		t.Error("there is no text")
	}
	checkUpdates(t, turnUpdates(r), 7, from)
}

// turnUpdates leaves out titles: they belong to the session.
func turnUpdates(r *rig) []engine.Update {
	return slices.DeleteFunc(r.sink.Updates(), func(u engine.Update) bool { _, ok := u.Body.(engine.TitleSuggested); return ok })
}

func oneAfterAnother(t *testing.T, r *rig) {
	for g := uint64(1); g <= 3; g++ {
		want(t, ended(t, r.start(t.Context(), r.prompt(t, Echo, g))), rouse.TurnCompleted)
		if r.sink.Text(g) == "" {
			t.Errorf("generation %d has no text", g)
		}
	}
}

func toolRuns(t *testing.T, r *rig) {
	from := time.Now()
	want(t, ended(t, r.start(t.Context(), r.prompt(t, Tool, 1))), rouse.TurnCompleted)
	checkUpdates(t, turnUpdates(r), 1, from)
	state := map[string]rouse.ToolState{}
	for _, u := range r.sink.Updates() {
		switch b := u.Body.(type) {
		case engine.ToolStarted:
			if b.Name == "" || b.CallID == "" {
				t.Errorf("%+v", b)
			}
			if b.State == rouse.ToolRunning && len(b.Input) == 0 {
				t.Errorf("a running call without input: %+v", b)
			}
			if s := state[b.CallID]; s == rouse.ToolCompleted || s == rouse.ToolRunning && b.State == rouse.ToolPending {
				t.Errorf("call %s goes from %s to %s", b.CallID, s, b.State)
			}
			state[b.CallID] = b.State
		case engine.ToolEnded:
			if state[b.CallID] != rouse.ToolRunning {
				t.Errorf("call %s ends while %s", b.CallID, state[b.CallID])
			}
			if b.Error != "" || b.Output == "" {
				t.Errorf("%+v", b)
			}
			state[b.CallID] = rouse.ToolCompleted
		}
	}
	if len(state) == 0 {
		t.Error("no tool was called")
	}
}

func burst(t *testing.T, r *rig) {
	out := ended(t, r.start(t.Context(), r.prompt(t, Burst, 1)))
	want(t, out, rouse.TurnCompleted)
	pieces := 0
	for _, u := range r.sink.Updates() {
		if isText(u) {
			pieces++
		}
	}
	if len(r.sink.Text(1)) < BurstPieces || pieces == 0 {
		t.Errorf("%d pieces, %d bytes", pieces, len(r.sink.Text(1)))
	}
}

func failure(t *testing.T, r *rig) {
	out := ended(t, r.start(t.Context(), r.prompt(t, Fail, 1)))
	want(t, out, rouse.TurnFailed)
	if f := out.Failure; f == nil || f.Class == "" || f.Code == "" || f.Message == "" || f.Source == "" || len(f.Message) > 2000 {
		t.Errorf("%+v", f)
	}
}

// endsLong begins an endless answer, ends it, and checks that nothing follows.
func endsLong(t *testing.T, r *rig, ctx context.Context, end func()) {
	t.Helper()
	done := r.start(ctx, r.prompt(t, Long, 3))
	r.sink.Await(t, "text of the long answer", isText)
	end()
	want(t, ended(t, done), rouse.TurnCancelled)
	n := len(turnUpdates(r))
	want(t, ended(t, r.start(t.Context(), r.prompt(t, Echo, 4))), rouse.TurnCompleted)
	for _, u := range turnUpdates(r)[n:] {
		if u.Generation != 4 {
			t.Errorf("%T of generation %d after its end", u.Body, u.Generation)
		}
	}
}

func cancelLong(t *testing.T, r *rig) {
	endsLong(t, r, t.Context(), func() {
		if err := r.conv.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func stopLong(t *testing.T, r *rig) {
	endsLong(t, r, t.Context(), func() {
		if err := r.conv.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func contextLong(t *testing.T, r *rig) {
	ctx, cancel := context.WithCancelCause(t.Context())
	endsLong(t, r, ctx, func() { cancel(rouse.Errorf(rouse.Unavailable, "test", "the server stops")) })
}

func cancelTool(t *testing.T, r *rig) {
	done := r.start(t.Context(), r.prompt(t, SlowTool, 1))
	call := r.sink.Await(t, "a running tool", toolRunning).Body.(engine.ToolStarted)
	if err := r.conv.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	out := ended(t, done)
	want(t, out, rouse.TurnCancelled)
	closed := slices.ContainsFunc(r.sink.Updates(), func(u engine.Update) bool {
		e, ok := u.Body.(engine.ToolEnded)
		return ok && e.CallID == call.CallID
	})
	if closed == slices.Contains(out.OpenTools, call.CallID) {
		t.Errorf("the call must be ended or named as open: ended %v, open %v", closed, out.OpenTools)
	}
}

func cancelIdle(t *testing.T, r *rig) {
	if err := r.conv.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	want(t, ended(t, r.start(t.Context(), r.prompt(t, Echo, 1))), rouse.TurnCompleted)
}

// asked waits for a request of the running prompt.
func asked(t *testing.T, r *rig) rouse.Request {
	t.Helper()
	var req rouse.Request
	r.sink.Await(t, "a request", func(u engine.Update) bool {
		switch b := u.Body.(type) {
		case engine.PermissionAsked:
			req = b.Request
		case engine.QuestionAsked:
			req = b.Request
		default:
			return false
		}
		return u.Genuine
	})
	if req.ID == "" {
		t.Fatal("the request has no id")
	}
	return req
}

func permission(t *testing.T, r *rig) {
	done := r.start(t.Context(), r.prompt(t, Permission, 1))
	req := asked(t, r)
	if req.Permission == "" || len(req.Patterns) == 0 || req.CallID == "" {
		t.Errorf("%+v", req)
	}
	if err := r.conv.Answer(t.Context(), req.ID, rouse.Reply{Verb: rouse.ReplyOnce}); err != nil {
		t.Fatal(err)
	}
	want(t, ended(t, done), rouse.TurnCompleted)
	if err := r.conv.Answer(t.Context(), req.ID, rouse.Reply{Verb: rouse.ReplyOnce}); rouse.KindOf(err) != rouse.NotFound {
		t.Errorf("a second answer: %v", err)
	}
}

func rejected(t *testing.T, r *rig) {
	done := r.start(t.Context(), r.prompt(t, Permission, 1))
	req := asked(t, r)
	if err := r.conv.Answer(t.Context(), req.ID, rouse.Reply{Verb: rouse.ReplyReject}); err != nil {
		t.Fatal(err)
	}
	out := ended(t, done)
	if !slices.Contains([]rouse.TurnState{rouse.TurnCompleted, rouse.TurnFailed, rouse.TurnCancelled}, out.State) || len(out.OpenRequests) != 0 {
		t.Errorf("%+v", out)
	}
}

func question(t *testing.T, r *rig) {
	done := r.start(t.Context(), r.prompt(t, Question, 1))
	req := asked(t, r)
	if len(req.Questions) == 0 || len(req.Questions[0].Options) == 0 {
		t.Fatalf("%+v", req)
	}
	if err := r.conv.Answer(t.Context(), req.ID, rouse.Reply{Verb: rouse.ReplyAnswer, Answers: [][]string{{req.Questions[0].Options[0].Label}}}); err != nil {
		t.Fatal(err)
	}
	want(t, ended(t, done), rouse.TurnCompleted)
}

func cancelPermission(t *testing.T, r *rig) {
	done := r.start(t.Context(), r.prompt(t, Permission, 1))
	req := asked(t, r)
	if err := r.conv.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	want(t, ended(t, done), rouse.TurnCancelled)
	if err := r.conv.Answer(t.Context(), req.ID, rouse.Reply{Verb: rouse.ReplyOnce}); rouse.KindOf(err) != rouse.NotFound {
		t.Errorf("an answer after the end: %v", err)
	}
}

func lateAnswer(t *testing.T, r *rig) {
	if err := r.conv.Answer(t.Context(), "per_unknown", rouse.Reply{Verb: rouse.ReplyOnce}); rouse.KindOf(err) != rouse.NotFound {
		t.Errorf("got %v", err)
	}
}

func closeRunning(t *testing.T, r *rig) {
	done := r.start(t.Context(), r.prompt(t, Long, 1))
	r.sink.Await(t, "text of the long answer", isText)
	if err := r.conv.Close(); err != nil {
		t.Error(err)
	}
	n := len(r.sink.Updates())
	want(t, ended(t, done), rouse.TurnCancelled)
	if more := r.sink.Updates()[n:]; len(more) > 0 {
		t.Errorf("%d updates after Close, first %T", len(more), more[0].Body)
	}
	if out := r.conv.Prompt(t.Context(), r.prompt(t, Echo, 2)); out.State == rouse.TurnCompleted {
		t.Error("a closed conversation answers")
	}
}

func closeTwice(t *testing.T, r *rig) {
	for range 2 {
		if err := r.conv.Close(); err != nil {
			t.Error(err)
		}
	}
}

// slowSink: an engine waits for its sink and still ends when it is cancelled.
func slowSink(t *testing.T, r *rig) {
	release := r.sink.block()
	done := r.start(t.Context(), r.prompt(t, Echo, 1))
	select {
	case out := <-done:
		t.Errorf("the prompt ended while the sink was full: %+v", out)
	case <-time.After(50 * time.Millisecond):
	}
	release()
	want(t, ended(t, done), rouse.TurnCompleted)
	if r.sink.Text(1) == "" {
		t.Error("the text is lost")
	}
}
