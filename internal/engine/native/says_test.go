package native

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/provider"
)

// A failure is what it says, whatever its status says, and that alone decides
// whether the call is made again.
func TestFailureIsWhatItSays(t *testing.T) {
	const sse = "text/event-stream"
	for name, c := range map[string]struct {
		status int
		kind   string // content type; JSON by default
		body   string
		after  string // retry-after
		class  rouse.Class
		calls  int
	}{
		"200 with an error inside":       {200, "", `{"error":{"message":"Insufficient balance","code":402}}`, "", rouse.ClassBilling, 1},
		"200, an error in the stream":    {200, sse, "data: {\"error\":{\"type\":\"usage_limit_reached\",\"message\":\"x\"}}\n\n", "", rouse.ClassQuota, 1},
		"200, overloaded in the stream":  {200, sse, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", "", rouse.ClassCapacity, 5},
		"500 for an empty balance":       {500, "", `{"error":{"message":"insufficient balance (1008)"}}`, "", rouse.ClassBilling, 1},
		"403 for a weekly limit":         {403, "", `{"error":{"message":"You've reached your weekly usage limit."}}`, "", rouse.ClassQuota, 1},
		"401 for spent credits":          {401, "", `{"type":"error","error":{"type":"CreditsError","message":"Insufficient balance."}}`, "", rouse.ClassBilling, 1},
		"429 whose reset is far":         {429, "", `{"error":{"code":"rate_limit_exceeded","message":"x"}}`, "90", rouse.ClassRate, 1},
		"429 whose reset is very far":    {429, "", `{"error":{"code":"rate_limit_exceeded","message":"x"}}`, "3600", rouse.ClassQuota, 1},
		"429 whose reset is near":        {429, "", `{"error":{"code":"rate_limit_exceeded","message":"x"}}`, "5", rouse.ClassRate, 5},
		"503":                            {503, "", ``, "", rouse.ClassCapacity, 5},
		"404 for an unknown model":       {404, "", `{"error":{"code":"model_not_found","message":"x"}}`, "", rouse.ClassModel, 1},
		"413, larger than the limit":     {413, "", `{"error":{"code":"rate_limit_exceeded","message":"TPM: Limit 8000, Requested 9001"}}`, "", rouse.ClassContext, 0},
		"400 that nothing is known of":   {400, "", `{"error":{"message":"max_items must be <= 428, got 429"}}`, "", rouse.ClassNone, 1},
		"429 for a limit with no window": {429, "", `{"error":{"code":"insufficient_quota","message":"x"}}`, "", rouse.ClassBilling, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bubbled(t)
				calls := 0
				tr := &inProcess{h: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					calls++
					w.Header().Set("Content-Type", "application/json")
					if c.kind != "" {
						w.Header().Set("Content-Type", c.kind)
					}
					if c.after != "" {
						w.Header().Set("Retry-After", c.after)
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				})}
				t.Cleanup(tr.wg.Wait)
				client, err := provider.New(provider.Config{ID: "drill", Wire: provider.OpenAI, BaseURL: "http://drill.invalid/v1", Transport: tr})
				if err != nil {
					t.Fatal(err)
				}
				b.client = client
				start := time.Now()
				out := b.run(t, b.prompt("echo", "hi", 1))
				if f := out.Failure; out.State != rouse.TurnFailed || f == nil || f.Class != c.class || f.Message == "" || f.Code != rouse.CodeOf(c.class) {
					t.Errorf("%+v %+v", out, f)
				}
				if c.calls > 0 && calls != c.calls { // an overflow is compacted once: more than one call, none a retry
					t.Errorf("%d calls, want %d", calls, c.calls)
				}
				retries := 0
				for _, u := range b.sink.Updates() {
					if _, ok := u.Body.(engine.Retry); ok {
						retries++
					}
				}
				if want := max(0, c.calls-1); retries != want {
					t.Errorf("%d retries, want %d", retries, want)
				}
				if took := time.Since(start); took > 10*time.Minute {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}
