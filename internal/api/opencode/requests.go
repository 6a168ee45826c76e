package opencode

import (
	"encoding/json"
	"net/http"

	"rouse"
	"rouse/internal/api"
)

type wireToolRef struct {
	MessageID string `json:"messageID"`
	CallID    string `json:"callID"`
}

type wirePermission struct {
	ID         string          `json:"id"`
	SessionID  string          `json:"sessionID"`
	Permission string          `json:"permission"`
	Patterns   []string        `json:"patterns"`
	Metadata   json.RawMessage `json:"metadata"`
	Always     []string        `json:"always"`
	Tool       *wireToolRef    `json:"tool,omitempty"`
}

type wireQuestion struct {
	ID        string           `json:"id"`
	SessionID string           `json:"sessionID"`
	Questions []rouse.Question `json:"questions"`
	Tool      *wireToolRef     `json:"tool,omitempty"`
}

// renderRequest gives an open permission or question, in the list and in the
// event alike.
func renderRequest(r *rouse.Request) any {
	var tool *wireToolRef
	if r.CallID != "" {
		tool = &wireToolRef{MessageID: r.MessageID, CallID: r.CallID}
	}
	if r.Kind == rouse.ForPermission {
		return wirePermission{ID: r.ID, SessionID: r.SessionID, Permission: r.Permission, Patterns: notNil(r.Patterns),
			Metadata: objectOr(r.Metadata), Always: notNil(r.Always), Tool: tool}
	}
	return wireQuestion{ID: r.ID, SessionID: r.SessionID, Questions: notNil(r.Questions), Tool: tool}
}

func (h *Handler) permissions(w http.ResponseWriter, r *http.Request) {
	h.openRequests(w, r, rouse.ForPermission)
}

func (h *Handler) questions(w http.ResponseWriter, r *http.Request) {
	h.openRequests(w, r, rouse.ForQuestion)
}

func (h *Handler) openRequests(w http.ResponseWriter, r *http.Request, kind string) {
	dir, err := named(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	list, err := h.deps.Store.Requests(r.Context(), "", kind)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := []any{}
	for i := range list {
		if dir != "" {
			s, err := gone(h.deps.Store.Session(r.Context(), list[i].SessionID))
			if err != nil {
				h.fail(w, r, err)
				return
			}
			if s == nil || s.Directory != dir {
				continue
			}
		}
		out = append(out, renderRequest(&list[i]))
	}
	h.ok(w, out)
}

func (h *Handler) permissionReply(w http.ResponseWriter, r *http.Request) {
	h.answerPermission(w, r, "", "reply")
}

// permissionLegacy is the older route, below the session.
func (h *Handler) permissionLegacy(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.answerPermission(w, r, id, "response")
}

func (h *Handler) answerPermission(w http.ResponseWriter, r *http.Request, sessionID, field string) {
	f, err := h.body(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	f.need(field)
	reply := rouse.Reply{Verb: f.text(field), Message: f.text("message")}
	switch reply.Verb {
	case rouse.ReplyOnce, rouse.ReplyAlways, rouse.ReplyReject:
	default:
		f.fault(field, "expected \"once\", \"always\" or \"reject\", got %q", rouse.Clip(reply.Verb, 40))
	}
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	h.answer(w, r, sessionID, rouse.ForPermission, reply)
}

func (h *Handler) questionReply(w http.ResponseWriter, r *http.Request) {
	f, err := h.body(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	f.need("answers")
	reply := rouse.Reply{Verb: rouse.ReplyAnswer}
	if f.has("answers") && json.Unmarshal(f.raw["answers"], &reply.Answers) != nil {
		f.expected("an array of arrays of strings", "answers", f.raw["answers"])
	}
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	h.answer(w, r, "", rouse.ForQuestion, reply)
}

func (h *Handler) questionReject(w http.ResponseWriter, r *http.Request) {
	h.answer(w, r, "", rouse.ForQuestion, rouse.Reply{Verb: rouse.ReplyReject})
}

// answer gives the reply to the session's lane. sessionID, when set, must be
// the request's.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, sessionID, kind string, reply rouse.Reply) {
	id := r.PathValue("request")
	err := h.belongs(r, id, sessionID)
	if err == nil {
		err = h.deps.Sessions.Answer(r.Context(), id, kind, reply)
	}
	if rouse.KindOf(err) == rouse.NotFound && err != nil {
		what, tag := "Permission", "PermissionNotFoundError"
		if kind == rouse.ForQuestion {
			what, tag = "Question", "QuestionNotFoundError"
		}
		text := what + " request not found: " + rouse.Clip(id, 80)
		api.WriteJSON(w, http.StatusNotFound, api.Problem{Name: tag, Tag: tag, RequestID: id, Message: text, Data: api.ProblemData{Message: text}})
		return
	}
	h.done(w, r, err)
}

func (h *Handler) belongs(r *http.Request, id, sessionID string) error {
	if sessionID == "" {
		return nil
	}
	req, err := h.deps.Store.Request(r.Context(), id)
	if err == nil && req.SessionID != sessionID {
		return rouse.Errorf(rouse.NotFound, "opencode: answer", "the request belongs to another session")
	}
	return err
}
