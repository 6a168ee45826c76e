package api

import (
	"context"
	"net/http"
	"strings"

	"rouse"
)

// Orchestrators looks up who launched a session.
type Orchestrators interface {
	// Session gives the session's row, or NotFound.
	Session(ctx context.Context, id string) (*rouse.Session, error)
}

// agentRule decides one route for an agent token.
type agentRule func(ctx context.Context, p Principal, session string) error

// agentRoutes is all that an agent token may do; everything else is 403. The
// route that takes its session from the body decides with MayDrive itself.
func agentRoutes(sessions Orchestrators) *http.ServeMux {
	launched := func(ctx context.Context, p Principal, id string) error {
		s, err := sessions.Session(ctx, id)
		if err != nil {
			return rouse.Wrap("scope", err)
		}
		return MayDrive(context.WithValue(ctx, principalKey{}, p), s)
	}
	own := func(_ context.Context, p Principal, id string) error {
		if p.Session == id {
			return nil
		}
		return rouse.Errorf(rouse.Denied, "scope", "this token speaks for session %s only", p.Session)
	}
	either := func(ctx context.Context, p Principal, id string) error {
		if p.Session == id {
			return nil
		}
		return launched(ctx, p, id)
	}
	free := func(context.Context, Principal, string) error { return nil }

	mux := http.NewServeMux()
	for pattern, rule := range map[string]agentRule{
		"GET /rouse/v1/sessions/{id}/identity": own,
		"GET /rouse/v1/sessions/{id}":          either,
		"GET /rouse/v1/sessions/{id}/health":   either,
		"GET /rouse/v1/sessions/{id}/wait":     either,
		"POST /rouse/v1/sessions/{id}/cancel":  launched,
		"POST /rouse/v1/sessions/{id}/rescue":  launched,
		"GET /rouse/v1/rescues/{id}":           free, // the handler looks whose it is
		"POST /rouse/v1/launch":                free,
		"GET /rouse/v1/preflight":              free, // what to launch on is asked before launching
		"POST /prompt_async":                   free,
		"POST /session/{id}/prompt_async":      launched,
		"POST /session/{id}/message":           launched,
		"POST /session/{id}/abort":             launched,
	} {
		mux.Handle(pattern, ruleHandler{rule})
	}
	return mux
}

// ruleHandler carries a rule through a ServeMux, which alone knows how to
// match a pattern; it is never served.
type ruleHandler struct{ rule agentRule }

func (ruleHandler) ServeHTTP(http.ResponseWriter, *http.Request) {}

// checkScope refuses what the principal's token does not allow.
func checkScope(routes *http.ServeMux, r *http.Request, p Principal) error {
	switch p.Scope {
	case User:
		return nil
	case Metrics:
		if r.Method == http.MethodGet && r.URL.Path == "/metrics" {
			return nil
		}
	case Agent:
		handler, pattern := routes.Handler(r)
		if rule, ok := handler.(ruleHandler); ok {
			return rule.rule(r.Context(), p, pathID(pattern, r.URL.Path))
		}
	}
	return rouse.Errorf(rouse.Denied, "scope", "a token of scope %q does not allow %s %s", p.Scope, r.Method, r.URL.Path)
}

// pathID is what stands for {id} in the path. Mux.Handler does not fill the
// request's path values, so the segment is found by position.
func pathID(pattern, path string) string {
	_, want, _ := strings.Cut(pattern, " ")
	names, values := segments(want), segments(path)
	for i, name := range names {
		if name == "{id}" && i < len(values) {
			return values[i]
		}
	}
	return ""
}

func segments(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }
