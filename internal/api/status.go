package api

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"strings"

	"rouse"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// nameOf is the name of a status that no error of ours stands behind.
func nameOf(status int) string {
	for _, p := range problems {
		if p.status == status {
			return p.name
		}
	}
	switch status {
	case http.StatusRequestEntityTooLarge:
		return "PayloadTooLarge"
	case http.StatusUnsupportedMediaType:
		return "UnsupportedMediaType"
	case http.StatusNotAcceptable:
		return "NotAcceptable"
	}
	return "UnknownError"
}

// fieldOf makes "body.model" the field's name in the body.
func fieldOf(location string) string {
	for _, where := range []string{"body.", "query.", "path.", "header."} {
		if rest, ok := strings.CutPrefix(location, where); ok {
			return rest
		}
	}
	return location
}

// problemOf is ProblemOf where there is no request at hand.
func problemOf(ctx context.Context, log *slog.Logger, err error) (int, Problem) {
	r, rerr := http.NewRequestWithContext(ctx, http.MethodGet, prefix, nil)
	if rerr != nil {
		return http.StatusInternalServerError, internalProblem(newRef())
	}
	return ProblemOf(log, r, err)
}

// Verdict says what a session does in one word, from the facts of its row and
// its running turn alone; nil before the first turn. Whether silence means
// anything is not judged here.
func verdictOf(s *rouse.Session, v *rouse.Vitals) *string {
	code := ""
	switch {
	case s.Running != "" && s.WaitingFor != "":
		code = "waiting_" + s.WaitingFor
	case s.Running != "" && v == nil:
		code = "orphaned"
	case s.Running != "" && v.Retry != nil:
		code = "retrying"
	case s.Running != "":
		code = "working"
	case s.Outcome != "":
		code = "settled:" + string(s.Outcome)
	default:
		return nil
	}
	return &code
}
