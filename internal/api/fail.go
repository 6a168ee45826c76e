package api

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"rouse"
)

// Problem is the error body of every route: {name, data:{message, …}}.
type Problem struct {
	Name string      `json:"name"`
	Data ProblemData `json:"data"`
	// Tag, Message, SessionID and RequestID repeat the facts at the top where
	// OpenCode's own clients look for them (opencode 1.18.33 answers some
	// routes with {_tag, message, …}).
	Tag       string `json:"_tag,omitempty"`
	Message   string `json:"message,omitempty"`
	SessionID string `json:"sessionID,omitempty"`
	RequestID string `json:"requestID,omitempty"`
}

// ProblemData says what went wrong in a complete sentence. Field is the input
// field at fault; Ref is the reference under which the log has the details.
type ProblemData struct {
	Message string `json:"message"`
	Kind    string `json:"kind,omitempty"`
	Field   string `json:"field,omitempty"`
	Ref     string `json:"ref,omitempty"`
}

// status and name of each kind; what is missing here is Internal.
var problems = map[rouse.Kind]struct {
	status int
	name   string
	text   string // said when the error has no safe message of its own
}{
	rouse.Invalid:     {http.StatusBadRequest, "BadRequest", "The request is not valid."},
	rouse.NotFound:    {http.StatusNotFound, "NotFoundError", "There is no such thing."},
	rouse.Conflict:    {http.StatusConflict, "ConflictError", "The state of the session does not allow this now."},
	rouse.Mismatch:    {http.StatusUnprocessableEntity, "IdempotencyMismatch", "This idempotency key was used with another body."},
	rouse.Denied:      {http.StatusForbidden, "ForbiddenError", "This token does not allow that."},
	rouse.Unsupported: {http.StatusNotImplemented, "NotImplementedError", "This server does not offer that."},
	rouse.Full:        {http.StatusServiceUnavailable, "UnavailableError", "The server is full; try again in a moment."},
	rouse.Unavailable: {http.StatusServiceUnavailable, "UnavailableError", "The server cannot do this at the moment."},
	rouse.Upstream:    {http.StatusBadGateway, "UpstreamError", "A provider or agent failed."},
}

// ProblemOf gives the status and body of an error. The body holds safe words
// only. An internal error gets a reference and is logged under it.
func ProblemOf(log *slog.Logger, r *http.Request, err error) (int, Problem) {
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return http.StatusRequestEntityTooLarge, tooLarge(big.Limit)
	}
	p, ok := problems[rouse.KindOf(err)]
	if !ok {
		ref := newRef()
		log.Error("request failed", "ref", ref, "method", r.Method, "path", r.URL.Path, "error", err)
		return http.StatusInternalServerError, internalProblem(ref)
	}
	body := Problem{Name: p.name, Data: ProblemData{Message: rouse.SafeMessage(err), Field: rouse.FieldOf(err)}}
	if body.Data.Message == "" {
		body.Data.Message = p.text
		log.Debug("request refused without words of its own", "path", r.URL.Path, "error", err)
	}
	if body.Data.Field != "" {
		body.Data.Kind = "Payload"
	}
	return p.status, body
}

// Fail answers with the error.
func Fail(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	status, body := ProblemOf(log, r, err)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	WriteJSON(w, status, body)
}

// WriteJSON answers with v. HTML characters stay as they are.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	body, err := Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"name":"UnknownError","data":{"message":"The answer could not be written."}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away is no error of ours
}

// Marshal is json.Marshal without HTML escaping.
func Marshal(v any) ([]byte, error) {
	var buf appender
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, rouse.Wrap("marshal", err)
	}
	return buf[:len(buf)-1], nil // Encode ends with a line feed
}

type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

func tooLarge(limit int64) Problem {
	return Problem{Name: "PayloadTooLarge", Data: ProblemData{
		Message: "The body is larger than " + strconv.FormatInt(limit, 10) + " bytes."}}
}

func internalProblem(ref string) Problem {
	return Problem{Name: "UnknownError", Data: ProblemData{
		Message: "Something went wrong inside the server; its log has the details under this reference.", Ref: ref}}
}

// newRef makes a reference for one line of the log.
func newRef() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return "err_" + hex.EncodeToString(b[:])
}
