package sim

import (
	"context"
	"fmt"
	"log/slog"
	"testing/synctest"
	"time"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/recovery"
	"rouse/internal/session"
	"rouse/internal/watch"
)

// step does one thing. Refusals are the product's right; errors that a caller
// must never see are returned.
func (s *sim) step(o op) error {
	ctx := context.Background()
	id := s.sessions[o.Session%len(s.sessions)]
	var err error
	switch o.Kind {
	case "prompt":
		return s.prompt(id, modes[o.Arg%len(modes)], o.Arg%7 == 0)
	case "noreply":
		_, err = s.w.lanes.Prompt(ctx, session.Prompt{SessionID: id, NoReply: true, Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "fyi"}}})
	case "again":
		return s.again()
	case "abort":
		err = s.w.lanes.Abort(ctx, id)
	case "answer":
		err = s.answer(o.Arg)
	case "pause":
		err = s.w.lanes.Pause(ctx, id)
	case "resume":
		err = s.w.lanes.Resume(ctx, id)
	case "rescue":
		_, err = s.w.medic.Rescue(ctx, recovery.Request{SessionID: id, By: recovery.User, Force: true,
			Model: rouse.ModelRef{Provider: "drill", Model: []string{"echo", "tool", "mute", "fail"}[o.Arg%4]}})
	case "act":
		return s.act(id, o.Arg)
	case "fork":
		_, err = s.w.lanes.Fork(ctx, id, "")
	case "delete":
		if o.Arg%4 == 0 {
			return s.remove(id, o.Arg%8 == 0)
		}
	case "wait":
		<-time.After(time.Duration(1+o.Arg*o.Arg/100) * time.Millisecond)
	case "long":
		<-time.After(time.Duration(o.Arg) * time.Second)
	case "silence":
		return s.silence(o.Arg)
	case "suspend":
		s.w.slept.Add(int64(time.Hour))
	case "full":
		s.w.full.Store(true)
	case "works":
		s.w.full.Store(false)
	case "lease":
		return s.loseLease()
	case "restart":
		return s.restart(o.Arg%2 == 0, o.Arg)
	case "crash":
		return s.restart(true, o.Arg)
	}
	return allowed(err)
}

// allowed passes the refusals that a caller may meet.
func allowed(err error) error {
	var spent *recovery.BudgetSpent
	if err == nil || asBudget(err, &spent) {
		return nil
	}
	switch rouse.KindOf(err) {
	case rouse.Conflict, rouse.NotFound, rouse.Unavailable, rouse.Mismatch:
		return nil
	}
	return err
}

func asBudget(err error, into **recovery.BudgetSpent) bool {
	e, ok := err.(*recovery.BudgetSpent)
	*into = e
	return ok
}

func (s *sim) prompt(id, mode string, unattended bool) error {
	s.keys++
	p := session.Prompt{SessionID: id, Key: fmt.Sprintf("k%d", s.keys), BodyHash: mode, Unattended: unattended,
		Model: rouse.ModelRef{Provider: "drill", Model: mode}, Parts: []rouse.Part{{Kind: rouse.TextPart, Text: fmt.Sprintf("prompt %d", s.keys)}}}
	return s.send(p)
}

func (s *sim) send(p session.Prompt) error {
	acc, err := s.w.lanes.Prompt(context.Background(), p)
	s.last, s.lastTurn = p, acc.TurnID
	if err == nil {
		s.promised[acc.TurnID] = p.SessionID
		delete(s.unsure, p.Key)
		return nil
	}
	if rouse.KindOf(err) == rouse.Unavailable {
		s.unsure[p.Key] = true
	}
	return allowed(err)
}

// again sends the last prompt once more under its key: nothing new may come
// of it if it was accepted.
func (s *sim) again() error {
	if s.last.Key == "" {
		return nil
	}
	was, p := s.lastTurn, s.last
	p.Parts = []rouse.Part{{Kind: rouse.TextPart, Text: p.Parts[0].Text}}
	if err := s.send(p); err != nil {
		return err
	}
	if was != "" && s.lastTurn != "" && s.lastTurn != was {
		return fmt.Errorf("one key made two turns: %s and %s", was, s.lastTurn)
	}
	return nil
}

func (s *sim) answer(arg int) error {
	for _, kind := range []string{rouse.ForPermission, rouse.ForQuestion} {
		open, err := s.w.store.Requests(context.Background(), "", kind)
		if err != nil {
			return err
		}
		if len(open) == 0 {
			continue
		}
		verb := []string{rouse.ReplyOnce, rouse.ReplyAlways, rouse.ReplyReject}[arg%3]
		return s.w.lanes.Answer(context.Background(), open[arg%len(open)].ID, kind, rouse.Reply{Verb: verb})
	}
	return nil
}

