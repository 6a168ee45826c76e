// Package api is the door that every request passes (host, bounds,
// authentication, cross-origin, rate, scope) and Rouse's own HTTP API under
// /rouse/v1. OpenCode's wire is in the package below it.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"rouse"
	"rouse/internal/config"
	"rouse/internal/feed"
	"rouse/internal/recovery"
	"rouse/internal/session"
	"rouse/internal/store"
)

// Launcher is what the own API asks of the session verb.
type Launcher interface {
	Create(ctx context.Context, n session.NewSession) (s *rouse.Session, warning string, err error)
	Prompt(ctx context.Context, p session.Prompt) (session.Accepted, error)
	Vitals(sessionID string) (rouse.Vitals, bool)
	// Process is the process that the session keeps, also between turns; 0
	// for none.
	Process(sessionID string) (pid int)
	// Cancel starts the ladder for the running turn and returns at once;
	// Conflict when another generation runs.
	Cancel(ctx context.Context, sessionID string, generation uint64) (v rouse.Vitals, running bool, err error)
	// ModelOf is the model that a new session's first prompt would use.
	ModelOf(agent string, named rouse.ModelRef) rouse.ModelRef
	// WakeModel is the model that a rescue would wake the session with.
	WakeModel(s *rouse.Session, named rouse.ModelRef) (rouse.ModelRef, error)
	// CloseWall closes a wall by hand and lets waiting prompts look again.
	CloseWall(ctx context.Context, id string) (*rouse.Wall, error)
}

// Deps is what Rouse's own API stands on; all of it is required.
type Deps struct {
	Store    *store.Store
	Feed     *feed.Feed
	Sessions Launcher
	Rescuer  Rescuer
	Watch    Watcher
	// Process says whether a process lives and how much memory it holds (0:
	// not known).
	Process func(pid int) (alive bool, rss int64)
	Prompts recovery.Prompts
	// Programs are the agent programs.
	Programs Programs
	Config   func() *config.Config
	// Directory is where sessions work that name none.
	Directory string
	// Closing is closed when streams have to end.
	Closing <-chan struct{}
	// Drain stops dispatching, waits for running turns at most so long, and
	// then stops the server; it says at once how many run.
	Drain func(wait time.Duration) (running int)
	// Release ends orphaned turns that were held for a drill; nil, and then
	// without a route, outside of drills.
	Release func(ctx context.Context) (interrupted int, err error)
	Log     *slog.Logger
}

// own is Rouse's own API.
type own struct{ Deps }

// prefix is where Rouse's own API lives.
const prefix = "/rouse/v1"

func init() {
	// One shape of errors on every route. The variable is huma's and global.
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return newStatusError(status, message, errs...)
	}
}

