package session

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
)

var sinkStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// stamped is a sink whose turn got these updates, a second after another.
func stamped(updates ...engine.Update) rouse.Vitals {
	s := newSink(time.Minute)
	s.begin(&rouse.Turn{ID: "trn_1", Generation: 1, Epoch: 1, Started: sinkStart})
	s.v.Clock = sinkStart
	for i, u := range updates {
		u.Generation, u.At = max(u.Generation, 1), sinkStart.Add(time.Duration(i+1)*time.Second)
		s.Update(context.Background(), u)
	}
	v, _ := s.vitals()
	return v
}

func genuine(b engine.Body) engine.Update { return engine.Update{Genuine: true, Bytes: 10, Body: b} }
func noise(b engine.Body) engine.Update   { return engine.Update{Bytes: 10, Body: b} }

func running(id, title, input string) engine.Update {
	return genuine(engine.ToolStarted{CallID: id, Name: "bash", Title: title, State: rouse.ToolRunning, Input: json.RawMessage(input)})
}

// A person sees what a tool is called, never what it is called with.
func TestTitleIsNoCommand(t *testing.T) {
	for _, c := range []struct{ title, input, want string }{
		{"Run all tests", `{"command":"make test TOKEN=secret","description":"Run all tests"}`, "Run all tests"},
		{"make test TOKEN=secret", `{"command":"make test TOKEN=secret"}`, ""},
		{"`make test TOKEN=secret`", `{"command":"make test TOKEN=secret"}`, ""},
		{"$ make test TOKEN=secret", `{"command":"make test TOKEN=secret"}`, ""},
		{"make test TOK…", `{"command":"make test TOKEN=secret"}`, ""},
		{"curl -H secret", `{"command":["bash","-lc","curl -H secret"]}`, ""},
		{"Fetch", `{"command":["bash","-lc","curl -H secret"]}`, "Fetch"},
		{"src/main.go", `{"filePath":"/x/src/main.go"}`, "src/main.go"},
		{"Explore", `not json`, "Explore"},
		{"", `{"command":"ls"}`, ""},
	} {
		v := stamped(running("c", c.title, c.input))
		if v.OpenTool == nil || v.OpenTool.Title != c.want || v.OpenTool.Name != "bash" {
			t.Errorf("%q of %s: %+v", c.title, c.input, v.OpenTool)
		}
	}
}

// Of parallel calls the newest that still runs is shown.
func TestOpenTool(t *testing.T) {
	a, b := running("a", "A", `{}`), running("b", "B", `{}`)
	ended := func(id string) engine.Update { return genuine(engine.ToolEnded{CallID: id}) }
	for _, c := range []struct {
		name    string
		updates []engine.Update
		want    string
	}{
		{"one", []engine.Update{a}, "A"},
		{"two", []engine.Update{a, b}, "B"},
		{"the second ended", []engine.Update{a, b, ended("b")}, "A"},
		{"the first ended", []engine.Update{a, b, ended("a")}, "B"},
		{"both ended", []engine.Update{a, b, ended("a"), ended("b")}, ""},
		{"told again", []engine.Update{a, b, running("a", "A again", `{}`)}, "B"},
		{"a child's", []engine.Update{genuine(engine.ToolStarted{CallID: "n", Title: "N", Parent: "a", State: rouse.ToolRunning})}, ""},
		{"input still streams", []engine.Update{genuine(engine.ToolStarted{CallID: "p", Title: "P", State: rouse.ToolPending})}, ""},
		{"the attempt broke", []engine.Update{a, noise(engine.Retry{Attempt: 1, Broken: true})}, ""},
	} {
		v := stamped(c.updates...)
		got := ""
		if v.OpenTool != nil {
			got = v.OpenTool.Title
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if v := stamped(a, b, running("a", "A", `{}`), ended("b")); !v.OpenTool.Since.Equal(sinkStart.Add(time.Second)) {
		t.Errorf("since %v", v.OpenTool.Since)
	}
}

// Progress moves clock and epoch; noise and other generations do not.
func TestStamp(t *testing.T) {
	v := stamped(noise(engine.Usage{}), noise(engine.Noise{}), engine.Update{Generation: 2, Genuine: true, Body: engine.Text{Text: "late"}})
	if v.Epoch != 1 || !v.LastGenuine.IsZero() || !v.Clock.Equal(sinkStart) || v.Counters.Events != 2 || v.Counters.TextBytes != 0 {
		t.Errorf("noise: %+v", v)
	}
	v = stamped(noise(engine.Noise{}), genuine(engine.Text{Text: "four"}), noise(engine.Noise{}))
	at := sinkStart.Add(2 * time.Second)
	if v.Epoch != 2 || !v.LastGenuine.Equal(at) || !v.Clock.Equal(at) || v.FirstGenuine != "text" || v.Counters.Genuine != 1 || v.Counters.TextBytes != 4 {
		t.Errorf("progress: %+v", v)
	}
	next := sinkStart.Add(10 * time.Second)
	v = stamped(noise(engine.Retry{Attempt: 1, Next: next}), noise(engine.Noise{}), noise(engine.Resumed{}))
	if v.Retry != nil || v.Stood != 2*time.Second {
		t.Errorf("after a retry: %+v", v)
	}
	if got := v.Silence(sinkStart.Add(time.Minute), time.Minute); got != 58*time.Second {
		t.Errorf("silence %v", got)
	}
	v = stamped(noise(engine.Diagnostic{Reason: "other_session"}), noise(engine.Diagnostic{Reason: "other_session"}), noise(engine.Diagnostic{Failure: rouse.Failure{Class: rouse.ClassRate}}))
	if v.Stderr.Ignored["other_session"] != 2 || v.Stderr.LastClass != rouse.ClassRate {
		t.Errorf("diagnostics: %+v", v.Stderr)
	}
}

func TestPace(t *testing.T) {
	if got := (Pace{}).orDefault(); got != DefaultPace {
		t.Errorf("%+v", got)
	}
	if got := DefaultPace.Faster(10); got.Ask != 300*time.Millisecond || got.Force != 700*time.Millisecond || got.Enrich != 50*time.Millisecond {
		t.Errorf("%+v", got)
	}
	if DefaultPace.Faster(0) != DefaultPace || DefaultPace.Faster(1) != DefaultPace {
		t.Error("not faster is not the same")
	}
}
