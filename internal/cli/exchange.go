package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rouse"
	"rouse/internal/client"
)

// outcomeOf gives the end of a turn as its last message tells it.
func outcomeOf(e *client.Entry) (outcome string, code int, text string) {
	err := e.Info.Error
	switch {
	case err == nil:
		return string(rouse.TurnCompleted), exitDone, ""
	case err.Aborted() && err.Data.Reason != "":
		return string(rouse.TurnInterrupted), exitAborted, "the turn was interrupted: " + err.Data.Reason
	case err.Aborted():
		return string(rouse.TurnCancelled), exitAborted, "the turn was cancelled"
	case err.Data.Class == rouse.ClassQuota, err.Data.Class == rouse.ClassBilling:
		return string(rouse.TurnFailed), exitWall, "the turn failed: " + errorText(err)
	}
	return string(rouse.TurnFailed), exitFailed, "the turn failed: " + errorText(err)
}

// turn is one prompt from its sending to its end.
type turn struct {
	app      *app
	client   *client.Client
	session  *client.Session
	auto     bool
	json     bool
	thinking bool

	view     *view
	lines    *lines    // json
	terminal *terminal // not json
	family   map[string]bool
	rejected int
}

// result is the answer of the synchronous prompt.
type result struct {
	entry    *client.Entry
	accepted client.Accepted
	err      error
}

func (t *turn) run(ctx context.Context, p client.Prompt) error {
	t.family = map[string]bool{t.session.ID: true}
	var s sink
	if t.json {
		t.lines = newLines(t.app.out)
		s = t.lines
		t.lines.put("session", t.session.ID, nil)
	} else {
		t.terminal = &terminal{out: t.app.out, side: t.app.err, style: t.app.style, thinking: t.thinking, brief: true, now: time.Now}
		s = t.terminal
		t.app.notef("%s", t.app.style.dim("session "+t.session.ID+"  "+t.session.Directory))
	}
	t.view = newView(s, t.session.ID, p.MessageID)
	r := t.exchange(ctx, p)
	if r.err == nil {
		t.reconcile(ctx, p.MessageID, r.entry)
	}
	if ctx.Err() != nil {
		return t.abort(context.Cause(ctx))
	}
	if t.terminal != nil {
		t.terminal.endLine()
	}
	return t.end(r)
}

// exchange sends the prompt once the stream is open and follows the stream
// until the prompt is answered.
func (t *turn) exchange(ctx context.Context, p client.Prompt) result {
	following, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answer := make(chan result, 1)
	asked := false
	err := t.client.Follow(following, client.Stream{
		Directory: t.session.Directory,
		Open: func() {
			if asked {
				return
			}
			asked = true
			go func() { // ends with the answer or with following; waited for below
				entry, acc, err := t.ask(following, p)
				answer <- result{entry, acc, err}
				cancel(errAnswered)
			}()
		},
		Lost: func(error) { t.note("! the connection to the server is lost; trying again") },
	}, func(e client.Event) error { return t.event(following, e) })
	if !asked {
		return result{err: err}
	}
	cancel(err) // a stream that ended by itself ends the waiting, too
	r := <-answer
	if r.err != nil && err != nil && ctx.Err() == nil && !errors.Is(context.Cause(following), errAnswered) {
		r.err = err
	}
	return r
}

var errAnswered = errors.New("answered")

