package api

import (
	"encoding/json"

	"rouse"
)

// ownEvents renders a log event; nil where this API has nothing to say.
func ownEvents(e *rouse.Event) []ownEvent {
	base := ownEvent{Seq: e.Seq, At: stamp(e.At), Session: e.SessionID, Directory: e.Directory, Turn: e.TurnID, Generation: e.Generation}
	state := base
	state.Type = "rouse.session.state"
	switch e.Type {
	case rouse.TurnQueuedEvent, rouse.TurnRunningEvent, rouse.TurnWaitingEvent, rouse.TurnAnswered:
		var f rouse.TurnFact
		if json.Unmarshal(e.Data, &f) != nil {
			return nil
		}
		base.Type, base.State, base.WaitingFor, base.Data = "rouse.turn."+string(f.State), string(f.State), f.WaitingFor, e.Data
		switch e.Type {
		case rouse.TurnQueuedEvent:
			return []ownEvent{base}
		case rouse.TurnWaitingEvent:
			state.State, state.WaitingFor = string(rouse.Waiting), f.WaitingFor
		default:
			state.State = string(rouse.Generating)
		}
		return []ownEvent{base, state}
	case rouse.TurnSettledEvent:
		return ownSettled(e, base, state)
	case rouse.SessionPaused, rouse.SessionResumed:
		f := rouse.SessionFact{State: rouse.Idle}
		if e.Type == rouse.SessionPaused {
			f.State, f.Pause = rouse.Paused, true
		}
		if len(e.Data) > 0 && json.Unmarshal(e.Data, &f) != nil { // older logs say nothing
			return nil
		}
		state.is(&f)
		return []ownEvent{state}
	case rouse.SessionCreated:
		state.State = string(rouse.Idle)
		return []ownEvent{state}
	case rouse.SessionDeleted:
		state.State = "deleted"
		return []ownEvent{state}
	case rouse.CancelStage:
		base.Type, base.Data = "rouse.cancel.stage", e.Data
		return []ownEvent{base}
	}
	return ownRow(e, base)
}

// is makes the frame one about a session's state.
func (e *ownEvent) is(f *rouse.SessionFact) {
	e.State, e.Paused, e.WaitingFor, e.Outcome = string(f.State), f.Pause, f.WaitingFor, f.Outcome
	if f.Incident != nil {
		row := incidentRow(f.Incident)
		e.Incident = &row
	}
}

func ownSettled(e *rouse.Event, base, state ownEvent) []ownEvent {
	var f rouse.SettledFact
	if json.Unmarshal(e.Data, &f) != nil {
		return nil
	}
	after := f.Session
	if after == nil {
		after = &rouse.SessionFact{State: rouse.Idle, Outcome: f.State}
	}
	f.Session = nil // told in a frame of its own, and links go nowhere else
	base.Type, base.State, base.Outcome = "rouse.turn.settled", string(f.State), f.State
	base, ok := base.with(f)
	switch {
	case !ok:
		return nil
	case !f.Idle:
		return []ownEvent{base}
	}
	state.is(after)
	return []ownEvent{base, state}
}

// with gives the frame with its data.
func (e ownEvent) with(data any) (ownEvent, bool) {
	raw, err := Marshal(data)
	e.Data = raw
	return e, err == nil
}

// ownRow renders an event that is about a row, as this API gives that row.
func ownRow(e *rouse.Event, base ownEvent) []ownEvent {
	base.Type = "rouse." + string(e.Type)
	read := func(into any) bool { return json.Unmarshal(e.Data, into) == nil }
	ok := true
	switch e.Type {
	case rouse.TurnRetryEvent:
		var r rouse.RetryFact
		if ok = read(&r); ok {
			base, ok = base.with(HealthRetry{r.Attempt, stamp(r.Next), r.Class, r.Message})
		}
	case rouse.RescueStaged:
		var r rouse.Rescue
		if ok = read(&r); ok {
			base, ok = base.with(renderRescue(&r))
		}
	case rouse.VerdictChanged:
		var v rouse.Verdict
		if ok = read(&v); ok {
			base.Verdict = string(v.Code)
			base, ok = base.with(verdictRow(&v))
		}
	case rouse.NoticeCreated, rouse.NoticeUpdated, rouse.NoticeHidden:
		var n rouse.Notice
		if ok = read(&n); ok {
			base, ok = base.with(HealthNotice{n.Generation, n.Code, some(n.Tool), stamp(n.At), n.Visible})
		}
	case rouse.IncidentOpened, rouse.IncidentClosed:
		var i rouse.Incident
		if ok = read(&i); ok {
			if e.Type == rouse.IncidentClosed {
				base.Type = "rouse.incident." + i.Status
			}
			base, ok = base.with(incidentRow(&i))
		}
	case rouse.WallOpened, rouse.WallHalfOpen, rouse.WallClosed:
		var w rouse.Wall
		if ok = read(&w); ok {
			row := wallRow(&w, e.At)
			row.Held = nil // who waits is not known here
			base, ok = base.with(row)
		}
	default:
		return nil
	}
	if !ok {
		return nil
	}
	return []ownEvent{base}
}
