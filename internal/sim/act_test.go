package sim

import (
	"context"
	"fmt"

	"rouse"
	"rouse/internal/recovery"
	"rouse/internal/store"
)

// act takes an action of an open incident of the session; what it promises is
// held to as a prompt is. The same twice at once is one deed.
func (s *sim) act(id string, arg int) error {
	ctx := context.Background()
	open, err := s.w.store.Incidents(ctx, store.IncidentFilter{Session: id, Status: rouse.IncidentOpen, Limit: 1})
	if err != nil || len(open) == 0 {
		return err
	}
	i := open[0]
	offered := i.Actions()
	action, model := offered[arg%len(offered)], rouse.ModelRef{}
	if action == rouse.ActionContinue {
		model = rouse.ModelRef{Provider: "drill", Model: modes[arg%len(modes)]}
	}
	done, err := recovery.Act(ctx, s.w.store, s.w.lanes, i.ID, action, model)
	if err != nil {
		return allowed(err)
	}
	if action == rouse.ActionDismiss {
		return nil
	}
	if s.promised[done.TurnID] = done.SessionID; done.SessionID != id {
		s.sessions = append(s.sessions, done.SessionID)
		return nil
	}
	before, err := s.w.store.Turn(ctx, done.TurnID)
	if err != nil || before.State.Settled() {
		return allowed(err)
	}
	again, err := recovery.Act(ctx, s.w.store, s.w.lanes, i.ID, action, model)
	if err != nil {
		return allowed(err)
	}
	if after, err := s.w.store.Turn(ctx, done.TurnID); again.TurnID != done.TurnID && err == nil && after.State != rouse.TurnCancelled {
		return fmt.Errorf("incident %s: %s twice made %s and %s, which is %s", i.ID, action, done.TurnID, again.TurnID, after.State)
	}
	s.promised[again.TurnID] = id
	return nil
}
