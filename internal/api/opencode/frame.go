package opencode

import (
	"context"
	"encoding/json"
	"strconv"

	"rouse"
	"rouse/internal/api"
)

// frame is one event of OpenCode's wire.
type frame struct {
	kind       string
	properties any
}

type fact = map[string]any

// statusOf is the session.status of an event, as opencode 1.18.33 has it.
func busy() fact { return fact{"type": "busy"} }

func retrying(f *rouse.RetryFact) fact {
	return fact{"type": "retry", "attempt": f.Attempt, "message": f.Message, "next": f.Next.UnixMilli(), "class": f.Class}
}

// frames renders a log event; nil means that this wire does not know it.
// Status and requests come from the event's own facts, bodies from the row:
// the one committed with the event, or the newest one, and then an event
// whose row has moved on is left out, because a later event renders it.
func (h *Handler) frames(ctx context.Context, e *rouse.Event) ([]frame, error) {
	status := func(s fact) frame {
		return frame{"session.status", fact{"sessionID": e.SessionID, "status": s}}
	}
	switch e.Type {
	case rouse.SessionCreated, rouse.SessionUpdated:
		s, err := h.sessionOf(ctx, e)
		if s == nil || err != nil {
			return nil, err
		}
		return []frame{{string(e.Type), fact{"sessionID": s.ID, "info": renderSession(s)}}}, nil
	case rouse.MessageUpdated:
		m, err := h.messageOf(ctx, e)
		if m == nil || err != nil {
			return nil, err
		}
		return []frame{{"message.updated", fact{"sessionID": e.SessionID, "info": renderMessage(m)}}}, nil
	case rouse.SessionDeleted:
		var gone rouse.SessionGone
		if err := facts(e, &gone); err != nil {
			return nil, err
		}
		return []frame{{"session.deleted", fact{"sessionID": e.SessionID, "info": renderSession(&gone.Session)}}}, nil
	case rouse.MessageRemoved:
		return []frame{{"message.removed", fact{"sessionID": e.SessionID, "messageID": e.MessageID}}}, nil
	case rouse.PartRemoved:
		return []frame{{"message.part.removed", fact{"sessionID": e.SessionID, "messageID": e.MessageID, "partID": e.PartID}}}, nil
	case rouse.TurnRunningEvent:
		return []frame{status(busy())}, nil
	case rouse.TurnRetryEvent:
		var f rouse.RetryFact
		if err := facts(e, &f); err != nil {
			return nil, err
		}
		return []frame{status(retrying(&f))}, nil
	case rouse.TurnSettledEvent, rouse.SessionErrored:
		var f rouse.SettledFact
		if err := facts(e, &f); err != nil {
			return nil, err
		}
		var out []frame
		if f.Error != nil {
			out = append(out, frame{"session.error", fact{"sessionID": e.SessionID, "error": renderMessageError(f.Error)}})
		}
		if f.Idle && e.Type == rouse.TurnSettledEvent {
			out = append(out, status(fact{"type": "idle"}), frame{"session.idle", fact{"sessionID": e.SessionID}})
		}
		return out, nil
	case rouse.RequestAsked:
		var r rouse.Request
		if err := facts(e, &r); err != nil {
			return nil, err
		}
		return []frame{{r.Kind + ".asked", renderRequest(&r)}}, nil
	case rouse.RequestReplied:
		var f rouse.RepliedFact
		if err := facts(e, &f); err != nil {
			return nil, err
		}
		return []frame{repliedFrame(e.SessionID, &f)}, nil
	case rouse.TodoUpdated:
		var todos []rouse.Todo
		if err := facts(e, &todos); err != nil {
			return nil, err
		}
		return []frame{{"todo.updated", fact{"sessionID": e.SessionID, "todos": notNil(todos)}}}, nil
	case rouse.SessionCompacted:
		return []frame{{"session.compacted", fact{"sessionID": e.SessionID}}}, nil
	}
	return nil, nil
}

func repliedFrame(sessionID string, f *rouse.RepliedFact) frame {
	p := fact{"sessionID": sessionID, "requestID": f.RequestID}
	if f.Kind == rouse.ForPermission {
		p["reply"] = f.Reply.Verb
		if f.Reply.Verb == rouse.ReplyCancelled {
			p["reply"] = rouse.ReplyReject // this wire knows once, always and reject
		}
		return frame{"permission.replied", p}
	}
	if f.Reply.Verb != rouse.ReplyAnswer {
		return frame{"question.rejected", p}
	}
	p["answers"] = notNil(f.Reply.Answers)
	return frame{"question.replied", p}
}

func facts(e *rouse.Event, into any) error {
	if err := json.Unmarshal(e.Data, into); err != nil {
		return &rouse.Error{Kind: rouse.Internal, Op: "opencode: read event " + strconv.FormatInt(e.Seq, 10), Err: err}
	}
	return nil
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// gone turns "there is no such row any more" into "nothing to render".
func gone[T any](row *T, err error) (*T, error) {
	if rouse.KindOf(err) == rouse.NotFound && err != nil {
		return nil, nil
	}
	if err != nil {
		return nil, rouse.Wrap("opencode: render event", err)
	}
	return row, nil
}

func (h *Handler) sessionOf(ctx context.Context, e *rouse.Event) (*rouse.Session, error) {
	if s, ok := e.Body.(*rouse.Session); ok {
		return s, nil
	}
	s, err := gone(h.deps.Store.Session(ctx, e.SessionID))
	if s == nil || err != nil || s.Row > e.Row {
		return nil, err
	}
	return s, nil
}

func (h *Handler) messageOf(ctx context.Context, e *rouse.Event) (*rouse.Message, error) {
	if m, ok := e.Body.(*rouse.Message); ok {
		return m, nil
	}
	m, err := gone(h.deps.Store.MessageRow(ctx, e.MessageID))
	if m == nil || err != nil || m.Row > e.Row {
		return nil, err
	}
	return m, nil
}

func (h *Handler) partOf(ctx context.Context, e *rouse.Event) (*rouse.Part, error) {
	if p, ok := e.Body.(*rouse.Part); ok {
		return p, nil
	}
	p, err := gone(h.deps.Store.Part(ctx, e.PartID))
	if p == nil || err != nil || p.Row > e.Row {
		return nil, err
	}
	return p, nil
}

// appendFrame appends one SSE frame. seq > 0 gives it an id line.
func appendFrame(b []byte, seq int64, wrap []byte, id string, f frame) ([]byte, error) {
	properties, err := api.Marshal(f.properties)
	if err != nil {
		return b, err
	}
	if seq > 0 {
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, seq, 10)
		b = append(b, '\n')
	}
	b = append(b, "data: "...)
	b = append(b, wrap...)
	b = append(b, `{"id":"`...)
	b = append(b, id...)
	b = append(b, `","type":"`...)
	b = append(b, f.kind...)
	b = append(b, `","properties":`...)
	b = append(b, properties...)
	b = append(b, '}')
	if len(wrap) > 0 {
		b = append(b, '}')
	}
	return append(b, "\n\n"...), nil
}
