package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"rouse"
)

// Scope is what a token is good for.
type Scope string

// The scopes. Without authentication every caller is User.
const (
	User    Scope = "user"    // everything
	Metrics Scope = "metrics" // GET /metrics only
	Agent   Scope = "agent"   // a tool inside a session: see scopes.go
)

// Principal is who makes a request.
type Principal struct {
	Scope   Scope
	Session string // of an agent token, else ""
}

const (
	agentPrefix   = "rat_"
	metricsPrefix = "rmt_"
	// Cookie is the name of the cookie that may carry the token.
	Cookie = "rouse_token"
)

// AgentToken makes the token that tools inside a session get as ROUSE_TOKEN.
// It is derived from the server's own token, so nothing is stored and a new
// server token ends all of them.
func AgentToken(secret, sessionID string) string {
	return agentPrefix + sessionID + "." + sign(secret, "agent:"+sessionID)
}

// MetricsToken makes the token that may read /metrics and nothing else.
func MetricsToken(secret string) string {
	return metricsPrefix + sign(secret, "metrics")
}

func sign(secret, what string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// identify finds the principal of a token; false when it is none of ours. All
// compares take the same time for every wrong token.
func identify(secret, token string) (Principal, bool) {
	if same(token, secret) {
		return Principal{Scope: User}, true
	}
	if rest, ok := strings.CutPrefix(token, agentPrefix); ok {
		session, _, found := strings.Cut(rest, ".")
		if found && same(token, AgentToken(secret, session)) {
			return Principal{Scope: Agent, Session: session}, true
		}
		return Principal{}, false
	}
	if strings.HasPrefix(token, metricsPrefix) && same(token, MetricsToken(secret)) {
		return Principal{Scope: Metrics}, true
	}
	return Principal{}, false
}

// same compares without telling how much of it was right.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// presented lists the tokens a request carries: Bearer, the password of Basic
// (any user; OpenCode's clients send it so), ?auth_token=base64(user:password)
// as opencode 1.18.33 accepts it, or the cookie.
func presented(r *http.Request) []string {
	var tokens []string
	if scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		tokens = append(tokens, strings.TrimSpace(rest))
	}
	if _, password, ok := r.BasicAuth(); ok {
		tokens = append(tokens, password)
	}
	if v := r.URL.Query().Get("auth_token"); v != "" {
		tokens = append(tokens, queryToken(v))
	}
	if c, err := r.Cookie(Cookie); err == nil {
		tokens = append(tokens, c.Value)
	}
	return tokens
}

func queryToken(v string) string {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		if raw, err := enc.DecodeString(v); err == nil {
			if _, password, ok := strings.Cut(string(raw), ":"); ok {
				return password
			}
		}
	}
	return ""
}

type principalKey struct{}

// Who gives the principal of a request that came through the door.
func Who(ctx context.Context) Principal {
	if p, ok := ctx.Value(principalKey{}).(Principal); ok {
		return p
	}
	return Principal{}
}

// MayDrive refuses (Denied) when the caller is an agent that did not launch
// the session.
func MayDrive(ctx context.Context, s *rouse.Session) error {
	p := Who(ctx)
	if p.Scope == User || p.Scope == Agent && s.Orchestrator == p.Session {
		return nil
	}
	return rouse.Errorf(rouse.Denied, "scope", "this token belongs to session %s, which did not launch session %s", p.Session, s.ID)
}
