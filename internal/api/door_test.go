package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "correct horse battery staple"

// rows answers for a few sessions: child was launched by ses_boss.
type rows struct{}

func (rows) Session(_ context.Context, id string) (*rouse.Session, error) {
	switch id {
	case "ses_child":
		return &rouse.Session{ID: id, Orchestrator: "ses_boss"}, nil
	case "ses_boss", "ses_other":
		return &rouse.Session{ID: id}, nil
	}
	return nil, rouse.Errorf(rouse.NotFound, "test", "Session not found: %s", id)
}

func newDoor(t *testing.T, change func(*DoorConfig), next http.HandlerFunc) *Door {
	t.Helper()
	cfg := DoorConfig{Token: secret, Sessions: rows{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Rate: -1}
	if change != nil {
		change(&cfg)
	}
	if next == nil {
		next = func(w http.ResponseWriter, r *http.Request) {
			WriteJSON(w, 200, map[string]string{"scope": string(Who(r.Context()).Scope), "session": Who(r.Context()).Session})
		}
	}
	d, err := NewDoor(cfg, next)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func knock(d http.Handler, method, url string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, body)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestDoorHost(t *testing.T) {
	d := newDoor(t, func(c *DoorConfig) { c.NoAuth, c.Hosts = true, []string{"board.example"} }, nil)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:4096": 200, "LOCALHOST": 200, "127.0.0.1:4096": 200, "[::1]:4096": 200, "127.8.8.8": 200,
		"board.example": 200, "Board.Example:80": 200, "evil.example": 421, "": 421, "localhost.evil.example": 421, "10.0.0.1": 421, "board.example.evil": 421,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("Host %q: %d, want %d", host, w.Code, want)
		}
	}
	// The address that the connection arrived on is no foreign name.
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "10.0.0.1:4096"
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP("10.0.0.1"), Port: 4096})))
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Errorf("own address: %d", w.Code)
	}
	// It comes before everything else, also before what needs no token.
	r = httptest.NewRequest("GET", "http://evil.example/healthz", nil)
	w = httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != 421 {
		t.Errorf("/healthz under a foreign name: %d", w.Code)
	}
}

func TestDoorAuthentication(t *testing.T) {
	d := newDoor(t, nil, nil)
	encoded := base64.StdEncoding.EncodeToString([]byte("opencode:" + secret))
	for name, c := range map[string]struct {
		url     string
		headers []string
		want    int
	}{
		"none":           {"/session", nil, 401},
		"bearer":         {"/session", []string{"Authorization", "Bearer " + secret}, 200},
		"bearer case":    {"/session", []string{"Authorization", "bearer " + secret}, 200},
		"wrong bearer":   {"/session", []string{"Authorization", "Bearer " + secret + "x"}, 401},
		"empty bearer":   {"/session", []string{"Authorization", "Bearer "}, 401},
		"basic":          {"/session", []string{"Authorization", basic("opencode", secret)}, 200},
		"basic any user": {"/session", []string{"Authorization", basic("whoever", secret)}, 200},
		"wrong password": {"/session", []string{"Authorization", basic("opencode", "bad")}, 401},
		"empty password": {"/session", []string{"Authorization", basic("opencode", "")}, 401},
		"query":          {"/session?auth_token=" + encoded, nil, 200},
		"raw query":      {"/session?auth_token=" + secret[:7], nil, 401},
		"cookie":         {"/session", []string{"Cookie", Cookie + "=" + agentless()}, 401},
		"health":         {"/healthz", nil, 200},
		"ready":          {"/readyz", nil, 200},
		"global health":  {"/global/health", nil, 401},
		"forged agent":   {"/session", []string{"Authorization", "Bearer rat_ses_boss.AAAA"}, 401},
		"agent no dot":   {"/session", []string{"Authorization", "Bearer rat_ses_boss"}, 401},
		"other secret":   {"/session", []string{"Authorization", "Bearer " + AgentToken("other", "ses_boss")}, 401},
	} {
		w := knock(d, "GET", "http://localhost"+c.url, nil, c.headers...)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
		if w.Code == 401 {
			var p Problem
			if w.Header().Get("WWW-Authenticate") != `Basic realm="Secure Area"` || json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Data.Message == "" {
				t.Errorf("%s: %v %s", name, w.Header(), w.Body)
			}
		}
	}
	r := httptest.NewRequest("GET", "http://localhost/session", nil)
	r.AddCookie(&http.Cookie{Name: Cookie, Value: "plain-token", Quoted: false})
	w := httptest.NewRecorder()
	newDoor(t, func(c *DoorConfig) { c.Token = "plain-token" }, nil).ServeHTTP(w, r)
	if w.Code != 200 {
		t.Errorf("cookie: %d", w.Code)
	}
	if _, err := NewDoor(DoorConfig{}, http.NotFoundHandler()); err == nil {
		t.Error("an empty token opens the door")
	}
}

