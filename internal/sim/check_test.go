package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"rouse"
	"rouse/internal/store"
)

// tally is what the log says of one turn.
type tally struct {
	queued, dispatched, settled int
	notices                     int       // first ones
	shown                       bool      // a notice is to be seen
	waiting                     bool      // on a person
	aborted                     bool      // a cancel was stored
	began, ended                time.Time // dispatched, settled
}

// patience is how long the watch is patient at least.
const patience = 5*time.Minute - time.Second

// check holds the log and the rows against what was promised.
func (s *sim) check() string {
	ctx := context.Background()
	turns := map[string]*tally{}
	last := int64(0)
	active := map[string]string{} // session -> dispatched, unsettled turn
	held := map[string]string{}   // session -> rescue that holds its queue
	notices := map[string]int{}   // turn -> notices made
	ends, told := map[string]rouse.TurnState{}, map[string]rouse.VerdictCode{}
	for after := int64(0); ; {
		events, cursor, err := s.w.store.Events(ctx, after, store.EventFilter{}, 2000)
		if err != nil {
			return err.Error()
		}
		for i := range events {
			e := &events[i]
			if e.Seq != last+1 {
				return fmt.Sprintf("gap in the log: %d follows %d", e.Seq, last)
			}
			last = e.Seq
			if p := s.follow(e, turns, active); p != "" {
				return p
			}
			if p := followWatch(e, active, notices); p != "" {
				return p
			}
			if p := s.followRescue(ctx, e, held); p != "" {
				return p
			}
			if p := followVerdict(e, ends, told); p != "" {
				return p
			}
		}
		if cursor == after {
			break
		}
		after = cursor
	}
	if left := s.witness.left(func(session string) bool { return s.gone[session] }); left != "" {
		return "deleted: " + left
	}
	if p := s.checkVerdicts(ends, told); p != "" {
		return p
	}
	for id, t := range turns {
		if t.dispatched > 1 || t.settled > 1 || t.dispatched < t.settled {
			return fmt.Sprintf("turn %s: queued %d, dispatched %d, settled %d times", id, t.queued, t.dispatched, t.settled)
		}
	}
	for id, sessionID := range s.promised {
		if s.gone[sessionID] {
			continue
		}
		if p := s.checkTurn(ctx, id, sessionID, turns[id]); p != "" {
			return p
		}
	}
	for _, id := range s.sessions {
		if p := s.checkSession(ctx, id, turns); p != "" {
			return p
		}
	}
	return ""
}

// follow replays one event: a session runs one turn at a time.
func (s *sim) follow(e *rouse.Event, turns map[string]*tally, active map[string]string) string {
	t := turns[e.TurnID]
	if t == nil {
		t = &tally{}
		turns[e.TurnID] = t
	}
	switch e.Type {
	case rouse.TurnQueuedEvent:
		t.queued++
	case rouse.TurnRunningEvent:
		if e.MessageID == "" { // goes on after a retry's wait
			break
		}
		t.dispatched++
		t.began = e.At
		if other := active[e.SessionID]; other != "" {
			return fmt.Sprintf("turn %s was dispatched while %s ran", e.TurnID, other)
		}
		active[e.SessionID] = e.TurnID
	case rouse.TurnWaitingEvent:
		t.waiting = true
	case rouse.RequestReplied:
		t.waiting = false // of several, some may still be open: then nothing is checked
	case rouse.VerdictChanged:
		var v rouse.Verdict
		if err := json.Unmarshal(e.Data, &v); err != nil {
			return err.Error()
		}
		if v.Code.Over() == (active[e.SessionID] != "") {
			return fmt.Sprintf("verdict %s about turn %s while %q ran", v.Code, e.TurnID, active[e.SessionID])
		}
	case rouse.NoticeCreated, rouse.NoticeUpdated, rouse.NoticeHidden:
		return followNotice(e, t, active[e.SessionID])
	case rouse.CancelStage:
		t.aborted = true
	case rouse.TurnSettledEvent:
		t.settled++
		t.ended = e.At
		if p := s.followEnd(e, t); p != "" {
			return p
		}
		if active[e.SessionID] != e.TurnID {
			return fmt.Sprintf("turn %s was settled, %q ran", e.TurnID, active[e.SessionID])
		}
		delete(active, e.SessionID)
	case rouse.SessionDeleted:
		delete(active, e.SessionID)
	}
	return ""
}

// followNotice checks that a notice is made once, about the turn that runs,
// after five minutes and not while a person is waited for.
func followNotice(e *rouse.Event, t *tally, active string) string {
	about := fmt.Sprintf("%s of turn %s at %s", e.Type, e.TurnID, e.At.Format(time.TimeOnly))
	if active != e.TurnID {
		return fmt.Sprintf("%s while %q ran", about, active)
	}
	if e.Type == rouse.NoticeHidden {
		if !t.shown {
			return about + ": it was not shown"
		}
		t.shown = false
		return ""
	}
	if t.shown = true; e.Type == rouse.NoticeCreated {
		t.notices++
	}
	switch {
	case t.notices != 1:
		return fmt.Sprintf("%s: made %d times", about, t.notices)
	case t.waiting:
		return about + " while a person is waited for"
	case e.At.Sub(t.began) < patience:
		return fmt.Sprintf("%s, %s after its dispatch", about, e.At.Sub(t.began))
	}
	return ""
}