// remove deletes the session and may look, longer than an abort and an opening
// take and sooner than an idle conversation ends, whether its own has ended.
func (s *sim) remove(id string, look bool) error {
	err := s.w.lanes.Delete(context.Background(), id)
	if err != nil {
		return allowed(err)
	}
	s.gone[id] = true
	if look {
		<-time.After(30 * time.Second)
		if left := s.witness.left(func(session string) bool { return session == id }); left != "" {
			return fmt.Errorf("deleted: %s", left)
		}
	}
	for i := range s.sessions {
		if s.sessions[i] == id {
			s.sessions = append(s.sessions[:i:i], s.sessions[i+1:]...)
			break
		}
	}
	if len(s.sessions) < 2 {
		s.w.full.Store(false)
		return s.create()
	}
	return nil
}

// restart ends the life, in order or as a kill, and begins the next. Every
// other time it looks at once whether the next one goes on with what waits.
func (s *sim) restart(kill bool, arg int) error {
	dir, err := s.w.dir, error(nil)
	s.ends = append(s.ends, time.Now())
	if kill {
		dir, err = s.w.crash(s.t)
	} else {
		err = s.w.stop()
	}
	if err != nil {
		return err
	}
	w, err := start(dir, s.w.boot+1, s.witness)
	if err != nil {
		return err
	}
	s.w = w
	if arg%4 < 2 {
		return s.goesOn()
	}
	return nil
}

// goesOn looks, when everybody has done what can be done at this moment,
// whether a prompt waits for nothing.
func (s *sim) goesOn() error {
	synctest.Wait()
	for _, id := range s.sessions {
		row, err := s.w.store.Session(context.Background(), id)
		if err != nil {
			return err
		}
		if row.Queued > 0 && row.Running == "" && !row.Pause && row.Rescue == "" {
			return fmt.Errorf("session %s has %d queued prompts after the start and runs none", id, row.Queued)
		}
	}
	return nil
}

// silence lets eight and a half minutes pass and looks whether the watch did
// its part: whoever is silent for so long has a notice, whoever never began
// has failed. The disk may refuse meanwhile, also when the notice is due,
// which it is at a tick between five and six and a half minutes; then two
// minutes are left to try again.
func (s *sim) silence(arg int) error {
	s.w.full.Store(false)
	ctx, began := context.Background(), time.Now()
	refuses := []time.Duration{0, 0, time.Duration(arg) * 350 * time.Millisecond, 5*time.Minute - time.Second}[arg%4]
	works := 6*time.Minute + 31*time.Second
	if refuses > 0 {
		<-time.After(refuses)
		s.w.full.Store(true)
		<-time.After(works - refuses)
		s.w.full.Store(false)
	}
	<-time.After(8*time.Minute + 30*time.Second - time.Since(began))
	for _, id := range s.sessions {
		row, err := s.w.store.Session(ctx, id)
		if err != nil || row.Running == "" {
			continue
		}
		turn, err := s.w.store.Turn(ctx, row.Running)
		if err != nil || turn.State.Settled() || turn.Started.After(began.Add(30*time.Second)) {
			continue
		}
		switch turn.Model.Model {
		case "hang", "deaf", "stubborn", "late", "chatter", "freeze", "never-answers":
			n, err := s.w.store.Notice(ctx, id, turn.Generation)
			if err != nil || n == nil || !n.Visible {
				return fmt.Errorf("turn %s (%s) is silent for more than eight minutes: notice %+v, %v", turn.ID, turn.Model.Model, n, err)
			}
		case "mute", "dead":
			return fmt.Errorf("turn %s said nothing for more than eight minutes and still runs", turn.ID)
		}
	}
	return nil
}

// loseLease makes another server believe that this one is dead: it ends the
// running turns under this one's feet.
func (s *sim) loseLease() error {
	s.w.full.Store(false)
	s.ends = append(s.ends, time.Now())
	other := session.New(session.Deps{Store: s.w.store, Feed: feed.New(16, 0, 0), Models: models{}, Agents: agents{}, Boot: "boo_other", Judge: watch.Settled,
		Live: func(string) bool { return false }, Log: slog.New(slog.DiscardHandler),
		Engine: func(string) (engine.Engine, error) { return drill.Engine{}, nil }})
	_, err := other.Recover(context.Background())
	return err
}
