package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"rouse"
)

// MaxBody is the largest request body by default: 10 MB.
const MaxBody = 10 << 20

const (
	headerTimeout = 10 * time.Second // a client that is slow to say what it wants
	bodyTimeout   = 60 * time.Second // … and slow to send it
	idleTimeout   = 120 * time.Second
	maxHeader     = 64 << 10
)

// NewServer makes the server with its bounds on headers and slow clients.
// There is no overall read or write timeout: event streams and synchronous
// prompts are long on purpose, and bound their own writes. ctx is the base of
// every request's context.
func NewServer(ctx context.Context, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// BodyHash tells one request from another under the same idempotency key.
func BodyHash(pieces ...string) string {
	sum := sha256.New()
	for _, p := range pieces {
		fmt.Fprintf(sum, "%d:%s", len(p), p) // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// ReadBody reads a whole body within the door's bound and a minute. The error
// is *http.MaxBytesError beyond the bound, else Invalid.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil, nil
	}
	control := http.NewResponseController(w)
	bounded := control.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil
	body, err := io.ReadAll(r.Body)
	if err == nil {
		if bounded { // left behind it would look like the client's leaving while a long answer is prepared
			_ = control.SetReadDeadline(time.Time{})
		}
		return body, nil
	}
	// The deadline stays: the server would wait for the rest of the body.
	w.Header().Set("Connection", "close")
	if big, ok := asTooBig(err); ok {
		return nil, big
	}
	return nil, &rouse.Error{Kind: rouse.Invalid, Op: "read body", Msg: "the body could not be read to its end", Err: err}
}
