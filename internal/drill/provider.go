package drill

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options of a provider; the zero value is the usual one.
type Options struct {
	// Now is the clock of announced resets; nil is time.Now.
	Now func() time.Time
	// Delay is waited before each answer, where the prompt names none.
	Delay time.Duration
	// Seen, if set, is told of each call of a model.
	Seen func(model, purpose string)
}

// dialect is how one vendor's API is spoken.
type dialect struct {
	parse  func(body []byte, r *http.Request) (*request, error)
	frames func(http.ResponseWriter, *request) frames
	// limited refuses a call because a plan's limit is used up.
	limited func(w http.ResponseWriter, now time.Time, left time.Duration, model string)
}

var (
	chatAPI     = dialect{parse: parseRequest, frames: openaiFrames, limited: planLimit}
	messagesAPI = dialect{parse: parseRequest, frames: anthropicFrames, limited: planLimit}
)

// NewProvider makes the simulated provider: POST /v1/chat/completions,
// /v1/responses and /v1/messages, /v1beta/models/MODEL:streamGenerateContent,
// and GET /v1/models. It asks for no key.
func NewProvider(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &simulation{opts: o, counts: map[string]int{}}
	mux := http.NewServeMux()
	for path, of := range map[string]dialect{"/v1/chat/completions": chatAPI, "/v1/messages": messagesAPI, "/v1/responses": responsesAPI,
		"/v1beta/models/{call}": geminiAPI} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { p.call(w, r, of) })
	}
	mux.HandleFunc("GET /v1/models", p.models)
	return mux
}

type simulation struct {
	opts Options

	mu     sync.Mutex
	counts map[string]int // failures played so far, per turn
}

// maxCounts bounds the memory of failures; when it is full, all start anew.
const maxCounts = 100_000

// failed counts a failure of a kind that ends after n: true as long as it is
// to be played. The count starts anew after that.
func (p *simulation) failed(key string, n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts[key] >= n {
		delete(p.counts, key)
		return false
	}
	if len(p.counts) >= maxCounts {
		clear(p.counts)
	}
	p.counts[key]++
	return true
}

func (p *simulation) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	}
	list := make([]model, 0, len(Models()))
	for _, m := range Models() {
		list = append(list, model{m, "model", "drill"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// refuse answers with a vendor's error body.
func refuse(w http.ResponseWriter, status int, kind, code, message string) {
	writeJSON(w, status, map[string]any{"type": "error", "error": map[string]string{"type": kind, "code": code, "message": message}})
}

const maxRequest = 64 << 20

func (p *simulation) call(w http.ResponseWriter, r *http.Request, of dialect) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large", "the request is larger than 64 MiB")
		return
	}
	if strings.HasSuffix(r.URL.Path, ":countTokens") {
		countTokens(w, body)
		return
	}
	req, err := of.parse(body, r)
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request_error", "invalid_json", "the body is no JSON of this wire")
		return
	}
	if !slices.Contains(Models(), req.model) {
		refuse(w, http.StatusNotFound, "invalid_request_error", "model_not_found", fmt.Sprintf("The model `%s` does not exist; there are %s", req.model, strings.Join(Models(), ", ")))
		return
	}
	if p.opts.Seen != nil {
		p.opts.Seen(req.model, req.purpose)
	}
	d, text := parseDirective(req.prompt)
	req.prompt, req.plays = text, cmp.Or(d.model, req.model)
	if d.delay == 0 {
		d.delay = p.opts.Delay
	}
	if !pause(r.Context(), d.delay) || p.fail(w, r, of, req, &d) {
		return
	}
	p.answer(r.Context(), of.frames(w, req), req, &d)
}

// pause waits; false when the caller went away first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// fail plays the failures that come instead of an answer.
func (p *simulation) fail(w http.ResponseWriter, r *http.Request, of dialect, req *request, d *directive) bool {
	if req.purpose == PurposeTitle && req.plays != Mute {
		return false
	}
	switch req.plays {
	case Mute:
		<-r.Context().Done()
	case Quota:
		left := d.reset
		if left < 0 {
			left = 5*time.Hour - 41*time.Second
		}
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(left.Seconds()))))
		of.limited(w, p.opts.Now(), left, req.model)
	case Rate:
		if !p.failed(req.key, 2) {
			return false
		}
		after := time.Second
		if d.reset > 0 {
			after = d.reset
		}
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
		refuse(w, http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Too many requests. Please try again later.")
	case Auth:
		refuse(w, http.StatusUnauthorized, "authentication_error", "invalid_api_key", "Incorrect API key provided.")
	case Overflow:
		if req.purpose == PurposeCompact {
			return false
		}
		refuse(w, http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.")
	case Capacity:
		refuse(w, 529, "overloaded_error", "overloaded_error", "Overloaded")
	default:
		return false
	}
	return true
}

// planLimit is how a subscription's limit is told. The headers are what makes
// Claude Code end its turn instead of trying on for minutes (measured with
// claude-agent-acp 0.101.0).
func planLimit(w http.ResponseWriter, _ time.Time, left time.Duration, model string) {
	w.Header().Set("X-Should-Retry", "false")
	writeJSON(w, http.StatusTooManyRequests, map[string]any{
		"type":     "error",
		"error":    map[string]string{"type": "GoUsageLimitError", "message": "5-hour usage limit reached for model `" + model + "`. Resets in " + spell(left) + "."},
		"metadata": map[string]string{"limitName": "5 hour"},
	})
}

// spell writes a wait as vendors do.
func spell(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h > 0:
		return fmt.Sprintf("%dhr %dmin", h, m)
	case m > 0:
		return fmt.Sprintf("%dmin %dsec", m, s)
	}
	return fmt.Sprintf("%dsec", s)
}

// Start serves a provider on a free loopback port until stop is called, which
// also ends the streams that still run. baseURL ends with "/v1".
func Start(o Options) (baseURL string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("drill: listen: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serve(ctx, l, NewProvider(o))
	}()
	return "http://" + l.Addr().String() + "/v1", func() { cancel(); <-done }, nil
}

// Serve serves a provider at addr until ctx ends; ready is told the base URL
// once requests are accepted.
func Serve(ctx context.Context, addr string, o Options, ready func(baseURL string)) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("drill: listen: %w", err)
	}
	if ready != nil {
		ready("http://" + l.Addr().String() + "/v1")
	}
	return serve(ctx, l, NewProvider(o))
}

// serve runs a server until ctx ends, and its handlers with it.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if srv.Shutdown(grace) != nil { // handlers see ctx's end; this is for a peer that does not read
		_ = srv.Close()
	}
	<-ended
	return nil
}
