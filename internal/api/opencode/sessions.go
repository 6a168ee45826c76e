package opencode

import (
	"net/http"
	"strconv"
	"time"

	"rouse"
	"rouse/internal/api"
	"rouse/internal/session"
	"rouse/internal/store"
)

// wireProgress is what a running turn does now.
type wireProgress struct {
	Turn          string       `json:"turn"`
	Generation    uint64       `json:"generation"`
	StartedAt     int64        `json:"startedAt"`
	LastGenuineAt int64        `json:"lastGenuineAt,omitempty"`
	LastByteAt    int64        `json:"lastByteAt,omitempty"`
	OpenTool      *wireOpen    `json:"openTool,omitempty"`
	Retry         *wireRetry   `json:"retry,omitempty"`
	Counters      wireCounters `json:"counters"`
}

type wireOpen struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	Since int64  `json:"since"`
}

type wireRetry struct {
	Attempt int         `json:"attempt"`
	Next    int64       `json:"next"`
	Class   rouse.Class `json:"class"`
	Message string      `json:"message"`
}

type wireCounters struct {
	Events       int64 `json:"events"`
	Genuine      int64 `json:"genuine"`
	Messages     int64 `json:"messages"`
	Parts        int64 `json:"parts"`
	TextBytes    int64 `json:"textBytes"`
	OutputTokens int64 `json:"outputTokens"`
}

func renderProgress(v *rouse.Vitals) *wireProgress {
	p := &wireProgress{Turn: v.TurnID, Generation: v.Generation, StartedAt: millis(v.Started),
		LastGenuineAt: millis(v.LastGenuine), LastByteAt: millis(v.LastByte), Counters: wireCounters(v.Counters)}
	if t := v.OpenTool; t != nil {
		p.OpenTool = &wireOpen{ID: t.ID, Name: t.Name, Title: t.Title, Since: millis(t.Since)}
	}
	if r := v.Retry; r != nil {
		p.Retry = &wireRetry{Attempt: r.Attempt, Next: millis(r.Next), Class: r.Class, Message: r.Message}
	}
	return p
}

