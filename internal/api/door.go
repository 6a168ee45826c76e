package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"rouse"
)

// DoorConfig says who may come in.
type DoorConfig struct {
	// Token is the server's own token. Empty only together with NoAuth.
	Token  string
	NoAuth bool
	// Hosts are the names besides loopback under which the server may be
	// addressed, without port. An address that the connection really arrived
	// on is always allowed: it cannot be rebound by a foreign name.
	Hosts []string
	// Origins are the web origins ("https://board.example") that may use the
	// API from a browser. Empty: CORS is off.
	Origins []string
	// MaxBody bounds request bodies; 0 is the package's MaxBody.
	MaxBody int64
	// Rate and Burst bound requests per second of one token; 0 is 2,000 and
	// 10,000 for users and 50 and 200 for agents; negative is no bound.
	Rate, Burst float64
	Sessions    Orchestrators
	Log         *slog.Logger
}

// Door is what every request passes, in this order: Host, panics, bounds,
// authentication, cross-origin, rate, scope.
type Door struct {
	cfg    DoorConfig
	next   http.Handler
	cross  *http.CrossOriginProtection
	rates  *rates
	agents *http.ServeMux
}

// open are the paths that need no token and say nothing but ok.
var open = []string{"/healthz", "/readyz"}

// NewDoor puts a door before next. It refuses a configuration that would let
// anybody in by mistake.
func NewDoor(cfg DoorConfig, next http.Handler) (*Door, error) {
	if cfg.Token == "" && !cfg.NoAuth {
		return nil, rouse.Errorf(rouse.Invalid, "door", "the token is empty: refusing to serve without authentication")
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = MaxBody
	}
	d := &Door{cfg: cfg, next: next, cross: http.NewCrossOriginProtection(), agents: agentRoutes(cfg.Sessions)}
	for _, origin := range cfg.Origins {
		if err := d.cross.AddTrustedOrigin(origin); err != nil {
			return nil, rouse.FieldError("door", "origins", "origin %q: use scheme://host[:port]", origin)
		}
	}
	d.rates = &rates{buckets: map[Principal]*bucket{}, limit: func(p Principal) (float64, float64) {
		switch {
		case cfg.Rate != 0:
			return cfg.Rate, max(1, cfg.Burst)
		case p.Scope == User:
			return 2000, 10000
		default:
			return 50, 200
		}
	}}
	return d, nil
}

// ServeHTTP lets a request in or answers why not.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.hostAllowed(r) {
		WriteJSON(w, http.StatusMisdirectedRequest, Problem{Name: "MisdirectedRequest", Data: ProblemData{
			Message: "This server does not answer under this host name; add it to the allowed hosts."}})
		return
	}
	seen := &seenWriter{ResponseWriter: w}
	defer d.recover(seen, r)
	if d.preflight(seen, r) || d.tooLarge(seen, r) {
		return
	}
	p, ok := d.authenticate(r)
	if !ok {
		seen.Header().Set("WWW-Authenticate", `Basic realm="Secure Area"`)
		WriteJSON(seen, http.StatusUnauthorized, Problem{Name: "UnauthorizedError", Tag: "UnauthorizedError",
			Message: "Authentication required", Data: ProblemData{Message: "Authentication required"}})
		return
	}
	if err := d.cross.Check(r); err != nil {
		Fail(seen, r, d.cfg.Log, rouse.Errorf(rouse.Denied, "door", "a request from another web origin may not change anything here"))
		return
	}
	if !slices.Contains(open, r.URL.Path) {
		if ok, wait := d.rates.take(p, time.Now()); !ok {
			seen.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			WriteJSON(seen, http.StatusTooManyRequests, Problem{Name: "TooManyRequests", Data: ProblemData{
				Message: "This token makes too many requests; slow down."}})
			return
		}
		if err := checkScope(d.agents, r, p); err != nil {
			Fail(seen, r, d.cfg.Log, err)
			return
		}
	}
	d.next.ServeHTTP(seen, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
}

// hostAllowed checks the Host header against the allowlist, so that a foreign
// name that resolves to this machine (DNS rebinding) reaches nothing.
func (d *Door) hostAllowed(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || host != "" && slices.ContainsFunc(d.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap() == ip.Unmap()
}

// preflight answers OPTIONS and marks answers for configured origins.
func (d *Door) preflight(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Vary", "Origin")
	origin := r.Header.Get("Origin")
	allowed := origin != "" && slices.Contains(d.cfg.Origins, origin)
	if allowed {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Link, X-Next-Cursor, X-Total-Count, X-Has-More, X-Rouse-Message, X-Rouse-Turn, X-Rouse-Generation, X-Session-Directory-Warning")
	}
	if r.Method != http.MethodOptions {
		return false
	}
	if allowed {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, PUT, PATCH, POST, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-OpenCode-Directory")
		h.Set("Access-Control-Max-Age", "86400")
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// tooLarge bounds the body. A body that is only somewhat too large is read
// away first, because many clients cannot take an answer while they write.
func (d *Door) tooLarge(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength > d.cfg.MaxBody {
		if r.ContentLength <= 4*d.cfg.MaxBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTimeout))
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.Header().Set("Connection", "close")
		WriteJSON(w, http.StatusRequestEntityTooLarge, tooLarge(d.cfg.MaxBody))
		return true
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, d.cfg.MaxBody)
	}
	return false
}

func (d *Door) authenticate(r *http.Request) (Principal, bool) {
	if d.cfg.NoAuth {
		return Principal{Scope: User}, true
	}
	for _, token := range presented(r) {
		if token == "" {
			continue
		}
		if p, ok := identify(d.cfg.Token, token); ok {
			return p, true
		}
	}
	return Principal{}, slices.Contains(open, r.URL.Path)
}

// recover turns a panic into a 500 with a reference; the stack goes to the log.
func (d *Door) recover(w *seenWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	ref := newRef()
	d.cfg.Log.Error("request panicked", "ref", ref, "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
	if w.wrote {
		panic(http.ErrAbortHandler) // too late for an answer: cut the connection
	}
	WriteJSON(w, http.StatusInternalServerError, internalProblem(ref))
}

// seenWriter knows whether an answer has begun.
type seenWriter struct {
	http.ResponseWriter
	wrote bool
}

func (w *seenWriter) WriteHeader(status int) {
	w.wrote = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenWriter) Write(p []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func asTooBig(err error) (*http.MaxBytesError, bool) {
	var big *http.MaxBytesError
	ok := errors.As(err, &big)
	return big, ok
}