func agentless() string { return "nothing" }

func TestDoorScopes(t *testing.T) {
	d := newDoor(t, nil, nil)
	agent, metrics := AgentToken(secret, "ses_boss"), MetricsToken(secret)
	for _, c := range []struct {
		token, method, path string
		want                int
	}{
		{agent, "POST", "/rouse/v1/launch", 200},
		{agent, "POST", "/prompt_async", 200},
		{agent, "POST", "/session/ses_child/prompt_async", 200},
		{agent, "POST", "/session/ses_child/message", 200},
		{agent, "POST", "/session/ses_child/abort", 200},
		{agent, "POST", "/session/ses_other/prompt_async", 403},
		{agent, "POST", "/session/ses_boss/prompt_async", 403},
		{agent, "POST", "/session/ses_nope/abort", 404},
		{agent, "GET", "/session/ses_child/message", 403},
		{agent, "GET", "/rouse/v1/sessions/ses_boss/identity", 200},
		{agent, "GET", "/rouse/v1/sessions/ses_child/identity", 403},
		{agent, "GET", "/rouse/v1/sessions/ses_child", 200},
		{agent, "GET", "/rouse/v1/sessions/ses_boss", 200},
		{agent, "GET", "/rouse/v1/sessions/ses_other", 403},
		{agent, "GET", "/rouse/v1/sessions", 403},
		{agent, "GET", "/event", 403},
		{agent, "GET", "/config", 403},
		{agent, "DELETE", "/session/ses_child", 403},
		{agent, "GET", "/nope", 403},
		{agent, "GET", "/healthz", 200},
		{metrics, "GET", "/metrics", 200},
		{metrics, "POST", "/metrics", 403},
		{metrics, "GET", "/session", 403},
		{secret, "DELETE", "/session/ses_child", 200},
	} {
		w := knock(d, c.method, "http://localhost"+c.path, nil, "Authorization", "Bearer "+c.token)
		if w.Code != c.want {
			t.Errorf("%s %s with %.8s…: %d, want %d: %s", c.method, c.path, c.token, w.Code, c.want, w.Body)
		}
	}
	boss := context.WithValue(t.Context(), principalKey{}, Principal{Scope: Agent, Session: "ses_boss"})
	if err := MayDrive(boss, &rouse.Session{ID: "ses_other"}); rouse.KindOf(err) != rouse.Denied {
		t.Errorf("drives a stranger: %v", err)
	}
	if err := MayDrive(t.Context(), &rouse.Session{ID: "ses_other"}); err == nil {
		t.Error("nobody may drive")
	}
}

