package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"rouse"
)

// Config describes one provider.
type Config struct {
	ID   string // as in the configuration, for errors
	Wire string // OpenAI or Anthropic
	// BaseURL is what the wire's path is appended to: "https://api.openai.com/v1".
	BaseURL string
	// Key gives the API key when it is needed; nil or "" sends none.
	Key func(context.Context) (string, error)
	// Headers are set on every request; they win over the wire's own.
	Headers map[string]string
	// IdleTimeout ends a call after so long without a byte; 0 never does.
	IdleTimeout time.Duration
	// Timeout ends a call after so long in all; 0 never does.
	Timeout time.Duration
	// Body are further fields of every request's body.
	Body map[string]any
	// Transport carries the calls; nil is one that all providers share.
	Transport http.RoundTripper
}

// Client calls one provider. It is safe for concurrent use.
type Client struct {
	cfg    Config
	url    string
	wire   wire
	http   *http.Client
	policy requestPolicy
}

// requestPolicy is what differs between hosts of one wire.
type requestPolicy struct {
	completionTokens bool // "max_completion_tokens" instead of "max_tokens"
}

// wire is one protocol: how a request is written and an answer read.
type wire interface {
	path() string
	authorize(h http.Header, key string)
	encode(cfg *Config, policy requestPolicy, r *Request) ([]byte, error)
	decoder(yield func(Delta)) decoder
}

// decoder folds the events of one answer.
type decoder interface {
	// event takes one event. errDone ends the answer; an inStreamError is the
	// provider's; any other error means that the event makes no sense.
	event(ev event) error
	// whole takes an answer that came as one JSON document.
	whole(body []byte) error
	// finish completes the open calls and gives the result; a result without
	// Finish is an answer that was cut off.
	finish() Result
	// finished reports that the finish reason is known.
	finished() bool
	emitted() bool
}

// shared carries the calls of all providers: many streams to few hosts, each
// with small buffers, never compressed (a compressed stream arrives in lumps).
var shared = NewTransport()

// NewTransport makes a transport fit for a thousand concurrent streams.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          2048,
		MaxIdleConnsPerHost:   1024,
		IdleConnTimeout:       60 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
		ReadBufferSize:        4 << 10,
		WriteBufferSize:       4 << 10,
	}
}

// CloseIdle closes the shared transport's idle connections.
func CloseIdle() { shared.CloseIdleConnections() }

// New checks the configuration; errors are Invalid and name the field.
func New(cfg Config) (*Client, error) {
	const op = "provider: new"
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, rouse.FieldError(op, "baseURL", "provider %s: the base URL must be an http or https URL", cfg.ID)
	}
	c := &Client{cfg: cfg}
	switch cfg.Wire {
	case OpenAI:
		c.wire = openaiWire{}
		c.policy.completionTokens = u.Hostname() == "api.openai.com"
	case Anthropic:
		c.wire = anthropicWire{}
	default:
		return nil, rouse.FieldError(op, "wire", "provider %s: wire %q: use %s or %s", cfg.ID, cfg.Wire, OpenAI, Anthropic)
	}
	u.Path = strings.TrimRight(u.Path, "/") + c.wire.path()
	c.url = u.String()
	t := cfg.Transport
	if t == nil {
		t = shared
	}
	// A redirect would carry the key to another place: it is an answer like
	// any other that is not 2xx.
	c.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// ID is the provider's id.
func (c *Client) ID() string { return c.cfg.ID }

// Times that are given for courtesy once the answer itself is complete.
const (
	usageGrace = 10 * time.Second       // after the finish reason, for the usage
	drainGrace = 100 * time.Millisecond // after the end mark, to keep the connection
	errorGrace = 10 * time.Second       // for the body of a failed answer
)

// Stream makes one call and gives every piece to yield, in order, on the
// calling goroutine; a slow yield slows the stream. The error is a *CallError,
// or the cause of ctx's end.
func (c *Client) Stream(ctx context.Context, r Request, yield func(Delta)) (Result, error) {
	body, err := c.wire.encode(&c.cfg, c.policy, &r)
	if err != nil {
		return Result{}, &CallError{Kind: Unsendable, Err: err}
	}
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &idle{timeout: c.cfg.IdleTimeout, cancel: cancel}
	if r.IdleTimeout > 0 {
		w.timeout = r.IdleTimeout
	}
	defer w.stop()
	key := ""
	if c.cfg.Key != nil {
		if key, err = c.cfg.Key(call); err != nil {
			if ctx.Err() != nil {
				return Result{}, context.Cause(ctx)
			}
			return Result{}, &CallError{Kind: NoKey, Err: fmt.Errorf("key of provider %s: %w", c.cfg.ID, err)}
		}
	}
	req, err := c.request(call, body, key, &r)
	if err != nil {
		return Result{}, &CallError{Kind: Unsendable, Err: err}
	}
	w.watch()
	if c.cfg.Timeout > 0 {
		whole := time.AfterFunc(c.cfg.Timeout, func() { cancel(errTimeout) })
		defer whole.Stop()
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Result{}, c.failed(ctx, call, TransportFail, nil, false, err)
	}
	defer func() { _ = resp.Body.Close() }()
	w.r = resp.Body
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		w.grace(errorGrace)
		text, _ := io.ReadAll(io.LimitReader(w, maxErrorBody))
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		return Result{}, &CallError{Kind: HTTPError, Status: resp.StatusCode, Header: resp.Header, Body: text}
	}
	return c.read(ctx, call, w, resp, yield)
}

