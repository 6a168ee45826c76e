package drill

import (
	"context"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// What an agent program reports beside its protocol: findings of its standard
// error, the exit of its process, attempts of its own, and withdrawn requests,
// in time and too late.

// afterwards reports b, about this prompt, once it has been over for d.
func (r *run) afterwards(d time.Duration, b engine.Body) {
	gen, sink := r.p.Generation, r.c.sink
	r.c.late.Go(func() {
		time.Sleep(d)
		sink.Update(context.Background(), engine.Update{Generation: gen, At: time.Now(), Body: b})
	})
}

// finding is a terminal diagnostic.
func (r *run) finding() engine.Diagnostic {
	return engine.Diagnostic{Failure: *r.quota().Failure, Terminal: true}
}

var bareError = engine.Outcome{State: rouse.TurnFailed, Finish: "error", Evidence: "drill: bare error"}

// bare ends without a class; the richer word comes after it has returned.
func (r *run) bare() engine.Outcome {
	r.afterwards(100*time.Millisecond, r.finding())
	return bareError
}

// lateWord is bare with a word that comes when the turn is settled.
func (r *run) lateWord() engine.Outcome {
	r.afterwards(700*time.Millisecond, r.finding())
	return bareError
}

func (r *run) diagnostic() engine.Outcome {
	r.begin()
	r.send(false, r.finding())
	return r.until(true, true, 0)
}

// twofold says its end three times; only the first can count.
func (r *run) twofold() engine.Outcome {
	r.begin()
	r.send(false, r.finding())
	r.send(false, r.finding())
	return r.quota()
}

// ignored reports what proved nothing: single lines and many at once.
func (r *run) ignored() engine.Outcome {
	r.step()
	r.send(false, engine.Diagnostic{Reason: "other_session"})
	r.send(true, engine.Text{Text: "still "})
	r.send(false, engine.Diagnostic{Reason: "other_message", Count: 300})
	r.send(false, engine.Diagnostic{Failure: *r.quota().Failure}) // a finding that ends nothing
	r.send(true, engine.Text{Text: "here"})
	r.done("stop")
	return completed()
}

// lateExit answers well; what is said of its process concerns nobody any more.
func (r *run) lateExit() engine.Outcome {
	r.afterwards(300*time.Millisecond, engine.Exit{Reason: "exit status 1"})
	return r.say(r.text())
}

// retries shows three attempts; the last begins without being announced.
func (r *run) retries() engine.Outcome {
	r.step()
	for attempt := 1; attempt <= 3; attempt++ {
		r.send(false, engine.Retry{Attempt: attempt, Next: time.Now().Add(time.Second), Class: rouse.ClassCapacity, Message: "overloaded"})
		if r.pause(time.Second) {
			return cancelled()
		}
		if attempt < 3 {
			r.send(false, engine.Resumed{})
		}
	}
	return r.say("whole answer")
}

// withdrawn asks and does not wait for the answer: it goes on by itself.
func (r *run) withdrawn() engine.Outcome {
	r.step()
	id := rouse.NewID(rouse.PermissionPrefix, time.Now())
	r.send(true, engine.PermissionAsked{Request: rouse.Request{ID: id, Permission: "bash", Patterns: []string{"echo drill"}}})
	if r.pause(2 * time.Second) {
		return cancelled()
	}
	r.send(false, engine.RequestWithdrawn{RequestID: id})
	r.send(true, engine.Text{Text: "never mind"})
	r.done("stop")
	return completed()
}
