// Package client speaks to a running server: OpenCode's wire for sessions,
// prompts, messages, requests and events, and Rouse's own under /rouse/v1/.
// It starts no goroutines; every call ends with its context.
package client

import (
	"bytes"
	"context"
	"encoding/json"
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

// maxAnswer bounds an answer that is read whole: a transcript page may be big.
const maxAnswer = 256 << 20

// Client calls one server. It is safe for concurrent use.
type Client struct {
	base  string // without a slash at its end
	token string
	http  *http.Client
}

// New makes a client of the server at base ("http://127.0.0.1:4096"); token
// may be empty. The address is Invalid when it is not http or https.
func New(base, token string) (*Client, error) {
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, rouse.FieldError("client: new", "server", "server %q: use an address such as http://127.0.0.1:4096", rouse.Clip(base, 200))
	}
	if token == "" && u.User != nil {
		token, _ = u.User.Password()
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		Proxy:                 http.ProxyFromEnvironment,
	}
	return &Client{base: strings.TrimRight(u.String(), "/"), token: token, http: &http.Client{Transport: transport}}, nil
}

// URL is the server's address.
func (c *Client) URL() string { return c.base }

// Token is what the client shows at the door.
func (c *Client) Token() string { return c.token }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ErrUnreachable is in the chain of every error of a server that did not
// answer at all: nothing listens, the name is unknown, the connection broke.
var ErrUnreachable = errors.New("server unreachable")

// Refusal is in the chain of every error that a server answered.
type Refusal struct {
	Status int
	Name   string // the server's name of the error: "NotFoundError", "WallOpen" …
	// Data is the body's data object as it came.
	Data json.RawMessage
	// RetryAfter is the server's wish; zero is none.
	RetryAfter time.Duration
}

// Error names the status.
func (r *Refusal) Error() string { return http.StatusText(r.Status) + " " + r.Name }

// call is one request. in and out may be nil; in is sent as JSON.
type call struct {
	method, path string
	query        url.Values
	header       http.Header
	in, out      any
	// bound is how long the server may take to answer; 0 is atOnce for what is
	// read, and no bound for what is done.
	bound time.Duration
}

// atOnce is the bound of calls that a server answers at once: one that takes
// longer is stopped or stuck. unbounded is for those that may take long.
const (
	atOnce    = 30 * time.Second
	unbounded = -1
)

// errSilent is why a call ends whose server did not answer within its bound.
var errSilent = errors.New("the server took the connection and did not answer")

func (c *Client) request(ctx context.Context, k call) (*http.Request, error) {
	const op = "client: request"
	if strings.Contains(k.path, "//") || strings.HasSuffix(k.path, "/") { // it would name another route
		return nil, rouse.Errorf(rouse.Invalid, op, "an id is empty")
	}
	var body io.Reader
	if k.in != nil {
		data, err := json.Marshal(k.in)
		if err != nil {
			return nil, rouse.Wrap(op, err)
		}
		if mutilated(data) {
			return nil, rouse.Errorf(rouse.Invalid, op, "the text is not valid UTF-8: convert it first (iconv -t utf-8)")
		}
		body = bytes.NewReader(data)
	}
	target := c.base + k.path
	if len(k.query) > 0 {
		target += "?" + k.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, k.method, target, body)
	if err != nil {
		return nil, rouse.Wrap(op, err)
	}
	for name, values := range k.header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// do makes the call and gives the answer's headers. The error is a rouse.Error
// with the server's own message, a Refusal or ErrUnreachable in its chain.
func (c *Client) do(ctx context.Context, k call) (http.Header, error) {
	bound := k.bound
	if bound == 0 && k.method == http.MethodGet {
		bound = atOnce
	}
	if bound > 0 {
		bounded, cancel := context.WithTimeoutCause(ctx, bound, errSilent)
		defer cancel()
		ctx = bounded
	}
	req, err := c.request(ctx, k)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return resp.Header, refusal(resp)
	}
	if k.out == nil || resp.StatusCode == http.StatusNoContent {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	} else {
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err == nil {
			return resp.Header, decode(data, k.out)
		}
	}
	if err != nil {
		return resp.Header, c.unreachable(ctx, err)
	}
	return resp.Header, nil
}

func decode(data []byte, out any) error {
	if raw, ok := out.(*json.RawMessage); ok {
		*raw = data
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &rouse.Error{Kind: rouse.Upstream, Op: "client: decode", Err: err,
			Msg: "the server's answer is not what was expected; is it a Rouse server?"}
	}
	return nil
}

