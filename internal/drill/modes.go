package drill

import (
	"encoding/json"
	"fmt"
	"time"

	"rouse"
	"rouse/internal/engine"
)

func (r *run) tool() engine.Outcome {
	input := json.RawMessage(`{"command":"echo drill"}`)
	r.step()
	r.send(true, engine.ToolStarted{CallID: "call_1", Name: "bash", State: rouse.ToolPending})
	r.send(true, engine.ToolStarted{CallID: "call_1", Name: "bash", Title: "echo drill", State: rouse.ToolRunning, Input: input})
	r.send(true, engine.ToolEnded{CallID: "call_1", Title: "echo drill", Output: "drill\n", Metadata: json.RawMessage(`{"exit":0}`)})
	r.done("tool-calls")
	return r.say("Tool done.")
}

func (r *run) plan() engine.Outcome {
	r.step()
	r.send(true, engine.Plan{Todos: []rouse.Todo{{Content: "first", Status: "in_progress", Priority: "high"}, {Content: "second", Status: "pending", Priority: "low"}}})
	r.send(true, engine.Text{Text: "Planned."})
	r.done("stop")
	return completed()
}

func (r *run) permission() engine.Outcome {
	r.step()
	r.send(true, engine.ToolStarted{CallID: "call_1", Name: "bash", State: rouse.ToolPending})
	reply, ok := r.ask(rouse.PermissionPrefix, func(id string) engine.Body {
		return engine.PermissionAsked{Request: rouse.Request{ID: id, CallID: "call_1", Permission: "bash", Patterns: []string{"echo drill"}, Always: []string{"echo *"}}}
	})
	if !ok {
		return cancelled()
	}
	r.send(true, engine.ToolEnded{CallID: "call_1", Output: reply.Verb})
	r.done("tool-calls")
	return r.say("answered: " + reply.Verb)
}

func (r *run) question() engine.Outcome {
	r.step()
	reply, ok := r.ask(rouse.QuestionPrefix, func(id string) engine.Body {
		return engine.QuestionAsked{Request: rouse.Request{ID: id, Questions: []rouse.Question{{Question: "Which one?", Header: "Pick",
			Options: []rouse.Option{{Label: "A", Description: "first"}, {Label: "B", Description: "second"}}}}}}
	})
	if !ok {
		return cancelled()
	}
	r.send(true, engine.Text{Text: fmt.Sprintf("answered: %s %v", reply.Verb, reply.Answers)})
	r.done("stop")
	return completed()
}

// ask opens a request and waits for its answer.
func (r *run) ask(prefix string, body func(id string) engine.Body) (rouse.Reply, bool) {
	id := rouse.NewID(prefix, time.Now())
	answer := make(chan rouse.Reply, 1)
	r.c.mu.Lock()
	r.c.waiting[id] = answer
	r.c.mu.Unlock()
	r.send(true, body(id))
	defer func() {
		r.c.mu.Lock()
		defer r.c.mu.Unlock()
		delete(r.c.waiting, id)
	}()
	select {
	case reply := <-answer:
		return reply, reply.Verb != rouse.ReplyCancelled
	case <-r.cancel:
	case <-r.stop:
	case <-r.ctx.Done():
	}
	return rouse.Reply{}, false
}

func (r *run) retry() engine.Outcome {
	r.step()
	r.send(true, engine.Reasoning{Text: "half a thought"})
	r.send(true, engine.Text{Text: "half an ans"})
	r.send(false, engine.Retry{Attempt: 1, Next: time.Now().Add(time.Second), Class: rouse.ClassNetwork, Message: "the stream broke", Broken: true})
	if r.pause(time.Second) {
		return cancelled()
	}
	r.send(false, engine.Resumed{})
	return r.say("whole answer")
}

func (r *run) lateAnswer() engine.Outcome {
	r.begin()
	select {
	case <-r.cancel:
	case <-r.ctx.Done():
		return cancelled()
	}
	select {
	case <-time.After(time.Second):
	case <-r.ctx.Done():
		return cancelled()
	}
	r.done("stop")
	return completed()
}

// neverAnswers says all it has to say, and its completion is lost.
func (r *run) neverAnswers() engine.Outcome {
	r.say(r.text())
	return r.until(false, true, 0)
}

func (r *run) quota() engine.Outcome {
	out := r.failed(rouse.ClassQuota, rouse.CodeQuota, "provider_http", "5-hour usage limit reached")
	out.Failure.LimitModel = r.p.Model.Model // the other modes go on
	out.Failure.LimitName, out.Failure.ResetAt = "5 hour", time.Now().Add(5*time.Hour).Truncate(time.Second)
	return out
}

func (r *run) exit() engine.Outcome {
	r.begin()
	r.send(true, engine.ToolStarted{CallID: "call_1", Name: "bash", State: rouse.ToolRunning, Input: json.RawMessage(`{}`)})
	r.send(false, engine.Exit{Reason: "exit status 1"})
	out := r.failed(rouse.ClassNone, rouse.CodeExited, "process", "the agent exited (status 1)")
	out.OpenTools = []string{"call_1"}
	return out
}

func (r *run) garbage() engine.Outcome {
	for _, b := range []engine.Body{engine.Noise{Kind: "unknown"}, engine.Usage{}, engine.History{}, engine.ToolEnded{CallID: "nobody"},
		engine.ToolProgress{CallID: "nobody"}, engine.RequestWithdrawn{RequestID: "per_nobody"}, engine.StepEnded{}, engine.Resumed{}} {
		r.send(false, b)
	}
	r.c.sink.Update(r.ctx, engine.Update{Generation: r.p.Generation + 7, At: time.Now(), Genuine: true, Body: engine.Text{Text: "from another turn"}})
	return r.say("still here")
}
