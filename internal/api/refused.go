package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// newStatusError is what is said when a request does not fit its schema: one
// sentence that names the field, as on OpenCode's wire.
func newStatusError(status int, message string, errs ...error) *statusError {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	data := ProblemData{Message: sentences[message]}
	if data.Message == "" {
		data.Message = message
	}
	for _, err := range errs {
		if d, ok := err.(huma.ErrorDetailer); ok && err != nil {
			data = misfit(status, d.ErrorDetail())
			break
		}
	}
	return &statusError{status: status, body: Problem{Name: nameOf(status), Data: data}, text: data.Message}
}

// sentences say in our words what huma says in its own.
var sentences = map[string]string{
	"request body is required": "the body is missing: send a JSON object",
	"expected object":          "expected a JSON object",
	"unexpected property":      "there is no such field",
	"invalid integer":          "expected a whole number",
}

// misfit says what is wrong with a request, from huma's first finding.
func misfit(status int, d *huma.ErrorDetail) ProblemData {
	field := fieldOf(d.Location)
	body, unread := d.Value.(string)
	switch {
	case status == http.StatusUnsupportedMediaType:
		_, sent, _ := strings.Cut(d.Message, ": ")
		return ProblemData{Field: "Content-Type", Message: "Content-Type: the body must be sent as application/json, not as " + sent}
	case sentences[d.Message] != "":
		return ProblemData{Field: field, Message: field + ": " + sentences[d.Message]}
	case unread && d.Location == "body":
		if at, found := Undecodable([]byte(body)); found {
			return ProblemData{Field: cmp.Or(at, field), Message: cmp.Or(at, "the body") + ": it is not valid UTF-8"}
		}
		return ProblemData{Field: field, Message: "the body is not valid JSON: " + faultIn(body)}
	}
	return ProblemData{Field: field, Message: field + ": " + d.Message}
}

// faultIn says where a body stops being JSON.
func faultIn(body string) string {
	var whole json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal([]byte(body), &whole); !errors.As(err, &syntax) || strings.HasPrefix(syntax.Error(), "unexpected end") {
		return "it ends too early"
	}
	return "at byte " + strconv.FormatInt(syntax.Offset, 10)
}
