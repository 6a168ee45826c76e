package opencode

import (
	"log/slog"
	"net/http"
	"os"

	"rouse"
	"rouse/internal/store"
)

// What OpenCode's TUI asks at its start, and the like: answered truthfully, so
// that nothing is red, where Rouse has no such thing with an empty answer.

func (h *Handler) health(w http.ResponseWriter, _ *http.Request) {
	h.ok(w, fact{"healthy": true, "version": rouse.Version})
}

func (h *Handler) healthV2(w http.ResponseWriter, _ *http.Request) {
	h.ok(w, fact{"healthy": true})
}

func (h *Handler) capabilities(w http.ResponseWriter, _ *http.Request) {
	h.ok(w, fact{"backgroundSubagents": false})
}

func (h *Handler) console(w http.ResponseWriter, _ *http.Request) {
	h.ok(w, fact{"consoleManagedProviders": []any{}, "switchableOrgCount": 0})
}

func (h *Handler) toolIDs(w http.ResponseWriter, _ *http.Request) { h.ok(w, toolNames) }

// toolNames are the tools of the native engine.
var toolNames = []string{"bash", "read", "write", "edit", "glob", "grep", "todowrite", "task", "question", "list_models"}

func (h *Handler) path(w http.ResponseWriter, r *http.Request) {
	dir, err := h.directory(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	root := h.deps.Sessions.ProjectOf(dir).Root
	if root == "" {
		root = "/" // as opencode 1.18.33 says outside of a repository
	}
	h.ok(w, fact{"home": home, "state": h.deps.StateDir, "config": h.deps.ConfigDir, "worktree": root, "directory": dir})
}

func (h *Handler) vcs(w http.ResponseWriter, r *http.Request) {
	dir, err := h.directory(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := fact{}
	if root := h.deps.Sessions.ProjectOf(dir).Root; root != "" {
		if branch := branchOf(root); branch != "" {
			out["branch"] = branch
		}
	}
	h.ok(w, out)
}

func (h *Handler) projectCurrent(w http.ResponseWriter, r *http.Request) {
	dir, err := h.directory(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, h.project(dir))
}

// project describes the repository of a directory.
func (h *Handler) project(dir string) fact {
	of := h.deps.Sessions.ProjectOf(dir)
	p := fact{"id": of.ID, "worktree": "/", "sandboxes": []any{}}
	at := int64(0)
	if of.Root != "" {
		p["worktree"], p["vcs"] = of.Root, "git"
		if info, err := os.Stat(of.Root); err == nil {
			at = info.ModTime().UnixMilli()
		}
	}
	p["time"] = fact{"created": at, "updated": at}
	return p
}

// projectList lists the projects of the sessions there are, and the server's.
func (h *Handler) projectList(w http.ResponseWriter, r *http.Request) {
	const newest = 1000
	page, err := h.deps.Store.Sessions(r.Context(), store.SessionFilter{Limit: newest})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	own := h.project(h.deps.Directory)
	list, seen := []fact{own}, map[any]bool{own["id"]: true}
	for i := range page.Sessions {
		s := &page.Sessions[i]
		if !seen[s.ProjectID] {
			seen[s.ProjectID] = true
			p := h.project(s.Directory)
			p["id"] = s.ProjectID
			list = append(list, p)
		}
	}
	h.ok(w, list)
}

// projectDirectories lists where sessions of a project work.
func (h *Handler) projectDirectories(w http.ResponseWriter, r *http.Request) {
	const newest = 1000
	page, err := h.deps.Store.Sessions(r.Context(), store.SessionFilter{Limit: newest})
	if err != nil {
		h.fail(w, r, err)
		return
	}
	list, seen := []fact{}, map[string]bool{}
	add := func(dir string) {
		if !seen[dir] {
			seen[dir] = true
			list = append(list, fact{"directory": dir})
		}
	}
	id := r.PathValue("project")
	if h.deps.Sessions.ProjectOf(h.deps.Directory).ID == id {
		add(h.deps.Directory)
	}
	for i := range page.Sessions {
		if page.Sessions[i].ProjectID == id {
			add(page.Sessions[i].Directory)
		}
	}
	h.ok(w, list)
}

func (h *Handler) location(w http.ResponseWriter, r *http.Request) {
	at, err := h.locate(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, at)
}

func (h *Handler) locate(r *http.Request) (fact, error) {
	dir, err := h.directory(r)
	if err != nil {
		return nil, err
	}
	of := h.deps.Sessions.ProjectOf(dir)
	if of.Root == "" {
		of.Root = dir
	}
	return fact{"directory": dir, "project": fact{"id": of.ID, "directory": of.Root}}, nil
}

// emptyLocated answers OpenCode's second API, which has a store of its own in
// opencode 1.18.33 and which its clients do not need.
func (h *Handler) emptyLocated(w http.ResponseWriter, r *http.Request) {
	at, err := h.locate(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.ok(w, fact{"location": at, "data": []any{}})
}

// log takes a line of a client into the server's log.
func (h *Handler) log(w http.ResponseWriter, r *http.Request) {
	f, err := h.body(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	f.need("service", "level", "message")
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[f.text("level")]
	if !ok && *f.err == nil {
		f.fault("level", "expected \"debug\", \"info\", \"warn\" or \"error\", got %q", rouse.Clip(f.text("level"), 40))
	}
	service, message := f.text("service"), f.text("message")
	f.object("extra")
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	// What a client says is not fit for the info log: it may hold anything.
	h.deps.Log.Debug("client log", "service", rouse.Clip(service, 80), "client_level", level.String(), "message", rouse.Clip(message, 2000))
	h.ok(w, true)
}

// noTUI: OpenCode's server can steer a TUI that runs in the same process;
// Rouse has none.
func (h *Handler) noTUI(w http.ResponseWriter, r *http.Request) {
	h.fail(w, r, rouse.Errorf(rouse.Unsupported, "opencode: tui", "there is no terminal interface in this server to be steered"))
}
