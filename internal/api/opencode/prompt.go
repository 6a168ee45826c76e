package opencode

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"time"

	"rouse"
	"rouse/internal/api"
	"rouse/internal/session"
	"rouse/internal/store"
)

const (
	// flushBound and flushHold are how long a synchronous answer waits for the
	// session's event readers: opencode 1.18.33's `run --attach` ends at the
	// answer and drops what it has not read by then.
	flushBound = 500 * time.Millisecond
	flushHold  = 20 * time.Millisecond

	maxKey = 255 // bytes of an Idempotency-Key
)

// intake is a prompt as a request brought it.
type intake struct {
	prompt session.Prompt
	body   promptBody
}

// readPrompt reads a prompt for the session; "" takes it from the body.
func (h *Handler) readPrompt(w http.ResponseWriter, r *http.Request, sessionID string) (intake, error) {
	raw, err := api.ReadBody(w, r)
	if err != nil {
		return intake{}, err
	}
	body, err := parsePrompt(raw)
	if err != nil {
		return intake{}, err
	}
	if sessionID == "" {
		sessionID = body.SessionID
		switch {
		case sessionID == "":
			return intake{}, rouse.FieldError("opencode: prompt", "sessionID", "sessionID: is missing; name it here or use POST /session/:id/prompt_async")
		case rouse.CheckID(rouse.SessionPrefix, sessionID) != nil:
			return intake{}, rouse.FieldError("opencode: prompt", "sessionID", "sessionID: expected an id that starts with %q, got %q", rouse.SessionPrefix, rouse.Clip(sessionID, 40))
		}
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return intake{}, err
	}
	if key != "" {
		key = "prompt:" + sessionID + ":" + key
	}
	if body.Model.Variant == "" {
		body.Model.Variant = h.variant(body.Model, body.Variant)
	}
	hash := sha256.Sum256(raw)
	return intake{body: body, prompt: session.Prompt{
		SessionID: sessionID, Key: key, BodyHash: hex.EncodeToString(hash[:]), MessageID: body.MessageID,
		Parts: body.Parts, Agent: body.Agent, Model: body.Model, System: body.System, Tools: body.Tools,
		Format: body.Format, NoReply: body.NoReply, DelaySec: body.DelaySec,
	}}, nil
}

// variant is the wished one if the model has it: opencode 1.18.33 ignores one
// that the model does not have, and its clients rely on it.
func (h *Handler) variant(ref rouse.ModelRef, wished string) string {
	p, ok := h.deps.Config().Provider(ref.Provider)
	if !ok || wished == "" {
		return ""
	}
	m, ok := p.Model(ref.Model)
	if !ok || !slices.Contains(m.VariantNames(), wished) {
		return ""
	}
	return wished
}

// idempotencyKey is the client's own; whoever stores it puts before it what it
// is a key of, apart from the keys of Rouse's own verbs.
func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		return "", rouse.FieldError("opencode: prompt", "Idempotency-Key", "Idempotency-Key: is longer than %d bytes", maxKey)
	}
	return key, nil
}

func (h *Handler) promptAsync(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	in, err := h.readPrompt(w, r, id)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.accept(w, r, in)
}

// promptAnywhere is prompt_async with the session in the body.
func (h *Handler) promptAnywhere(w http.ResponseWriter, r *http.Request) {
	in, err := h.readPrompt(w, r, "")
	if err != nil {
		h.fail(w, r, err)
		return
	}
	s, err := h.deps.Store.Session(r.Context(), in.prompt.SessionID)
	if err != nil {
		if rouse.KindOf(err) == rouse.NotFound {
			err = rouse.Errorf(rouse.NotFound, "opencode: prompt", "Session not found: %s (this route takes the session from the body; the other one is POST /session/:id/prompt_async)", in.prompt.SessionID)
		}
		h.fail(w, r, err)
		return
	}
	if err := api.MayDrive(r.Context(), s); err != nil {
		h.fail(w, r, err)
		return
	}
	h.accept(w, r, in)
}

// accept answers as soon as the prompt is on disk.
func (h *Handler) accept(w http.ResponseWriter, r *http.Request, in intake) {
	a, err := h.deps.Sessions.Prompt(r.Context(), in.prompt)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	markAccepted(w, &a)
	if !h.answerHeld(w, &a) {
		w.WriteHeader(http.StatusNoContent)
	}
}