// New puts Rouse's own API and the health checks beside root, which answers
// everything else.
func New(d Deps, root http.Handler) http.Handler {
	o := &own{d}
	mux := http.NewServeMux()
	mux.Handle("/", root)
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /readyz", o.ready)
	inner := http.NewServeMux()
	mux.Handle(prefix+"/", inner)
	inner.HandleFunc(prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		Fail(w, r, o.Log, rouse.Errorf(rouse.NotFound, "own api", "There is no %s %s here.", r.Method, rouse.Clip(r.URL.Path, 200)))
	})
	inner.HandleFunc("GET "+prefix+"/events", o.events)
	inner.HandleFunc("GET "+prefix+"/sessions/{id}/events", o.sessionEvents)

	c := huma.DefaultConfig("Rouse", rouse.Version)
	c.Formats = strict()
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "/openapi", "", "", nil
	c.Info.Description = "What no OpenCode client knows: launching, watching and identity. OpenCode's own wire is at the root."
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	c.Security = []map[string][]string{{"token": {}}}
	a := humago.NewWithPrefix(inner, prefix, c)
	for _, stream := range []struct{ path, id, summary string }{
		{"/events", "events", "Follow all events, resumable with Last-Event-ID or ?after="},
		{"/sessions/{id}/events", "session-events", "Follow one session's events, resumable with Last-Event-ID or ?after="},
	} {
		a.OpenAPI().AddOperation(&huma.Operation{Method: http.MethodGet, Path: prefix + stream.path, OperationID: stream.id, Summary: stream.summary,
			Responses: map[string]*huma.Response{"200": {Description: "server-sent events", Content: map[string]*huma.MediaType{"text/event-stream": {}}}}})
	}
	huma.Register(a, operation("list-sessions", http.MethodGet, "/sessions", "List sessions with their state and evidence"), wrap(o, o.listSessions))
	huma.Register(a, operation("get-session", http.MethodGet, "/sessions/{id}", "One session with its state and evidence"), wrap(o, o.getSession))
	huma.Register(a, operation("health", http.MethodGet, "/sessions/{id}/health", "What a session does, with the evidence"), wrap(o, o.health))
	huma.Register(a, operation("wait", http.MethodGet, "/sessions/{id}/wait", "Wait until a session reaches something"), wrap(o, o.wait))
	cancel := operation("cancel", http.MethodPost, "/sessions/{id}/cancel", "End the running turn; events tell each step")
	cancel.DefaultStatus = http.StatusAccepted
	huma.Register(a, cancel, wrap(o, o.cancel))
	huma.Register(a, operation("identity", http.MethodGet, "/sessions/{id}/identity", "Who a session is, from the durable record"), wrap(o, o.identity))
	huma.Register(a, operation("preflight", http.MethodGet, "/preflight", "Whether a model can take work now"), wrap(o, o.preflight))
	huma.Register(a, operation("list-walls", http.MethodGet, "/walls", "List the usage limits that are known to stand"), wrap(o, o.walls))
	huma.Register(a, operation("close-wall", http.MethodDelete, "/walls/{id}", "Close a wall by hand"), wrap(o, o.closeWall))
	huma.Register(a, operation("list-incidents", http.MethodGet, "/incidents", "List what went wrong, newest first"), wrap(o, o.incidents))
	act := operation("act-on-incident", http.MethodPost, "/incidents/{id}/actions", "Do what an incident offers")
	act.DefaultStatus = http.StatusAccepted
	huma.Register(a, act, wrap(o, o.act))
	huma.Register(a, operation("get-incident", http.MethodGet, "/incidents/{id}", "One incident"), wrap(o, o.incident))
	if o.Release != nil {
		huma.Register(a, operation("drill-release", http.MethodPost, "/drill/release", "End held orphans and run what waits"), wrap(o, o.release))
	}
	drain := operation("drain", http.MethodPost, "/drain", "Let running turns end, start no other, and stop the server")
	drain.DefaultStatus = http.StatusAccepted
	huma.Register(a, drain, wrap(o, o.drain))
	rescue := operation("rescue", http.MethodPost, "/sessions/{id}/rescue", "End a hung turn and wake the session with facts")
	rescue.DefaultStatus = http.StatusAccepted
	huma.Register(a, rescue, wrap(o, o.rescue))
	huma.Register(a, operation("get-rescue", http.MethodGet, "/rescues/{id}", "How far a rescue is"), wrap(o, o.getRescue))
	huma.Register(a, operation("list-programs", http.MethodGet, "/agents", "List the agent programs and what is known of them"), wrap(o, o.programs))
	huma.Register(a, operation("probe-program", http.MethodPost, "/agents/{name}/probe", "Start an agent program and say what it can do"), wrap(o, o.probeProgram))
	launch := operation("launch", http.MethodPost, "/launch", "Create a session, prompt it, and verify that it generates")
	launch.DefaultStatus = http.StatusCreated
	huma.Register(a, launch, wrap(o, o.launch))
	return mux
}

func operation(id, method, path, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary,
		MaxBodyBytes: MaxBody, BodyReadTimeout: bodyTimeout}
}

// ready says whether prompts can be accepted: the server listens only when all
// is built, so what is left is a database that refuses.
func (o *own) ready(w http.ResponseWriter, _ *http.Request) {
	if o.Store.Refusing() {
		w.Header().Set("Retry-After", "2")
		WriteJSON(w, http.StatusServiceUnavailable, map[string]bool{"ok": false})
		return
	}
	WriteJSON(w, http.StatusOK, map[string]bool{"ok": true})
}

func alive(w http.ResponseWriter, _ *http.Request) {
	WriteJSON(w, http.StatusOK, map[string]bool{"ok": true})
}

// stamp is how times are written here: RFC 3339 in UTC with milliseconds; nil
// for a time that is not known.
func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return &s
}

// statusError is a Problem on its way through huma.
type statusError struct {
	status     int
	body       any
	text       string
	retryAfter int // seconds; 0 says nothing
}

// GetHeaders gives Retry-After where there is one.
func (e *statusError) GetHeaders() http.Header {
	if e.retryAfter == 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.Itoa(e.retryAfter)}}
}

func (e *statusError) GetStatus() int               { return e.status }
func (e *statusError) Error() string                { return e.text }
func (e *statusError) MarshalJSON() ([]byte, error) { return Marshal(e.body) }

// Schema describes the body: every error has this shape.
func (e *statusError) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(typeOf[Problem](), true, "Problem")
}

// wrap turns the errors of the vocabulary into answers.
func wrap[I, O any](o *own, fn func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		out, err := fn(ctx, in)
		if err == nil {
			return out, nil
		}
		if done, ok := err.(*statusError); ok {
			return nil, done
		}
		status, body := problemOf(ctx, o.Log, err)
		return nil, &statusError{status: status, body: body, text: body.Data.Message}
	}
}