func (h *Handler) createSession(w http.ResponseWriter, r *http.Request) {
	raw, err := api.ReadBody(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	body, err := parseSession(raw)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	dir, err := h.directory(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	key, err := idempotencyKey(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if key != "" {
		key = "session:client:" + key
	}
	s, warning, err := h.deps.Sessions.Create(r.Context(), session.NewSession{
		Key: key, BodyHash: api.BodyHash(dir, string(raw)), Title: body.Title, Directory: dir, Agent: body.Agent, ParentID: body.ParentID,
		Model: body.Model, Permission: body.Permission, Metadata: body.Metadata,
	})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if warning != "" {
		w.Header().Set("X-Session-Directory-Warning", warning)
	}
	h.ok(w, renderSession(s))
}

func (h *Handler) listSessions(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	dir, err := named(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	f := store.SessionFilter{Directory: dir, Search: q.Get("search"), Roots: q.Get("roots") == "true", Cursor: q.Get("cursor")}
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
		f.Limit = n // another limit is ignored, as opencode 1.18.33 does
	}
	if ms, err := strconv.ParseInt(q.Get("start"), 10, 64); err == nil && ms > 0 {
		f.UpdatedSince = time.UnixMilli(ms)
	}
	page, err := h.deps.Store.Sessions(r.Context(), f)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	// A directory that is gone may still be asked for its sessions; one that
	// never was is a mistake.
	if page.Total == 0 && dir != "" {
		if err := existing(dir); err != nil {
			h.fail(w, r, err)
			return
		}
	}
	head := w.Header()
	head.Set("X-Total-Count", strconv.Itoa(page.Total))
	head.Set("X-Has-More", strconv.FormatBool(page.HasMore))
	if page.Next != "" {
		head.Set("X-Next-Cursor", page.Next)
	}
	h.ok(w, renderSessions(page.Sessions))
}

func (h *Handler) getSession(w http.ResponseWriter, r *http.Request) {
	s, err := h.session(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := renderSession(s)
	if v, ok := h.deps.Sessions.Vitals(s.ID); ok {
		out.Progress = renderProgress(&v)
	}
	h.ok(w, out)
}

func (h *Handler) patchSession(w http.ResponseWriter, r *http.Request) {
	id, f, err := h.form(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	var p session.Patch
	if f.has("title") {
		title := f.text("title")
		p.Title = &title
	}
	if in := f.inner("time"); in != nil {
		if _, named := in.raw["archived"]; named {
			var at time.Time
			if ms := in.millis("archived"); ms > 0 {
				at = time.UnixMilli(ms)
			}
			p.Archived = &at
		}
	}
	if f.has("permission") {
		rules := f.rules("permission")
		p.Permission = &rules
	}
	p.Metadata = f.object("metadata")
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	s, err := h.deps.Sessions.Update(r.Context(), id, p)
	h.answerSession(w, r, s, err)
}

func (h *Handler) answerSession(w http.ResponseWriter, r *http.Request, s *rouse.Session, err error) {
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, renderSession(s))
}

func (h *Handler) deleteSession(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err == nil {
		err = h.deps.Sessions.Delete(r.Context(), id)
	}
	h.done(w, r, err)
}

// sessionStatus lists the sessions that are not idle.
func (h *Handler) sessionStatus(w http.ResponseWriter, r *http.Request) {
	dir, err := named(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	page, err := h.deps.Store.Sessions(r.Context(), store.SessionFilter{Directory: dir, Busy: true})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := map[string]fact{}
	for i := range page.Sessions {
		s := &page.Sessions[i]
		if s.Running == "" {
			continue
		}
		out[s.ID] = busy()
		if v, ok := h.deps.Sessions.Vitals(s.ID); ok && v.Retry != nil {
			out[s.ID] = retrying(v.Retry)
		}
	}
	h.ok(w, out)
}

func (h *Handler) children(w http.ResponseWriter, r *http.Request) {
	s, err := h.session(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	list, err := h.deps.Store.Children(r.Context(), s.ID)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, renderSessions(list))
}

func (h *Handler) todos(w http.ResponseWriter, r *http.Request) {
	s, err := h.session(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	list, err := h.deps.Store.Todos(r.Context(), s.ID)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, notNil(list))
}

// abort ends the running turn; what is queued runs on. As on opencode 1.18.33
// an idle or unknown session is no error.
func (h *Handler) abort(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err == nil {
		err = h.deps.Sessions.Abort(r.Context(), id)
	}
	if err != nil && rouse.KindOf(err) == rouse.NotFound {
		err = nil
	}
	h.done(w, r, err)
}

func (h *Handler) pause(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err == nil {
		err = h.deps.Sessions.Pause(r.Context(), id)
	}
	h.done(w, r, err)
}

func (h *Handler) resume(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err == nil {
		err = h.deps.Sessions.Resume(r.Context(), id)
	}
	h.done(w, r, err)
}

func (h *Handler) fork(w http.ResponseWriter, r *http.Request) {
	id, f, err := h.form(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	at := f.messageID("messageID", false)
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	s, err := h.deps.Sessions.Fork(r.Context(), id, at)
	h.answerSession(w, r, s, err)
}

func (h *Handler) revert(w http.ResponseWriter, r *http.Request) {
	id, f, err := h.form(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	at, part := f.messageID("messageID", true), f.text("partID")
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	s, err := h.deps.Sessions.Revert(r.Context(), id, at, part)
	if err != nil {
		h.failBusy(w, r, id, err)
		return
	}
	h.ok(w, renderSession(s))
}

func (h *Handler) unrevert(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	s, err := h.deps.Sessions.Unrevert(r.Context(), id)
	if err != nil {
		h.failBusy(w, r, id, err)
		return
	}
	h.ok(w, renderSession(s))
}

// failBusy answers a conflict in the shape that opencode 1.18.33 gives for a
// busy session, beside our own.
func (h *Handler) failBusy(w http.ResponseWriter, r *http.Request, id string, err error) {
	status, body := api.ProblemOf(h.deps.Log, r, err)
	if status == http.StatusConflict {
		body.Name, body.Tag = "SessionBusyError", "SessionBusyError"
		body.SessionID, body.Message = id, body.Data.Message
	}
	api.WriteJSON(w, status, body)
}

// share is not offered: a session leaves this machine by no way of ours.
func (h *Handler) share(w http.ResponseWriter, r *http.Request) {
	h.fail(w, r, rouse.Errorf(rouse.Unsupported, "opencode: share", "sharing is not offered: sessions stay on this server"))
}

// unshare has nothing to undo and answers the session, as opencode 1.18.33.
func (h *Handler) unshare(w http.ResponseWriter, r *http.Request) {
	s, err := h.session(r)
	h.answerSession(w, r, s, err)
}

// diff is empty: Rouse keeps no snapshots of the directory.
func (h *Handler) diff(w http.ResponseWriter, r *http.Request) {
	if _, err := h.session(r); err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, []any{})
}