func (c *Client) request(ctx context.Context, body []byte, key string, r *Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "rouse/"+rouse.Version)
	c.wire.authorize(req.Header, key)
	for k, v := range c.cfg.Headers {
		req.Header.Set(k, v)
	}
	for k, v := range r.Header {
		req.Header[k] = v
	}
	return req, nil
}

// read folds the body of a 2xx answer. What it is shows in its first byte, not
// in its content type: servers label streams as JSON and error pages as streams.
func (c *Client) read(ctx, call context.Context, w *idle, resp *http.Response, yield func(Delta)) (Result, error) {
	s := newSSEReader(w)
	d := c.wire.decoder(yield)
	switch first := s.peek(1); {
	case len(first) == 1 && (first[0] == '{' || first[0] == '['):
		return c.document(ctx, call, s, d, resp)
	case len(first) == 1 && first[0] == '<':
		s.drain(maxErrorBody)
		return Result{}, &CallError{Kind: Garbage, Status: resp.StatusCode, Header: resp.Header, Body: s.rest(), Err: errors.New("an HTML page instead of an answer")}
	}
	waiting := false
	for {
		ev, ok := s.next()
		if !ok {
			break
		}
		err := d.event(ev)
		if errors.Is(err, errDone) {
			w.grace(drainGrace)
			_, _ = io.Copy(io.Discard, w)
			break
		}
		if err != nil {
			if d.finished() || ev.torn { // the answer is complete, or was cut inside an event
				break
			}
			return Result{}, eventError(err, ev, resp, d.emitted())
		}
		if d.finished() && !waiting {
			waiting = true
			w.grace(usageGrace)
		}
	}
	res := d.finish()
	res.Header = resp.Header
	if res.Finish != "" {
		return res, nil
	}
	if s.err != nil && s.err != io.EOF {
		return Result{}, c.failed(ctx, call, Broken, resp, d.emitted(), s.err)
	}
	return Result{}, &CallError{Kind: NoFinish, Status: resp.StatusCode, Header: resp.Header, Emitted: d.emitted(), Err: errors.New("the answer ended without a finish reason")}
}

// document reads an answer that is one JSON document: an error, or an answer of
// a server that does not stream.
func (c *Client) document(ctx, call context.Context, s *sseReader, d decoder, resp *http.Response) (Result, error) {
	s.drain(maxEvent)
	if s.err != nil && s.err != io.EOF {
		return Result{}, c.failed(ctx, call, Broken, resp, false, s.err)
	}
	body := s.rest()
	if err := d.whole(body); err != nil {
		return Result{}, eventError(err, event{data: body}, resp, d.emitted())
	}
	res := d.finish()
	res.Header = resp.Header
	if res.Finish == "" {
		return Result{}, eventError(errors.New("a JSON document that is no answer"), event{data: body}, resp, d.emitted())
	}
	return res, nil
}

// failed makes the error of a call whose connection failed.
func (c *Client) failed(ctx, call context.Context, kind ErrorKind, resp *http.Response, emitted bool, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := &CallError{Kind: kind, Emitted: emitted, Err: err}
	switch {
	case errors.Is(context.Cause(call), errStalled):
		e.Kind, e.Err = Stalled, errStalled
	case errors.Is(context.Cause(call), errTimeout):
		e.Kind, e.Err = Stalled, errTimeout
	case errors.Is(err, errEventTooLong):
		e.Kind = Garbage
	}
	if resp != nil {
		e.Status, e.Header = resp.StatusCode, resp.Header
	}
	var u *url.Error // its text holds the whole URL
	if errors.As(err, &u) && e.Err == err {
		e.Err = u.Err
	}
	return e
}

// eventError makes the error of an event that is an error or makes no sense.
func eventError(err error, ev event, resp *http.Response, emitted bool) error {
	e := &CallError{Kind: Garbage, Status: resp.StatusCode, Header: resp.Header, Emitted: emitted, Err: err}
	if errors.Is(err, errInStream) {
		e.Kind = InStream
	}
	e.Body = bytes.Clone(ev.data[:min(len(ev.data), maxErrorBody)])
	return e
}

// What a decoder answers beside nil.
var (
	errDone     = errors.New("the answer is complete")
	errInStream = errors.New("the provider reported an error inside its answer")
)
