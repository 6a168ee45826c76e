package opencode_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// mockModels are the recorded provider's models that the drill does not play.
var mockModels = []string{"e403", "e404", "bad400", "length", "empty", "junk", "breaknow", "plain429", "week429", "free429", "e503"}

// mockProvider answers as the provider of the recordings did.
func mockProvider(t *testing.T) string {
	t.Helper()
	var once atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Model string }
		raw, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(raw, &q) != nil {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		refuse := func(status int, text, code string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error","code":%q}}`, text, code)
		}
		switch q.Model {
		case "e403":
			refuse(http.StatusForbidden, "You do not have access to this model", "forbidden")
		case "e404":
			refuse(http.StatusNotFound, "The model does not exist", "model_not_found")
		case "bad400":
			refuse(http.StatusBadRequest, "Bad request from mock", "bad")
		case "plain429":
			refuse(http.StatusTooManyRequests, "Too many requests", "rate_limit_exceeded")
		case "e503":
			if once.CompareAndSwap(false, true) {
				refuse(http.StatusServiceUnavailable, "Overloaded", "overloaded")
				return
			}
			stream(w, "Hello from mock", "stop")
		case "free429":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"FreeUsageLimitError","message":"Rate limit exceeded. Please try again later."}}`)
		case "week429":
			w.Header().Set("Retry-After", "604800")
			refuse(http.StatusTooManyRequests, "Weekly limit reached", "rate_limit_exceeded")
		case "junk":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {this is not json\n\n")
		case "breaknow":
			panic(http.ErrAbortHandler)
		case "length":
			stream(w, "A long answer", "length")
		case "empty":
			stream(w, "", "stop")
		default:
			stream(w, "Hello from mock", "stop")
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func stream(w http.ResponseWriter, text, finish string) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta, finish string) {
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
	}
	chunk(`{"role":"assistant"}`, "null")
	if text != "" {
		chunk(fmt.Sprintf(`{"content":%q}`, text), "null")
	}
	chunk(`{}`, fmt.Sprintf("%q", finish))
	_, _ = io.WriteString(w, `data: {"id":"c","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":10}}}`+"\n\ndata: [DONE]\n\n")
}
