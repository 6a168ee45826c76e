package rouse

import (
	"context"
	"errors"
	"fmt"
)

// Kind classes an Error; it decides the HTTP status and the exit code, and
// nothing else does. Kinds are append-only: they cross the wire.
type Kind string

// The kinds. What is not one of them is Internal and is never shown raw.
const (
	Internal    Kind = "internal"    // a defect or an unexpected failure; 500
	Invalid     Kind = "invalid"     // the caller's input; names the field; 400
	NotFound    Kind = "not_found"   // no such session, message, request …; 404
	Conflict    Kind = "conflict"    // paused, busy, superseded, wall open; 409
	Mismatch    Kind = "mismatch"    // idempotency key used with another body; 422
	Denied      Kind = "denied"      // authenticated, but not allowed; 403
	Unsupported Kind = "unsupported" // known, but not offered here; 501
	Full        Kind = "full"        // a bound is reached; 503 with Retry-After
	Unavailable Kind = "unavailable" // database gone, shutting down; 503
	Fenced      Kind = "fenced"      // the writer no longer owns the turn; never leaves the lane
	Upstream    Kind = "upstream"    // a provider or agent failed; 502
)

// Error is the only error type that crosses a package border on purpose. Msg
// is safe to show to a person; Err is for the log.
type Error struct {
	Kind  Kind
	Op    string // operation, once per package: "store: start turn"
	Msg   string // safe, complete sentence for a person; may be empty
	Field string // the input field at fault, if one is
	Err   error
}

// Error joins operation, message and cause.
func (e *Error) Error() string {
	s := e.Op
	if e.Msg != "" {
		s += ": " + e.Msg
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error whose message is safe to show.
func Errorf(kind Kind, op, format string, args ...any) *Error {
	return &Error{Kind: kind, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// FieldError is an Invalid error about one input field.
func FieldError(op, field, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Op: op, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// Wrap adds an operation to err and keeps its kind and safe message; nil stays
// nil. An error that is no *Error becomes Internal.
func Wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: KindOf(err), Op: op, Err: err}
}

// KindOf is the kind of the first *Error in err's chain. A cancelled or
// expired context is Unavailable; everything else Internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Unavailable
	}
	return Internal
}

// SafeMessage is what a person may see of err: the first safe message in the
// chain, or "" for an error that has none.
func SafeMessage(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Msg != "" {
			return e.Msg
		}
		err = e.Err
	}
	return ""
}

// FieldOf is the first named field in err's chain, or "".
func FieldOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Field != "" {
			return e.Field
		}
		err = e.Err
	}
	return ""
}