// unreachable classes a failure of the transport: the caller's own end stays
// what it is.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return &rouse.Error{Kind: rouse.Unavailable, Op: "client: request", Err: errors.Join(ErrUnreachable, errSilent, err),
			Msg: "the server at " + c.base + " took the connection and does not answer: it is stopped, or it is no Rouse server"}
	}
	if ctx.Err() != nil {
		return rouse.Wrap("client: request", context.Cause(ctx))
	}
	return &rouse.Error{Kind: rouse.Unavailable, Op: "client: request", Err: errors.Join(ErrUnreachable, err),
		Msg: "no server answers at " + c.base + ": `rouse serve` starts one"}
}

// kinds of the statuses that a server answers with.
var kinds = map[int]rouse.Kind{
	http.StatusBadRequest:            rouse.Invalid,
	http.StatusUnauthorized:          rouse.Denied,
	http.StatusForbidden:             rouse.Denied,
	http.StatusNotFound:              rouse.NotFound,
	http.StatusConflict:              rouse.Conflict,
	http.StatusRequestEntityTooLarge: rouse.Invalid,
	http.StatusMisdirectedRequest:    rouse.Denied,
	http.StatusUnprocessableEntity:   rouse.Mismatch,
	http.StatusTooManyRequests:       rouse.Full,
	http.StatusNotImplemented:        rouse.Unsupported,
	http.StatusBadGateway:            rouse.Upstream,
	http.StatusServiceUnavailable:    rouse.Full,
}

// mutilated says that the JSON was made of text that is not UTF-8: the encoder
// writes an escape for what it could not keep, and no other character so.
func mutilated(data []byte) bool {
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(`\ufffd`))
		if i < 0 {
			return false
		}
		at += i
		backslashes := 0
		for at-backslashes-1 >= 0 && data[at-backslashes-1] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 { // else it is a backslash that somebody wrote
			return true
		}
		at++
	}
}

// stranger says that an answer is not of a Rouse server: it names each problem.
// Where something fails, a proxy before it may be what answers.
func stranger(status int, body *problem) bool {
	return status < http.StatusInternalServerError && status != http.StatusUnauthorized && body.Name == "" && body.Tag == ""
}

// refusal reads an error answer. Bodies without words get some.
func refusal(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // a torn body is an error without words
	var body problem
	_ = json.Unmarshal(data, &body) // so is one that is not JSON
	var facts problemData
	_ = json.Unmarshal(body.Data, &facts)
	r := &Refusal{Status: resp.StatusCode, Name: firstOf(body.Name, body.Tag), Data: body.Data}
	if wait, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil {
		r.RetryAfter = wait
	}
	kind, ok := kinds[resp.StatusCode]
	if !ok {
		kind = rouse.Internal
	}
	msg := firstOf(facts.Message, body.Message)
	if facts.Ref != "" {
		msg = strings.TrimSuffix(firstOf(msg, "The server failed"), ".") + " (reference " + facts.Ref + ")"
	}
	if msg == "" || resp.StatusCode == http.StatusUnauthorized {
		msg = wordsFor(resp.StatusCode)
	}
	if stranger(resp.StatusCode, &body) {
		u := resp.Request.URL
		msg = fmt.Sprintf("what answers at %s://%s is no Rouse server: it says %d %s to %s", u.Scheme, u.Host, resp.StatusCode, http.StatusText(resp.StatusCode), u.Path)
	} else if resp.StatusCode == http.StatusUnauthorized && resp.Request.Header.Get("Authorization") != "" {
		msg = "the server wants a token, and not this one: " + tokenHint
	}
	return &rouse.Error{Kind: kind, Op: "client: " + resp.Request.Method, Msg: msg, Field: facts.Field, Err: r}
}

const tokenHint = "give its own with --token or ROUSE_TOKEN, or use the data folder of the server"

func wordsFor(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "the server wants a token: " + tokenHint
	case http.StatusMisdirectedRequest:
		return "the server does not answer under this host name"
	}
	return "the server answered " + http.StatusText(status)
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// RefusalOf gives the server's refusal in err's chain.
func RefusalOf(err error) (*Refusal, bool) {
	var r *Refusal
	ok := errors.As(err, &r)
	return r, ok
}
