package drill

import (
	"errors"
	"fmt"
	"time"

	"rouse/internal/client"
)

// abort aborts and checks that it took no longer than it may, unscaled.
func (p *play) abort(session string) error {
	start := time.Now()
	if err := p.stage.Client().Abort(p.ctx, session); err != nil {
		return err
	}
	in := "yes"
	if took := time.Since(start); took > 15*time.Second {
		in = "no, " + took.Round(time.Millisecond).String()
	}
	p.expect("abort answers within 15 s", "yes", in, 0)
	return nil
}

// cut begins a prompt in a mode, aborts it once it works, and checks the end.
func (p *play) cut(mode string) (session string, err error) {
	s, acc, err := p.begin(mode)
	if err != nil {
		return "", err
	}
	if _, err := p.turn(s, acc.TurnID, "rouse.turn.running"); err != nil {
		return "", err
	}
	if err := p.abort(s); err != nil {
		return "", err
	}
	return s, p.ends("the turn", s, acc.TurnID, "cancelled")
}

func (p *play) deaf() error {
	s, err := p.cut("deaf")
	if err != nil {
		return err
	}
	if n, seq := p.count(s, isType("rouse.cancel.stage")); n < 2 {
		p.expect("rungs of the ladder", "at least 2", fmt.Sprint(n), seq)
	} else {
		p.expect("rungs of the ladder", "at least 2", "at least 2", seq)
	}
	return p.nextRuns(s)
}

func (p *play) stubborn() error {
	s, err := p.cut("stubborn")
	if err != nil {
		return err
	}
	return p.nextRuns(s)
}

func (p *play) lateAnswer() error {
	s, err := p.cut("late")
	if err != nil {
		return err
	}
	return p.nextRuns(s)
}

func (p *play) lostCompletion() error {
	s, err := p.cut("never-answers")
	if err != nil {
		return err
	}
	return p.nextRuns(s)
}

func (p *play) hangRescue() error {
	s, acc, err := p.begin("hang")
	if err != nil {
		return err
	}
	waiting, err := p.prompt(s, "echo", "queued")
	if err != nil {
		return err
	}
	if err := p.verdict(s, "hung"); err != nil {
		return err
	}
	r, _, err := p.stage.Client().Rescue(p.ctx, s, client.RescueRequest{Model: "drill-engine/tool", Reason: "hung", Reassignment: "say hello"})
	if err != nil {
		return err
	}
	if err := p.ends("the hung turn", s, acc.TurnID, "cancelled"); err != nil {
		return err
	}
	if err := p.ends("what was queued", s, waiting.TurnID, "completed"); err != nil {
		return err
	}
	for r.Status == "running" {
		if r, _, err = p.stage.Client().RescueState(p.ctx, r.ID); err != nil {
			return err
		}
		if err := p.wait(time.Second); err != nil {
			return err
		}
	}
	p.expect("the rescue", "done", r.Status, 0)
	woken, err := p.turn(s, r.Turn, "rouse.turn.running")
	if err != nil {
		return err
	}
	after, err := p.turn(s, waiting.TurnID, "rouse.turn.running")
	if err != nil {
		return err
	}
	order := "rescue first"
	if after.Seq < woken.Seq {
		order = "queue first"
	}
	p.expect("order", "rescue first", order, woken.Seq)
	return nil
}

func (p *play) stubbornChild() error {
	s, err := p.session()
	if err != nil {
		return err
	}
	acc, err := p.prompt(s, "drill/slowtool", `[[drill cmd="trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 300' &) ; sleep 300"]] x`)
	if err != nil {
		return err
	}
	if _, err := p.turn(s, acc.TurnID, "rouse.turn.running"); err != nil {
		return err
	}
	for Marked(s) == 0 {
		if err := p.wait(time.Second); err != nil {
			return err
		}
	}
	if err := p.abort(s); err != nil {
		return err
	}
	if err := p.ends("the turn", s, acc.TurnID, "cancelled"); err != nil {
		return err
	}
	for start := time.Now(); Marked(s) > 0 && time.Since(start) < 5*time.Second; {
		if err := p.wait(time.Second); err != nil {
			return err
		}
	}
	p.expect("processes left", "0", fmt.Sprint(Marked(s)), 0)
	return nil
}

