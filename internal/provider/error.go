package provider

import (
	"fmt"
	"net/http"
)

// ErrorKind says where a call broke.
type ErrorKind string

// The kinds of call errors.
const (
	HTTPError     ErrorKind = "http"       // a status other than 2xx
	InStream      ErrorKind = "in_stream"  // an error inside a 2xx answer
	Broken        ErrorKind = "broken"     // the connection was cut in the middle of the answer
	NoFinish      ErrorKind = "no_finish"  // the answer ended without a finish reason
	Stalled       ErrorKind = "stalled"    // no byte for the idle timeout
	TransportFail ErrorKind = "transport"  // no answer at all: DNS, refused, TLS, reset
	Garbage       ErrorKind = "garbage"    // an answer that is no answer of this wire
	NoKey         ErrorKind = "no_key"     // nothing was sent: the key could not be read
	Unsendable    ErrorKind = "unsendable" // nothing was sent: the request cannot be built
)

// maxErrorBody bounds what is kept of a failed answer.
const maxErrorBody = 1 << 20

// CallError is how a call failed. Body is what the provider sent (at most
// 1 MiB, never shown raw); it may hold anything.
type CallError struct {
	Kind   ErrorKind
	Status int // 0 where there was no answer
	Header http.Header
	Body   []byte
	// Emitted: text, reasoning or tool deltas were already given out.
	Emitted bool
	Err     error
}

// Error says kind, status and cause, and nothing that the provider wrote.
func (e *CallError) Error() string {
	s := "provider: " + string(e.Kind)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *CallError) Unwrap() error { return e.Err }