// ask sends the prompt and waits for its end. The key makes it safe to ask
// again when the connection breaks: it is the same turn.
func (t *turn) ask(ctx context.Context, p client.Prompt) (*client.Entry, client.Accepted, error) {
	deadline := time.Now().Add(30 * time.Second)
	for {
		entry, acc, err := t.client.Ask(ctx, t.session.ID, p)
		if !errors.Is(err, client.ErrUnreachable) || time.Now().After(deadline) {
			return entry, acc, err
		}
		select {
		case <-ctx.Done():
			return nil, acc, err
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// reconcile shows what the stream had not brought when the answer came.
func (t *turn) reconcile(ctx context.Context, prompt string, last *client.Entry) {
	page, err := t.client.Messages(ctx, t.session.ID, client.MessageQuery{Limit: 200})
	if err != nil && last != nil {
		page.Entries = []client.Entry{*last} // better than nothing, and it is the end
	}
	for _, e := range page.Entries {
		if e.Info.ParentID != prompt {
			continue
		}
		t.view.message(e.Info)
		for _, p := range e.Parts {
			t.view.part(p)
		}
	}
}

// event passes the session's news to the view and answers what is asked, by
// the session itself or by one that it started.
func (t *turn) event(ctx context.Context, e client.Event) error {
	switch e.Type {
	case "session.created":
		var s struct{ Info client.Session }
		if e.Into(&s) == nil && t.family[s.Info.ParentID] {
			t.family[s.Info.ID] = true
		}
		return nil
	case "permission.asked", "question.asked":
		var r client.Request
		if err := e.Into(&r); err != nil {
			return err
		}
		if t.family[r.SessionID] {
			return t.answer(ctx, r)
		}
		return nil
	case "session.error":
		return nil // told at the end, once, with the exit code
	}
	return t.view.event(e)
}

// answer decides a request: nobody is there.
func (t *turn) answer(ctx context.Context, r client.Request) error {
	what, err := "rejected", error(nil)
	switch {
	case r.Permission == "":
		t.rejected++
		err = t.client.RejectQuestion(ctx, r.ID)
	case t.auto:
		what = "allowed"
		err = t.client.ReplyPermission(ctx, r.ID, rouse.ReplyOnce, "")
	default:
		t.rejected++
		err = t.client.ReplyPermission(ctx, r.ID, rouse.ReplyReject, "")
	}
	if rouse.KindOf(err) == rouse.NotFound && err != nil {
		return nil // somebody else answered first
	}
	if t.json {
		t.lines.put("answered", r.SessionID, func(x *lineJSON) { x.Request = shapeRequest(r, what) })
	}
	note := fmt.Sprintf("! %s: %s", what, requestText(r))
	if what == "rejected" && r.Permission != "" {
		note += " (nobody is there to ask; --auto allows it)"
	}
	t.note(note)
	return err
}

// note says something to a person, between the lines of the answer.
func (t *turn) note(text string) {
	if t.terminal != nil {
		t.terminal.line("%s", t.app.style.yellow(text))
		return
	}
	t.app.notef("%s", text)
}

// end tells how the turn ended.
func (t *turn) end(r result) error {
	if r.err != nil {
		return r.err
	}
	outcome, code, text := outcomeOf(r.entry)
	if code == exitDone && t.rejected > 0 {
		code, text = exitNeedsPerson, fmt.Sprintf("the turn ended, but %d request(s) that would have needed a person were rejected", t.rejected)
	}
	if t.json {
		t.lines.put("done", t.session.ID, func(x *lineJSON) {
			x.Error = shapeError(r.entry.Info.Error)
			x.Done = &doneJSON{Outcome: outcome, ExitCode: code, Message: text, Turn: r.accepted.TurnID, Generation: r.accepted.Generation, Finish: r.entry.Info.Finish}
		})
	}
	if code == exitDone {
		return nil
	}
	return &exit{code, rouse.Errorf(rouse.Upstream, "run", "%s", text)}
}

// abort ends the turn on the server after Ctrl-C or the timeout. A prompt that
// still waits behind somebody else's turn is left where it is.
func (t *turn) abort(cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.app.ctx), 20*time.Second)
	defer cancel()
	alone := t.session.State == string(rouse.Idle) && t.session.Queued == 0
	done := doneJSON{Outcome: string(rouse.TurnCancelled), ExitCode: codeOf(cause)}
	switch {
	case !alone && !t.view.answered && t.session.State != "":
		done.Message = "the prompt still waits behind another turn of the session and stays there"
	default:
		if err := t.client.Abort(ctx, t.session.ID); err != nil {
			done.Message = "the turn could not be aborted: " + say(err)
		} else {
			done.Message = "the turn was aborted"
			t.reconcile(ctx, t.view.prompt, nil)
		}
	}
	if t.terminal != nil {
		t.terminal.endLine()
	}
	if t.json {
		t.lines.put("done", t.session.ID, func(x *lineJSON) { x.Done = &done })
	}
	if errors.Is(cause, errTimeout) {
		done.Message = say(cause) + "; " + done.Message
	}
	return &exit{codeOf(cause), rouse.Errorf(rouse.Unavailable, "run", "%s", done.Message)}
}