func (p *play) restartInTool() error {
	s, err := p.session()
	if err != nil {
		return err
	}
	acc, err := p.prompt(s, "drill/slowtool", `[[drill cmd="sleep 300"]] x`)
	if err != nil {
		return err
	}
	queued, err := p.prompt(s, "drill/echo", "after the restart")
	if err != nil {
		return err
	}
	for Marked(s) == 0 {
		if err := p.wait(time.Second); err != nil {
			return err
		}
	}
	if err := p.stage.Restart(p.ctx); err != nil {
		return err
	}
	if err := p.ends("what ran", s, acc.TurnID, "interrupted"); err != nil {
		return err
	}
	if err := p.ends("what waited", s, queued.TurnID, "completed"); err != nil {
		return err
	}
	page, err := p.stage.Client().Messages(p.ctx, s, client.MessageQuery{})
	if err != nil {
		return err
	}
	open := 0
	for _, e := range page.Entries {
		for _, part := range e.Parts {
			if part.State != nil && (part.State.Status == "running" || part.State.Status == "pending") {
				open++
			}
		}
	}
	p.expect("open tool calls", "0", fmt.Sprint(open), 0)
	p.expect("processes left", "0", fmt.Sprint(Marked(s)), 0)
	return nil
}

func (p *play) busyQueueAbort() error {
	s, acc, err := p.begin("hang")
	if err != nil {
		return err
	}
	var queued []client.Accepted
	for i := range 3 {
		q, err := p.prompt(s, "echo", fmt.Sprint(i))
		if err != nil {
			return err
		}
		queued = append(queued, q)
	}
	if _, err := p.turn(s, acc.TurnID, "rouse.turn.running"); err != nil {
		return err
	}
	if err := p.abort(s); err != nil {
		return err
	}
	last, order := int64(0), "in order"
	for i, q := range queued {
		if err := p.ends(fmt.Sprintf("queued prompt %d", i+1), s, q.TurnID, "completed"); err != nil {
			return err
		}
		e, err := p.turn(s, q.TurnID, "rouse.turn.running")
		if err != nil {
			return err
		}
		if e.Seq < last {
			order = "out of order"
		}
		last = e.Seq
	}
	p.expect("the queue", "in order", order, last)
	return nil
}

func (p *play) pausedAtPrompt() error {
	s, err := p.session()
	if err != nil {
		return err
	}
	if err := p.stage.Client().Pause(p.ctx, s); err != nil {
		return err
	}
	_, err = p.prompt(s, "echo", "no")
	r, refused := client.RefusalOf(err)
	if !refused {
		return errors.Join(err, errors.New("a prompt to a paused session was not refused"))
	}
	p.expect("status", "409", fmt.Sprint(r.Status), 0)
	page, err := p.stage.Client().Messages(p.ctx, s, client.MessageQuery{})
	if err != nil {
		return err
	}
	p.expect("messages stored", "0", fmt.Sprint(len(page.Entries)), 0)
	if err := p.stage.Client().Resume(p.ctx, s); err != nil {
		return err
	}
	return p.nextRuns(s)
}

func (p *play) waitingForPerson() error {
	s, acc, err := p.begin("permission")
	if err != nil {
		return err
	}
	if err := p.verdict(s, "waiting_permission"); err != nil {
		return err
	}
	if err := p.wait(12 * time.Minute); err != nil {
		return err
	}
	p.never("notices while a person is waited for", s, isType("rouse.notice.created"))
	p.never("judged hung", s, isVerdict("hung"))
	open, err := p.stage.Client().Permissions(p.ctx)
	if err != nil {
		return err
	}
	for _, r := range open {
		if r.SessionID == s {
			if err := p.stage.Client().ReplyPermission(p.ctx, r.ID, "once", ""); err != nil {
				return err
			}
		}
	}
	return p.ends("answered", s, acc.TurnID, "completed")
}

func (p *play) knownRetry() error {
	s, acc, err := p.begin("longretry")
	if err != nil {
		return err
	}
	if err := p.verdict(s, "retrying"); err != nil {
		return err
	}
	if err := p.ends("after its wait", s, acc.TurnID, "completed"); err != nil {
		return err
	}
	p.never("notices while the retry is known", s, isType("rouse.notice.created"))
	return nil
}

func (p *play) fifty() error {
	hung := map[string]string{}
	fine := map[string]string{}
	for i := range 50 {
		mode, kept := "quiettool", fine
		if i%10 == 0 {
			mode, kept = "hang", hung
		}
		s, acc, err := p.begin(mode)
		if err != nil {
			return err
		}
		kept[s] = acc.TurnID
	}
	found := 0
	for s := range hung {
		if _, err := p.until(s, isVerdict("hung")); err != nil {
			return err
		}
		found++
	}
	p.expect("hung sessions found", "5", fmt.Sprint(found), p.last())
	wrong := 0
	for s, turn := range fine {
		if _, err := p.turn(s, turn, "rouse.turn.settled"); err != nil {
			return err
		}
		if n, _ := p.count(s, isVerdict("hung")); n > 0 {
			wrong++
		}
	}
	p.expect("others called hung", "0", fmt.Sprint(wrong), 0)
	for s := range hung {
		if err := p.stage.Client().Abort(p.ctx, s); err != nil {
			return err
		}
	}
	return nil
}
