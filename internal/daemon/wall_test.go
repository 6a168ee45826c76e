package daemon_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"rouse/internal/daemon"
)

// limitedProvider is a provider whose account has a limit, as long as open
// says; asked counts the requests for answers.
type limitedProvider struct {
	*httptest.Server
	asked atomic.Int64
	open  atomic.Bool
	after atomic.Int64 // seconds of retry-after
}

func newLimitedProvider(t *testing.T) *limitedProvider {
	p := &limitedProvider{}
	p.after.Store(3600)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		p.asked.Add(1)
		if p.open.Load() {
			w.Header().Set("Retry-After", fmt.Sprint(p.after.Load()))
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"GoUsageLimitError","message":"5-hour usage limit reached."},"metadata":{"limitName":"5 hour"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"fine"}}]}`+"\n\n"+`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(p.Close)
	return p
}

// withProvider adds it to a server's configuration as "acme". Titles are its
// own small model's: a refused turn must not cost one either.
func withProvider(t *testing.T, opt daemon.Options, p *limitedProvider) daemon.Options {
	t.Helper()
	opt.Paths.Explicit = filepath.Join(t.TempDir(), "rouse.jsonc")
	body := fmt.Sprintf(`{"provider":{"acme":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":%q,"apiKey":"k"},"models":{"one":{},"two":{}}}}}`, p.URL+"/v1")
	if err := os.WriteFile(opt.Paths.Explicit, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return opt
}

type wallAnswer struct {
	ID, Provider, Account, State, Class, Confidence, Source string
	LimitName                                               *string `json:"limit_name"`
	Model                                                   *string
	OpenedAt                                                time.Time  `json:"opened_at"`
	ResetAt                                                 *time.Time `json:"reset_at"`
	ProbeAt                                                 *time.Time `json:"probe_at"`
	Held                                                    []string
}

// The whole life of a wall through the doors of a server that is restarted in
// the middle.
func TestWallThroughTheDoors(t *testing.T) {
	p := newLimitedProvider(t)
	p.open.Store(true)
	data, dir := filepath.Join(t.TempDir(), "data"), t.TempDir()
	r, stop := start(t, withProvider(t, options(t, data), p))
	launch := func(model string, force bool) (status int, name string, wall *wallAnswer) {
		t.Helper()
		var out struct {
			Name string
			Data struct {
				Message, Incident string
				Wall              *wallAnswer
			}
		}
		res := call(t, r, "POST", "/rouse/v1/launch", map[string]any{"model": model, "directory": dir, "prompt": "work", "force": force}, &out)
		if (res.StatusCode == http.StatusBadGateway) != (out.Data.Incident != "") {
			t.Errorf("%d with incident %q", res.StatusCode, out.Data.Incident)
		}
		return res.StatusCode, out.Name, out.Data.Wall
	}
	if status, name, _ := launch("acme/one", false); status != http.StatusBadGateway || name != "LaunchFailed" {
		t.Fatalf("the first launch: %d %s", status, name)
	}
	for i := range 9 {
		model := []string{"acme/one", "acme/two"}[i%2] // the account's limit, not the model's
		if status, name, wall := launch(model, false); status != http.StatusConflict || name != "WallOpen" || wall == nil || wall.Provider != "acme" {
			t.Fatalf("launch %d: %d %s %+v", i, status, name, wall)
		}
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("ten launches cost %d requests", n)
	}
	stop()
	r, _ = start(t, withProvider(t, options(t, data), p))

	var walls struct{ Walls []wallAnswer }
	call(t, r, "GET", "/rouse/v1/walls", nil, &walls)
	if len(walls.Walls) != 1 {
		t.Fatalf("%+v", walls)
	}
	w := walls.Walls[0]
	if w.State != "open" || w.Class != "quota" || w.LimitName == nil || *w.LimitName != "5 hour" || w.Model != nil || w.ResetAt == nil || w.Confidence != "high" ||
		w.Source != "retry_after" || w.Account == "" || time.Until(*w.ResetAt) > time.Hour || w.ProbeAt == nil || w.ProbeAt.Before(*w.ResetAt) {
		t.Errorf("%+v", w)
	}
	var pre struct {
		Usable        bool
		Model, Reason *string
		Wall          *wallAnswer
		Until         *time.Time
		UsableModels  []string `json:"usable_models"`
	}
	call(t, r, "GET", "/rouse/v1/preflight?model=acme/two", nil, &pre)
	if pre.Usable || pre.Reason == nil || *pre.Reason != "wall" || pre.Wall == nil || pre.Until == nil || !pre.Until.Equal(*w.ResetAt) {
		t.Errorf("%+v", pre)
	}
	for _, m := range pre.UsableModels {
		if m == "acme/one" || m == "acme/two" {
			t.Errorf("%s is listed as usable", m)
		}
	}
	for model, want := range map[string]string{"acme/none": "unknown_model", "nobody/x": "not_connected", "drill/echo": ""} {
		pre.Reason = nil
		call(t, r, "GET", "/rouse/v1/preflight?model="+model, nil, &pre)
		if got := pre.Reason; pre.Usable != (want == "") || want != "" && (got == nil || *got != want) {
			t.Errorf("%s: %+v", model, pre)
		}
	}
	var list struct {
		Quota []struct {
			ProviderID, Limit, Confidence string
			ModelID                       *string
			ResetAt                       int64
		}
	}
	call(t, r, "GET", "/provider", nil, &list)
	if len(list.Quota) != 1 || list.Quota[0].ProviderID != "acme" || list.Quota[0].ModelID != nil || list.Quota[0].Limit != "5 hour" || list.Quota[0].ResetAt != w.ResetAt.UnixMilli() {
		t.Errorf("%+v", list)
	}

	// A person's prompt is tried and refused; a forced launch is tried too.
	var s struct{ ID string }
	call(t, r, "POST", "/session?directory="+dir, map[string]any{}, &s)
	var answer struct {
		Info struct {
			Finish string
			Error  *struct{ Name string }
		}
		Parts []struct {
			Type, Text string
			Metadata   map[string]any
		}
	}
	call(t, r, "POST", "/session/"+s.ID+"/message", map[string]any{"model": "acme/one", "parts": []map[string]string{{"type": "text", "text": "me"}}}, &answer)
	if answer.Info.Finish != "error" || answer.Info.Error == nil || answer.Info.Error.Name != "APIError" || len(answer.Parts) != 1 || answer.Parts[0].Metadata["reason"] != "quota" {
		t.Errorf("%+v", answer)
	}
	if status, name, _ := launch("acme/one", true); status != http.StatusBadGateway {
		t.Errorf("forced: %d %s", status, name)
	}
	if n := p.asked.Load(); n != 3 {
		t.Errorf("%d requests", n)
	}
	var incidents struct {
		Incidents []struct{ ID, Kind, Session, Status string }
	}
	call(t, r, "GET", "/rouse/v1/incidents?status=open", nil, &incidents)
	if len(incidents.Incidents) != 3 || incidents.Incidents[0].Kind != "provider_quota_limited" {
		t.Errorf("%+v", incidents)
	}
	if res := call(t, r, "GET", "/rouse/v1/incidents/"+incidents.Incidents[0].ID, nil, nil); res.StatusCode != 200 {
		t.Error(res.Status)
	}
	for _, path := range []string{"/rouse/v1/incidents/inc_none", "/rouse/v1/walls/wal_none"} {
		method := "GET"
		if path == "/rouse/v1/walls/wal_none" {
			method = "DELETE"
		}
		if res := call(t, r, method, path, nil, nil); res.StatusCode != 404 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}

	// What waits behind another turn is listed, and not asked.
	var q struct{ ID string }
	call(t, r, "POST", "/session?directory="+dir, map[string]any{}, &q)
	for _, model := range []string{"drill/hang", "acme/two"} {
		call(t, r, "POST", "/session/"+q.ID+"/prompt_async", map[string]any{"model": model, "parts": []map[string]string{{"type": "text", "text": "later"}}}, nil)
	}
	call(t, r, "POST", "/session/"+q.ID+"/abort", nil, nil)
	call(t, r, "GET", "/rouse/v1/walls", nil, &walls)
	if len(walls.Walls) != 1 || len(walls.Walls[0].Held) != 1 || walls.Walls[0].Held[0] != q.ID || p.asked.Load() != 3 {
		t.Errorf("%+v, %d requests", walls, p.asked.Load())
	}

	p.open.Store(false)
	if res := call(t, r, "DELETE", "/rouse/v1/walls/"+w.ID, nil, &w); res.StatusCode != 200 || w.State != "closed" {
		t.Errorf("%s %+v", res.Status, w)
	}
	if status, name, _ := launch("acme/two", false); status != http.StatusCreated {
		t.Errorf("after the wall: %d %s", status, name)
	}
	call(t, r, "GET", "/rouse/v1/walls", nil, &walls)
	if len(walls.Walls) != 0 {
		t.Errorf("%+v", walls)
	}
	call(t, r, "GET", "/rouse/v1/walls?all=true", nil, &walls)
	if len(walls.Walls) != 1 || walls.Walls[0].State != "closed" {
		t.Errorf("%+v", walls)
	}
	// In the session that waited it comes after what waited.
	call(t, r, "POST", "/session/"+q.ID+"/message", map[string]any{"model": "acme/one", "parts": []map[string]string{{"type": "text", "text": "and now"}}}, &answer)
	var row struct{ Outcome string }
	if call(t, r, "GET", "/rouse/v1/sessions/"+q.ID, nil, &row); row.Outcome != "completed" || answer.Info.Finish != "stop" {
		t.Errorf("%+v %+v", row, answer)
	}
	call(t, r, "POST", "/session/"+s.ID+"/message", map[string]any{"model": "acme/one", "parts": []map[string]string{{"type": "text", "text": "again"}}}, &answer)
	call(t, r, "GET", "/rouse/v1/incidents?session="+s.ID, nil, &incidents)
	if len(incidents.Incidents) != 1 || incidents.Incidents[0].Status != "resolved" {
		t.Errorf("%+v", incidents)
	}
}