func TestDoorCrossOrigin(t *testing.T) {
	d := newDoor(t, func(c *DoorConfig) { c.NoAuth, c.Origins = true, []string{"https://board.example"} }, nil)
	for _, c := range []struct {
		method string
		head   []string
		want   int
	}{
		{"POST", nil, 200},
		{"POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"POST", []string{"Origin", "https://evil.example"}, 403},
		{"POST", []string{"Origin", "http://localhost"}, 200},
		{"POST", []string{"Origin", "https://board.example"}, 200},
		{"GET", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 200},
	} {
		w := knock(d, c.method, "http://localhost/session", nil, c.head...)
		if w.Code != c.want {
			t.Errorf("%s %v: %d, want %d", c.method, c.head, w.Code, c.want)
		}
		if allowed := w.Header().Get("Access-Control-Allow-Origin"); allowed != "" && allowed != "https://board.example" {
			t.Errorf("%v: allows %q", c.head, allowed)
		}
	}
	w := knock(d, "OPTIONS", "http://localhost/session", nil, "Origin", "https://board.example", "Access-Control-Request-Method", "POST")
	if w.Code != 204 || !strings.Contains(w.Header().Get("Access-Control-Allow-Methods"), "PATCH") {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	w = knock(d, "OPTIONS", "http://localhost/session", nil, "Origin", "https://evil.example", "Access-Control-Request-Method", "POST")
	if w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("foreign preflight: %v", w.Header())
	}
}

func TestDoorPanics(t *testing.T) {
	var log bytes.Buffer
	d := newDoor(t, func(c *DoorConfig) { c.NoAuth, c.Log = true, slog.New(slog.NewTextHandler(&log, nil)) }, func(http.ResponseWriter, *http.Request) {
		panic("secret detail")
	})
	w := knock(d, "GET", "http://localhost/session", nil)
	var p Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 500 || p.Data.Ref == "" || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), p.Data.Ref) || !strings.Contains(log.String(), "secret detail") {
		t.Errorf("log: %s", log.String())
	}
	status, body := ProblemOf(slog.New(slog.NewTextHandler(&log, nil)), httptest.NewRequest("GET", "/x", nil), &rouse.Error{Kind: rouse.Internal, Op: "x", Err: io.ErrUnexpectedEOF})
	if raw, _ := Marshal(body); status != 500 || strings.Contains(string(raw), "EOF") || !strings.Contains(log.String(), body.Data.Ref) {
		t.Errorf("%d %+v", status, body)
	}
}

func TestDoorBounds(t *testing.T) {
	d := newDoor(t, func(c *DoorConfig) { c.NoAuth, c.MaxBody = true, 100 }, func(w http.ResponseWriter, r *http.Request) {
		body, err := ReadBody(w, r)
		if err != nil {
			Fail(w, r, slog.Default(), err)
			return
		}
		WriteJSON(w, 200, len(body))
	})
	for size, want := range map[int]int{0: 200, 100: 200, 101: 413, 1000: 413} {
		if w := knock(d, "POST", "http://localhost/x", strings.NewReader(strings.Repeat("x", size))); w.Code != want {
			t.Errorf("%d bytes: %d", size, w.Code)
		}
	}
	// Without a length the bound is met while reading.
	r := httptest.NewRequest("POST", "http://localhost/x", io.MultiReader(strings.NewReader(strings.Repeat("x", 500))))
	r.ContentLength = -1
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != 413 {
		t.Errorf("without length: %d %s", w.Code, w.Body)
	}
}

func TestRates(t *testing.T) {
	l := &rates{buckets: map[Principal]*bucket{}, limit: func(Principal) (float64, float64) { return 10, 3 }}
	now, p := time.Unix(1000, 0), Principal{Scope: User}
	for i := range 3 {
		if ok, _ := l.take(p, now); !ok {
			t.Fatalf("request %d of the burst refused", i)
		}
	}
	ok, wait := l.take(p, now)
	if ok || wait <= 0 || wait > 100*time.Millisecond {
		t.Errorf("%v %v", ok, wait)
	}
	if ok, _ := l.take(Principal{Scope: Agent, Session: "s"}, now); !ok {
		t.Error("one token's rate holds another one up")
	}
	if ok, _ := l.take(p, now.Add(wait)); !ok {
		t.Error("refused after the wait it named")
	}
	for i := range 2 * maxBuckets {
		l.take(Principal{Scope: Agent, Session: time.Duration(i).String()}, now.Add(time.Duration(i)*time.Second))
	}
	if len(l.buckets) > maxBuckets+1 {
		t.Errorf("%d buckets", len(l.buckets))
	}
	d := newDoor(t, func(c *DoorConfig) { c.NoAuth, c.Rate, c.Burst = true, 0.001, 1 }, nil)
	knock(d, "GET", "http://localhost/session", nil)
	if w := knock(d, "GET", "http://localhost/session", nil); w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := knock(d, "GET", "http://localhost/healthz", nil); w.Code != 200 {
		t.Errorf("/healthz: %d", w.Code)
	}
}
