// Package opencode speaks OpenCode's wire (opencode 1.18.33), so that its own
// clients and SDKs work against Rouse unmodified, with the extras of Rouse's
// prompt intake. No other package knows these names.
//
// Bodies are read field by field (body.go) and refused with the name of the
// field; objects are rendered from the vocabulary (wire.go, part.go,
// failure.go); events come from the log and the live text (stream.go).
package opencode

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"rouse"
	"rouse/internal/api"
	"rouse/internal/config"
	"rouse/internal/feed"
	"rouse/internal/session"
	"rouse/internal/store"
)

// Sessions is what this wire asks of the session verb.
type Sessions interface {
	Create(ctx context.Context, n session.NewSession) (s *rouse.Session, warning string, err error)
	Update(ctx context.Context, id string, p session.Patch) (*rouse.Session, error)
	Delete(ctx context.Context, id string) error
	Prompt(ctx context.Context, p session.Prompt) (session.Accepted, error)
	Wait(ctx context.Context, turnID string) (*rouse.Turn, error)
	Abort(ctx context.Context, id string) error
	Answer(ctx context.Context, requestID, kind string, r rouse.Reply) error
	Pause(ctx context.Context, id string) error
	Resume(ctx context.Context, id string) error
	Fork(ctx context.Context, id, messageID string) (*rouse.Session, error)
	Revert(ctx context.Context, id, messageID, partID string) (*rouse.Session, error)
	Unrevert(ctx context.Context, id string) (*rouse.Session, error)
	RemoveMessage(ctx context.Context, sessionID, messageID string) error
	RemovePart(ctx context.Context, sessionID, messageID, partID string) error
	EditPart(ctx context.Context, p rouse.Part) (*rouse.Part, error)
	Vitals(sessionID string) (rouse.Vitals, bool)
	ProjectOf(directory string) session.Project
}

// Deps is what the handlers stand on; all of it is required.
type Deps struct {
	Store    *store.Store
	Feed     *feed.Feed
	Sessions Sessions
	// Config gives the configuration as it is now.
	Config func() *config.Config
	// Directory is where sessions work that name none: the server's own.
	Directory string
	// StateDir and ConfigDir are shown by GET /path.
	StateDir, ConfigDir string
	// Closing is closed when streams have to end.
	Closing <-chan struct{}
	Log     *slog.Logger
}

// Handler serves the wire. It starts no goroutines: streams run in their
// requests' own.
type Handler struct {
	deps Deps
	mux  *http.ServeMux
}

// New makes the handler of everything at the root.
func New(d Deps) *Handler {
	h := &Handler{deps: d, mux: http.NewServeMux()}
	h.routes()
	return h
}

// ServeHTTP answers; what is unknown is a 404 in JSON.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

func (h *Handler) routes() {
	for pattern, handle := range map[string]http.HandlerFunc{
		"POST /session":                                      h.createSession,
		"GET /session":                                       h.listSessions,
		"GET /session/status":                                h.sessionStatus,
		"GET /session/{id}":                                  h.getSession,
		"PATCH /session/{id}":                                h.patchSession,
		"DELETE /session/{id}":                               h.deleteSession,
		"GET /session/{id}/children":                         h.children,
		"GET /session/{id}/todo":                             h.todos,
		"GET /session/{id}/diff":                             h.diff,
		"POST /session/{id}/abort":                           h.abort,
		"POST /session/{id}/pause":                           h.pause,
		"POST /session/{id}/resume":                          h.resume,
		"POST /session/{id}/fork":                            h.fork,
		"POST /session/{id}/revert":                          h.revert,
		"POST /session/{id}/unrevert":                        h.unrevert,
		"GET /session/{id}/message":                          h.messages,
		"POST /session/{id}/message":                         h.promptSync,
		"GET /session/{id}/message/{message}":                h.message,
		"DELETE /session/{id}/message/{message}":             h.removeMessage,
		"PATCH /session/{id}/message/{message}/part/{part}":  h.editPart,
		"DELETE /session/{id}/message/{message}/part/{part}": h.removePart,
		"POST /session/{id}/prompt_async":                    h.promptAsync,
		"POST /prompt_async":                                 h.promptAnywhere,
		"POST /session/{id}/summarize":                       h.summarize,
		"POST /session/{id}/shell":                           h.shell,
		"POST /session/{id}/command":                         h.command,
		"POST /session/{id}/init":                            h.initialize,
		"POST /session/{id}/share":                           h.share,
		"DELETE /session/{id}/share":                         h.unshare,
		"POST /session/{id}/permissions/{request}":           h.permissionLegacy,
		"GET /permission":                                    h.permissions,
		"POST /permission/{request}/reply":                   h.permissionReply,
		"GET /question":                                      h.questions,
		"POST /question/{request}/reply":                     h.questionReply,
		"POST /question/{request}/reject":                    h.questionReject,
		"GET /event":                                         h.events,
		"GET /global/event":                                  h.globalEvents,
		"GET /global/health":                                 h.health,
		"GET /config":                                        h.config,
		"GET /global/config":                                 h.config,
		"GET /config/providers":                              h.configProviders,
		"GET /provider":                                      h.providers,
		"GET /provider/auth":                                 emptyObject,
		"GET /agent":                                         h.agents,
		"GET /command":                                       h.commands,
		"GET /path":                                          h.path,
		"GET /project":                                       h.projectList,
		"GET /project/current":                               h.projectCurrent,
		"GET /project/{project}/directories":                 h.projectDirectories,
		"GET /vcs":                                           h.vcs,
		"GET /file":                                          h.listFiles,
		"GET /file/content":                                  h.fileContent,
		"GET /file/status":                                   emptyList,
		"GET /find":                                          h.findText,
		"GET /find/file":                                     h.findFile,
		"GET /find/symbol":                                   emptyList,
		"GET /lsp":                                           emptyList,
		"GET /formatter":                                     emptyList,
		"GET /mcp":                                           emptyObject,
		"GET /skill":                                         emptyList,
		"GET /experimental/capabilities":                     h.capabilities,
		"GET /experimental/console":                          h.console,
		"GET /experimental/resource":                         emptyObject,
		"GET /experimental/workspace":                        emptyList,
		"GET /experimental/workspace/status":                 emptyList,
		"GET /experimental/tool/ids":                         h.toolIDs,
		"GET /api/health":                                    h.healthV2,
		"GET /api/location":                                  h.location,
		"GET /api/agent":                                     h.emptyLocated,
		"GET /api/integration":                               h.emptyLocated,
		"GET /api/model":                                     h.emptyLocated,
		"GET /api/provider":                                  h.emptyLocated,
		"GET /api/reference":                                 h.emptyLocated,
		"GET /api/command":                                   h.emptyLocated,
		"GET /api/skill":                                     h.emptyLocated,
		"POST /log":                                          h.log,
		"/tui/":                                              h.noTUI,
		"/":                                                  h.unknown,
	} {
		h.mux.HandleFunc(pattern, handle)
	}
}