// markAccepted says in headers what became of a prompt: the clients of this
// wire expect no body.
func markAccepted(w http.ResponseWriter, a *session.Accepted) {
	head := w.Header()
	head.Set("X-Rouse-Message", a.MessageID)
	if a.TurnID != "" {
		head.Set("X-Rouse-Turn", a.TurnID)
		head.Set("X-Rouse-Generation", strconv.FormatUint(a.Generation, 10))
	}
}

// answerHeld answers 202 for a prompt that does not run now.
func (h *Handler) answerHeld(w http.ResponseWriter, a *session.Accepted) bool {
	switch a.Intake {
	case rouse.Held:
		api.WriteJSON(w, http.StatusAccepted, fact{"status": "queued"})
	case rouse.Delayed:
		api.WriteJSON(w, http.StatusAccepted, fact{"status": "delayed", "fireAt": a.FireAt.UnixMilli()})
	default:
		return false
	}
	return true
}

// promptSync answers with the turn's last message when the turn is settled.
func (h *Handler) promptSync(w http.ResponseWriter, r *http.Request) {
	id, err := h.sessionID(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	in, err := h.readPrompt(w, r, id)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.await(w, r, in.prompt)
}

// await runs a prompt to its end and answers {info, parts}. A client that
// leaves does not end the turn.
func (h *Handler) await(w http.ResponseWriter, r *http.Request, p session.Prompt) {
	e, a, err := h.runPrompt(r.Context(), p)
	if err != nil {
		h.failBusy(w, r, p.SessionID, err)
		return
	}
	markAccepted(w, &a)
	if h.answerHeld(w, &a) {
		return
	}
	h.ok(w, h.entry(r.Context(), e))
}

// runPrompt gives the last message of the turn; nil when the prompt is held.
func (h *Handler) runPrompt(ctx context.Context, p session.Prompt) (*rouse.Entry, session.Accepted, error) {
	before := h.deps.Feed.Head()
	a, err := h.deps.Sessions.Prompt(ctx, p)
	if err != nil || a.Intake == rouse.Held || a.Intake == rouse.Delayed {
		return nil, a, err
	}
	if a.TurnID == "" {
		e, err := h.deps.Store.Message(ctx, p.SessionID, a.MessageID)
		return e, a, err
	}
	turn, err := h.deps.Sessions.Wait(ctx, a.TurnID)
	if err != nil {
		return nil, a, err
	}
	e, err := h.lastMessage(ctx, turn)
	if err != nil {
		return nil, a, err
	}
	h.letReadersCatchUp(ctx, turn, before)
	return e, a, nil
}

// lastMessage is the newest assistant message of a turn: its answer.
func (h *Handler) lastMessage(ctx context.Context, t *rouse.Turn) (*rouse.Entry, error) {
	const page = 64
	prompt, err := h.deps.Store.Message(ctx, t.SessionID, t.UserMessage)
	if err != nil {
		return nil, err
	}
	answer := prompt
	at := store.CursorOf(&prompt.Message)
	for next := &at; next != nil; {
		got, err := h.deps.Store.Messages(ctx, store.MessageQuery{SessionID: t.SessionID, After: next, Limit: page})
		if err != nil {
			return nil, err
		}
		for i := range got.Entries {
			if m := &got.Entries[i].Message; m.Role == rouse.Assistant && m.TurnID == t.ID {
				answer = &got.Entries[i]
			}
		}
		next = got.Next
	}
	return answer, nil
}

// letReadersCatchUp waits, for a bounded time, until the session's event
// streams have written the end of the turn.
func (h *Handler) letReadersCatchUp(ctx context.Context, t *rouse.Turn, before int64) {
	settled := h.deps.Feed.Head()
	events, _, ok := h.deps.Feed.Since(before, func(e *rouse.Event) bool {
		return e.TurnID == t.ID && e.Type == rouse.TurnSettledEvent
	}, 1)
	if ok && len(events) == 1 {
		settled = events[0].Seq
	}
	directory := ""
	if s, err := h.deps.Store.Session(ctx, t.SessionID); err == nil {
		directory = s.Directory
	}
	bounded, cancel := context.WithTimeout(ctx, flushBound)
	defer cancel()
	h.deps.Feed.AwaitWritten(bounded, t.SessionID, directory, settled)
	hold := time.NewTimer(flushHold)
	defer hold.Stop()
	select {
	case <-hold.C:
	case <-ctx.Done():
	}
}
