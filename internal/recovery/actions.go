package recovery

import (
	"context"
	"slices"
	"strings"

	"rouse"
	"rouse/internal/store"
)

// Prompts repeats a turn's prompt.
type Prompts interface {
	// Repeat accepts the turn's prompt once more in its session, once for its
	// key unless that turn was cancelled; model zero is the turn's own.
	Repeat(ctx context.Context, turnID, key string, model rouse.ModelRef) (newTurn string, err error)
	// Renew does it in a new session like the old one, once for its key.
	Renew(ctx context.Context, turnID, key string, model rouse.ModelRef) (sessionID, newTurn string, err error)
}

// Done is what came of an incident's action.
type Done struct {
	Incident  rouse.Incident
	SessionID string // where the prompt went; empty for dismiss
	TurnID    string
}

// Act takes an action of an incident. Conflict when it is not offered (any
// more), Invalid when a model is missing or named for nothing.
func Act(ctx context.Context, st *store.Store, prompts Prompts, incidentID, action string, model rouse.ModelRef) (Done, error) {
	const op = "recovery: act"
	i, err := st.Incident(ctx, incidentID)
	if err != nil {
		return Done{}, rouse.Wrap(op, err)
	}
	if !slices.Contains(i.Actions(), action) {
		return Done{}, notOffered(i, action)
	}
	if (action == rouse.ActionContinue) == model.IsZero() {
		return Done{}, rouse.FieldError(op, "model", "continue_with needs a model, and no other action takes one")
	}
	out := Done{Incident: *i, SessionID: i.SessionID}
	switch action {
	case rouse.ActionResume, rouse.ActionContinue:
		out.TurnID, err = prompts.Repeat(ctx, i.TurnID, "incident:"+i.ID+":"+action+":"+model.String(), model)
	case rouse.ActionFresh:
		if out.SessionID, out.TurnID, err = prompts.Renew(ctx, i.TurnID, "incident:"+i.ID+":"+action, model); err == nil {
			_, err = closeIncident(ctx, st, i, rouse.IncidentSuperseded) // the work goes on elsewhere, and may fail there
		}
	default:
		out.SessionID = ""
		var closed bool
		if closed, err = closeIncident(ctx, st, i, rouse.IncidentResolved); err == nil && !closed {
			if i, err = st.Incident(ctx, incidentID); err == nil { // closed meanwhile, by whatever
				err = notOffered(i, action)
			}
		}
	}
	if err != nil {
		return Done{}, rouse.Wrap(op, err)
	}
	after, err := st.Incident(ctx, incidentID)
	if err == nil {
		out.Incident = *after
	}
	return out, rouse.Wrap(op, err)
}

func notOffered(i *rouse.Incident, action string) error {
	offered := strings.Join(i.Actions(), ", ")
	if offered == "" {
		return rouse.Errorf(rouse.Conflict, "act", "action %q is not offered any more: the incident is %s", rouse.Clip(action, 40), i.Status)
	}
	return rouse.Errorf(rouse.Conflict, "act", "action %q is not offered for an incident of kind %s; offered: %s", rouse.Clip(action, 40), i.Kind, offered)
}

// closeIncident closes what somebody took note of; closed is false when it was
// not open any more.
func closeIncident(ctx context.Context, st *store.Store, i *rouse.Incident, status string) (closed bool, err error) {
	err = st.Write(ctx, store.Promise, func(tx *store.Tx) error {
		s, err := tx.Session(i.SessionID)
		if err != nil {
			return err
		}
		closed, err = tx.CloseIncident(s, i.ID, status)
		return err
	})
	return closed, err
}
