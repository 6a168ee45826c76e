package opencode

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"rouse"
	"rouse/internal/api"
	"rouse/internal/store"
)

// wireCursor is a place in a transcript as clients carry it: base64url of this
// object (opencode 1.18.33).
type wireCursor struct {
	ID   string `json:"id"`
	Time int64  `json:"time"`
}

func encodeCursor(c store.MessageCursor) string {
	raw, err := json.Marshal(wireCursor(c))
	if err != nil {
		return "" // cannot happen: a string and a number
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func decodeCursor(field, v string) (*store.MessageCursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(v, "="))
	var c wireCursor
	if err != nil || json.Unmarshal(raw, &c) != nil || c.ID == "" || c.Time <= 0 {
		return nil, rouse.FieldError("opencode: messages", field, "%s: %q is no cursor of this server", field, rouse.Clip(v, 80))
	}
	at := store.MessageCursor(c)
	return &at, nil
}

// messageQuery reads limit, before and after.
func (h *Handler) messageQuery(ctx context.Context, sessionID string, q url.Values) (store.MessageQuery, error) {
	const op = "opencode: messages"
	out := store.MessageQuery{SessionID: sessionID}
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return out, rouse.FieldError(op, "limit", "limit: expected a number of messages, got %q", rouse.Clip(v, 40))
		}
		out.Limit = n
	}
	before, after := q.Get("before"), q.Get("after")
	var err error
	switch {
	case before != "" && after != "":
		return out, rouse.FieldError(op, "before", "before and after: use one of them")
	case (before != "" || after != "") && out.Limit == 0:
		return out, rouse.FieldError(op, "limit", "limit: is needed with before or after")
	case before != "":
		out.Before, err = decodeCursor("before", before)
	case strings.HasPrefix(after, rouse.MessagePrefix+"_"):
		var e *rouse.Entry
		if e, err = h.deps.Store.Message(ctx, sessionID, after); err == nil {
			at := store.CursorOf(&e.Message)
			out.After = &at
		}
	case after != "":
		out.After, err = decodeCursor("after", after)
	}
	return out, err
}

func (h *Handler) messages(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	q, err := h.messageQuery(r.Context(), id, r.URL.Query())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	page, err := h.deps.Store.Messages(r.Context(), q)
	if err == nil && len(page.Entries) == 0 {
		_, err = h.deps.Store.Session(r.Context(), id) // empty, or unknown
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if page.Next != nil {
		next, direction := encodeCursor(*page.Next), "before"
		if q.After != nil {
			direction = "after"
		}
		head := w.Header()
		head.Set("X-Next-Cursor", next)
		head.Set("Link", fmt.Sprintf(`<%s?limit=%d&%s=%s>; rel="next"`, self(r), q.Limit, direction, next))
		if head.Get("Access-Control-Expose-Headers") == "" {
			head.Set("Access-Control-Expose-Headers", "Link, X-Next-Cursor")
		}
	}
	out := make([]wireEntry, len(page.Entries))
	for i := range page.Entries {
		out[i] = h.entry(r.Context(), &page.Entries[i])
	}
	h.ok(w, out)
}

// self is the address under which the client asked.
func self(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: r.Host, Path: r.URL.Path}).String()
}

// entry renders a message; running parts hold the text so far.
func (h *Handler) entry(ctx context.Context, e *rouse.Entry) wireEntry {
	for i := range e.Parts {
		p := &e.Parts[i]
		if !growing(p) {
			continue
		}
		if text, ok := h.deps.Feed.LiveText(p.ID); ok {
			p.Text = string(text[:wholeRunes(text)])
		} else if ended, err := h.deps.Store.Part(ctx, p.ID); err == nil {
			*p = *ended // it ended after its row was read
		}
	}
	return renderEntry(e)
}

func (h *Handler) message(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	e, err := h.deps.Store.Message(r.Context(), id, r.PathValue("message"))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, h.entry(r.Context(), e))
}

// removeMessage answers true also when the message is gone already.
func (h *Handler) removeMessage(w http.ResponseWriter, r *http.Request) {
	s, err := h.session(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.removed(w, r, s.ID, h.deps.Sessions.RemoveMessage(r.Context(), s.ID, r.PathValue("message")))
}

func (h *Handler) removePart(w http.ResponseWriter, r *http.Request) {
	s, err := h.session(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.removed(w, r, s.ID, h.deps.Sessions.RemovePart(r.Context(), s.ID, r.PathValue("message"), r.PathValue("part")))
}

func (h *Handler) removed(w http.ResponseWriter, r *http.Request, id string, err error) {
	if err != nil && rouse.KindOf(err) != rouse.NotFound {
		h.failBusy(w, r, id, err)
		return
	}
	h.ok(w, true)
}

// editPart replaces a text part's words. Ids in the body must be the path's.
func (h *Handler) editPart(w http.ResponseWriter, r *http.Request) {
	s, err := h.session(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	f, err := h.body(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	for name, want := range map[string]string{"id": r.PathValue("part"), "messageID": r.PathValue("message"), "sessionID": s.ID} {
		if got := f.text(name); got != want {
			f.fault(name, "expected %q, the one in the path", rouse.Clip(want, 80))
		}
	}
	delete(f.raw, "id")
	p := f.part()
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	p.ID, p.MessageID, p.SessionID = r.PathValue("part"), r.PathValue("message"), s.ID
	edited, err := h.deps.Sessions.EditPart(r.Context(), p)
	if err != nil {
		h.failBusy(w, r, s.ID, err)
		return
	}
	api.WriteJSON(w, http.StatusOK, renderPart(edited))
}
