package api

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
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