// unknown answers for every path and method that is not part of this wire.
// (opencode 1.18.33 answers 200 with the HTML of its UI.)
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request) {
	api.WriteJSON(w, http.StatusNotFound, api.Problem{Name: "NotFoundError", Data: api.ProblemData{
		Message: "There is no " + r.Method + " " + rouse.Clip(r.URL.Path, 200) + " here."}})
}

func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	api.Fail(w, r, h.deps.Log, err)
}

func (h *Handler) ok(w http.ResponseWriter, v any) { api.WriteJSON(w, http.StatusOK, v) }

// done answers true, or the error.
func (h *Handler) done(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, true)
}

func emptyList(w http.ResponseWriter, _ *http.Request)   { api.WriteJSON(w, http.StatusOK, []any{}) }
func emptyObject(w http.ResponseWriter, _ *http.Request) { api.WriteJSON(w, http.StatusOK, fact{}) }

// body reads a request's body as an object.
func (h *Handler) body(w http.ResponseWriter, r *http.Request) (*fields, error) {
	raw, err := api.ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	return parseObject(raw)
}

// sessionID checks the session's id in the path.
func (h *Handler) sessionID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if err := rouse.CheckID(rouse.SessionPrefix, id); err != nil {
		return "", rouse.FieldError("opencode: session id", "id", "%s", rouse.SafeMessage(err))
	}
	return id, nil
}

// form is the session's id in the path and the body as an object.
func (h *Handler) form(w http.ResponseWriter, r *http.Request) (id string, f *fields, err error) {
	if id, err = h.sessionID(r); err != nil {
		return "", nil, err
	}
	f, err = h.body(w, r)
	return id, f, err
}

// session reads the session of the path.
func (h *Handler) session(r *http.Request) (*rouse.Session, error) {
	id, err := h.sessionID(r)
	if err != nil {
		return nil, err
	}
	return h.deps.Store.Session(r.Context(), id)
}

// named is the directory that a request names, cleaned: ?directory=, or the
// header x-opencode-directory, which OpenCode's clients URL-encode. Empty when
// it names none; Invalid when it is no absolute path.
func named(r *http.Request) (string, error) {
	dir := r.URL.Query().Get("directory")
	if dir == "" {
		dir = r.Header.Get("X-Opencode-Directory")
		if plain, err := url.PathUnescape(dir); err == nil {
			dir = plain
		}
	}
	if dir == "" {
		return "", nil
	}
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return "", rouse.FieldError("opencode: directory", "directory", "directory: %q is not an absolute path", rouse.Clip(dir, 200))
	}
	return filepath.Clean(dir), nil
}

// existing refuses a directory that is not there.
func existing(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return rouse.FieldError("opencode: directory", "directory", "directory: there is no directory %q", rouse.Clip(dir, 200))
	}
	return nil
}

// directory is where a request works: the one it names, which must exist, or
// the server's own.
func (h *Handler) directory(r *http.Request) (string, error) {
	dir, err := named(r)
	if err != nil {
		return "", err
	}
	if dir == "" {
		return h.deps.Directory, nil
	}
	return dir, existing(dir)
}

// directoryFilter is the directory that an event stream is bounded to; empty
// for everything. It need not exist any more: its events do.
func (h *Handler) directoryFilter(r *http.Request) (string, error) { return named(r) }