// followEnd checks that an end takes the notice with it, that nobody is failed
// by the watch before its time, and that the end is the turn's own.
func (s *sim) followEnd(e *rouse.Event, t *tally) string {
	var f rouse.SettledFact
	if err := json.Unmarshal(e.Data, &f); err != nil {
		return err.Error()
	}
	if t.shown {
		return fmt.Sprintf("turn %s was settled and its notice is still shown", e.TurnID)
	}
	if f.Failure != nil && f.Failure.Code == rouse.CodeNever && e.At.Sub(t.began) < patience {
		return fmt.Sprintf("turn %s was failed by the watch %s after its dispatch", e.TurnID, e.At.Sub(t.began))
	}
	return s.checkEnd(e, &f, t)
}

// followWatch checks that there is one notice of a generation at most, and only
// while its turn runs.
func followWatch(e *rouse.Event, active map[string]string, notices map[string]int) string {
	if e.Type != rouse.NoticeCreated && e.Type != rouse.NoticeUpdated {
		return ""
	}
	var n rouse.Notice
	if err := json.Unmarshal(e.Data, &n); err != nil {
		return err.Error()
	}
	if e.Type == rouse.NoticeCreated {
		notices[n.TurnID]++
	}
	if notices[n.TurnID] != 1 {
		return fmt.Sprintf("turn %s has %d notices", n.TurnID, notices[n.TurnID])
	}
	if active[e.SessionID] != n.TurnID {
		return fmt.Sprintf("a notice of turn %s, %q runs", n.TurnID, active[e.SessionID])
	}
	return ""
}

// followRescue checks that a rescue's own prompt is the only one dispatched
// while it holds the queue.
func (s *sim) followRescue(ctx context.Context, e *rouse.Event, held map[string]string) string {
	switch e.Type {
	case rouse.RescueStaged:
		var r rouse.Rescue
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return err.Error()
		}
		if held[e.SessionID] = r.ID; r.Status != rouse.RescueRunning {
			delete(held, e.SessionID)
		}
	case rouse.SessionDeleted:
		delete(held, e.SessionID)
	case rouse.TurnRunningEvent:
		if e.MessageID == "" || held[e.SessionID] == "" || s.gone[e.SessionID] {
			break
		}
		if t, err := s.w.store.Turn(ctx, e.TurnID); err != nil || t.Rescue != held[e.SessionID] {
			return fmt.Sprintf("turn %s was dispatched while rescue %s held the queue (%v)", e.TurnID, held[e.SessionID], err)
		}
	}
	return ""
}

func (s *sim) checkTurn(ctx context.Context, id, sessionID string, t *tally) string {
	turn, err := s.w.store.Turn(ctx, id)
	if err != nil {
		return fmt.Sprintf("an accepted prompt is lost: turn %s of %s: %v", id, sessionID, err)
	}
	if !turn.State.Settled() || t == nil || t.settled != 1 {
		return fmt.Sprintf("turn %s is %s, log %+v", id, turn.State, t)
	}
	return ""
}

// checkSession looks at what must hold of an idle session.
func (s *sim) checkSession(ctx context.Context, id string, turns map[string]*tally) string {
	row, err := s.w.store.Session(ctx, id)
	if err != nil {
		return fmt.Sprintf("session %s: %v", id, err)
	}
	if row.Running != "" || row.Queued != 0 || row.WaitingFor != "" || row.Rescue != "" {
		return fmt.Sprintf("session %s is not at rest: %+v", id, row)
	}
	if p := s.checkResume(row, turns); p != "" {
		return p
	}
	page, err := s.w.store.Messages(ctx, store.MessageQuery{SessionID: id})
	if err != nil {
		return err.Error()
	}
	if len(page.Entries) != row.Messages {
		return fmt.Sprintf("session %s counts %d messages and has %d", id, row.Messages, len(page.Entries))
	}
	answered, said := map[string]int{}, map[uint64]string{}
	for _, e := range page.Entries {
		if e.Message.Role == rouse.Assistant {
			answered[e.Message.TurnID]++
			said[e.Message.Generation] += textOf(e.Parts)
			if e.Message.Completed.IsZero() {
				return fmt.Sprintf("message %s is not completed", e.Message.ID)
			}
		}
		for _, p := range e.Parts {
			if strings.Contains(p.Text, stray) {
				return fmt.Sprintf("an update of another generation got into %s", e.Message.ID)
			}
			if p.Open {
				return fmt.Sprintf("part %s (%s) of %s is open", p.ID, p.Kind, e.Message.ID)
			}
		}
	}
	for generation, text := range said {
		if p := s.checkText(prompted{id, generation}, text); p != "" {
			return p
		}
	}
	for _, e := range page.Entries {
		if m := e.Message; m.Role == rouse.User && m.TurnID != "" && answered[m.TurnID] == 0 {
			return fmt.Sprintf("turn %s has no answer, not even an error", m.TurnID)
		}
	}
	for _, kind := range []string{rouse.ForPermission, rouse.ForQuestion} {
		if open, err := s.w.store.Requests(ctx, id, kind); err != nil || len(open) > 0 {
			return fmt.Sprintf("open requests in an idle session: %v %v", open, err)
		}
	}
	return ""
}

func textOf(parts []rouse.Part) (text string) {
	for _, p := range parts {
		if p.Kind == rouse.TextPart {
			text += p.Text
		}
	}
	return text
}
