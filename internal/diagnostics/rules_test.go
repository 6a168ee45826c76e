package diagnostics

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"rouse"
)

// mine is the context that the lines of these tests are for.
var mine = Context{AgentType: Agent, SessionID: "ses_1", ActivePrompts: 1}

func judged(line string, c Context) Finding {
	var p Prompt
	return p.Judge(Parse(Line{Text: []byte(line)}), c)
}

// said is a stream error of the new layout.
func said(text string, more ...string) string {
	return fmt.Sprintf(`timestamp=2026-11-30T12:56:23.665999Z level=ERROR message="stream error" session.id=ses_1 error.error=%s %s`, quotedJSON(text), strings.Join(more, " "))
}

func quotedJSON(s string) string {
	b, _ := json.Marshal(s) // a string
	return string(b)
}

func TestReasons(t *testing.T) {
	head := "timestamp=2026-11-30T12:56:23Z level=ERROR "
	for line, want := range map[string]Reason{
		// The new layout.
		head + `message=process session.id=ses_1 error=odd `:                                      ReasonProcess,
		head + `message=process   session.id=ses_1 error=odd`:                                     ReasonProcess,
		head + `message=process session.id=ses_1 error=a=b`:                                       ReasonMalformed,
		head + `message=process session.id=ses_1 error=a\b`:                                       ReasonMalformed,
		head + "message=process session.id=ses_1 error=odd\x7f":                                   ReasonMalformed,
		head + "message=process session.id=ses_1 error=odd\r":                                     ReasonProcess,
		head + "message=process session.id=ses_1 error=odd\r\r":                                   ReasonMalformed,
		head + "message=process session.id=ses_1 error=\x1b[1odd\x1b[":                            ReasonMalformed,
		head + `message=process session.id=ses_1 9=x error=odd`:                                   ReasonMalformed,
		head + `message=process session.id=ses_1 _9.a-b=x error=odd`:                              ReasonProcess,
		head + `message=process session.id=ses_1 a=1 a=1 error=odd"`:                              ReasonDuplicate,
		head + `message=process session.id=ses_1 level=INFO error=odd`:                            ReasonDuplicate,
		head + `message=process session.id="" error=odd`:                                          ReasonMissing,
		head + `message=process session.id=ses_ error=odd`:                                        ReasonMalformed,
		head + `message=process session.id=x`:                                                     ReasonMissing,
		head + `message=process session.id=ses_1 error.error=odd`:                                 ReasonMissing,
		head + `message="stream error" session.id=ses_1 error=odd`:                                ReasonMissing,
		head + `message="" session.id=ses_1 error=odd`:                                            ReasonOther,
		head + `message=process session.id=ses_1 error=` + `"\ud83d"`:                             ReasonProcess,
		"level=WARN session.id=ses_1":                                                             ReasonMissing,
		"level=WARN message=process":                                                              ReasonNotError,
		head + "message=process session.id=ses_" + strings.Repeat("a", 124) + " error=odd":        ReasonOtherSession,
		head + "message=process session.id=ses_" + strings.Repeat("a", 125) + " error=odd":        ReasonMalformed,
		"timestamp=2026-11-30T12:56:23,5Z level=ERROR message=process session.id=ses_1 error=odd": ReasonMalformed,
		"timestamp=2026-11-30T1:56:23Z level=ERROR message=process session.id=ses_1 error=odd":    ReasonMalformed,

		"timestamp=2026-11-30T12:56:23+24:00 level=ERROR message=process session.id=ses_1 error=odd":   ReasonMalformed,
		"timestamp=2026-11-30T12:56:23.5-02:60 level=ERROR message=process session.id=ses_1 error=odd": ReasonMalformed,
		"timestamp=2026-11-30T12:56:23.5-23:59 level=ERROR message=process session.id=ses_1 error=odd": ReasonProcess,

		"\xff": ReasonMalformed, "=": ReasonFormat, "9a=b": ReasonFormat, "a": ReasonFormat, "a b=c": ReasonFormat, "\x1b[0m": ReasonFormat,
		// The old layout.
		oldStart + `error={"error":{"name":"AI_APICallError"}} stream error`:                                         ReasonTransient,
		oldStart + `error={"error":{"name":"AI_APICallError"}}`:                                                      ReasonMalformed,
		oldStart + `error={"error":{"name":"AI_APICallError"}} other words`:                                          ReasonOther,
		oldStart + `error={"error":{"name":"AI_APICallError"} stream error`:                                          ReasonMalformed,
		oldStart + `error=odd stream error`:                                                                          ReasonMalformed,
		oldStart + `error={"error":{}} stream error`:                                                                 ReasonMissing,
		oldStart + `error={"error":"odd"} stream error`:                                                              ReasonMissing,
		oldStart + `small=true error={"error":{"name":"x"}} stream error`:                                            ReasonSmall,
		oldStart + `small=TRUE agent=Summary error={"error":{"name":"x"}} stream error`:                              ReasonTitle,
		oldStart + `sessionID=ses_1 error={"error":{"name":"x"}} stream error`:                                       ReasonDuplicate,
		oldStart + `something happened`:                                                                              ReasonOther,
		"ERROR 2026-11-30T12:47:29 +5ms service=server error=odd failed":                                             ReasonOther,
		"ERROR 2026-11-30T12:47:29 +5ms failed":                                                                      ReasonOther,
		"INFO  2026-11-30T12:47:29 +5ms service=llm sessionID=ses_1 stream":                                          ReasonNotError,
		"ERROR 2026-13-30T12:47:29 +5ms service=llm sessionID=ses_1 error={\"error\":{\"name\":\"x\"}} stream error": ReasonMalformed,
		"ERROR 2026-11-30T12:47:29 +5ms service=llm error={\"error\":{\"name\":\"x\"}} stream error":                 ReasonMissing,
		"ERROR 2026-11-30T12:47:29Z +5ms service=llm":                                                                ReasonFormat,
		"ERROR 2026-11-30T12:47:29 +5ms service=llm a=\tb":                                                           ReasonMalformed,
		"ERROR 2026-11-30T12:47:29 +5ms service=session.processor error=AbortError: x process":                       ReasonAborted,
		"ERROR 2026-11-30T12:47:29 +5ms service=session.processor error=Aborted by x process":                        ReasonOldProcess,
		"ERROR 2026-11-30T12:47:29 +5ms service=session.processor":                                                   ReasonOldProcess,
		// Correlation.
		said("AI_RetryError"): ReasonTitle, said("AI_RetryErrors: x"): ReasonTransient, said("x", "agent=TITLE", "small=true"): ReasonTitle,
		said("x", "small=True"): ReasonSmall, said("The operation was aborted."): ReasonAborted, said("AbortError: x"): ReasonAborted, said("aborted"): ReasonTransient,
	} {
		if got := judged(line, mine); got.Reason != want {
			t.Errorf("%s\n got %s, want %s", line, got.Reason, want)
		}
	}
}

func TestResets(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"resets in 1w2d3h4m5s": 9*24*time.Hour + 3*time.Hour + 4*time.Minute + 5*time.Second, "Reset in 2 hrs": 2 * time.Hour, "resets  in\n7 secs": 7 * time.Second,
		"resets in 0h 5m": 5 * time.Minute, "resets in 3 days, and 4 hours": 76 * time.Hour, "resets in 5m 4h": 0, "resets in 1234567s": 0, "resets in 999999 s": 999999 * time.Second,
		"resets in 3 fortnights": 0, "resets in 4h 5 apples": 0, "resets in 4h.": 4 * time.Hour, "presets in 4h": 0, "resets in five minutes": 0,
		"resets in May. Resets in 4h": 0, "resets in 32d 1s": 0, "resets in 4h5": 0, "resets in 4hé": 0, "resets in 4h and more": 4 * time.Hour, "resetting in 4h": 0,
	} {
		f := judged(said(text), mine)
		if got := f.ResetAt.Sub(f.OccurredAt); want != 0 && got != want || want == 0 && !f.ResetAt.IsZero() {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		if f.OccurredAt.Nanosecond() != 665e6 {
			t.Errorf("%v is not cut to milliseconds", f.OccurredAt)
		}
	}
}

func TestTimesOfRecords(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 47, 29, 0, time.UTC)
	old := oldStart + `error={"error":{"name":"x"}} stream error`
	for _, c := range []struct {
		started, now time.Time
		want         Reason
	}{
		{at.Add(999 * time.Millisecond), at, ReasonTransient}, {at.Add(time.Second), at, ReasonBefore},
		{at, at.Add(-time.Minute), ReasonTransient}, {at, at.Add(-time.Minute - 1), ReasonFuture}, {time.Time{}, time.Time{}, ReasonTransient},
	} {
		ctx := mine
		ctx.PromptStarted, ctx.Now = c.started, c.now
		if got := judged(old, ctx); got.Reason != c.want {
			t.Errorf("%+v: %s", c, got.Reason)
		}
	}
}

func TestStreak(t *testing.T) {
	var p Prompt
	r := Parse(Line{Text: []byte(said("Overloaded"))})
	for i, want := range []Action{AttemptFailed, Retrying, Retrying} {
		if got := p.Judge(r, mine); got.Action != want {
			t.Errorf("attempt %d: %s", i, got.Action)
		}
	}
	p.Progress()
	if got := p.Judge(r, mine); got.Action != AttemptFailed {
		t.Errorf("after progress: %s", got.Action)
	}
	p.Settle()
	if got := p.Judge(r, mine); got != (Finding{Action: Ignore, Reason: ReasonSettled}) {
		t.Errorf("after the end: %+v", got)
	}
}

// The deadline is a time: what comes after it comes too late, whoever looks.
func TestGraceIsATime(t *testing.T) {
	r := Parse(Line{Text: []byte(said("Overloaded"))})
	t0 := r.OccurredAt()
	late := t0.Add(5 * time.Second)
	for name, happen := range map[string]func(*Grace) Decision{
		"progress": func(g *Grace) Decision { return g.Progress(late) }, "noise": func(g *Grace) Decision { return g.Noise(late) },
		"line": func(g *Grace) Decision { return g.Line(late, r, mine) }, "result": func(g *Grace) Decision { return g.Result(late) },
		"error": func(g *Grace) Decision { return g.Error(late, rouse.ClassAuth) }, "exit": func(g *Grace) Decision { return g.Exit(late) },
	} {
		g := &Grace{Wait: 5 * time.Second}
		g.Line(t0.Add(time.Second), r, mine)
		if !g.Deadline().Equal(late) {
			t.Errorf("deadline %v", g.Deadline())
		}
		if d := happen(g); d != (Decision{Failed, ViaGrace, rouse.ClassCapacity}) || !g.Settled() || g.Pending().Message != "Overloaded" {
			t.Errorf("%s: %+v", name, d)
		}
		if d := happen(g); d != (Decision{Open, ViaSettled, ""}) || !g.Deadline().IsZero() {
			t.Errorf("%s again: %+v", name, d)
		}
	}
	g := &Grace{ByArrival: true}
	g.Line(t0.Add(time.Second), r, mine)
	if !g.Deadline().Equal(t0.Add(time.Second + DefaultGrace)) {
		t.Errorf("deadline by arrival %v", g.Deadline())
	}
	if d := g.Exit(late); d != (Decision{Failed, ViaExit, rouse.ClassCapacity}) {
		t.Errorf("exit: %+v", d)
	}
}

func TestMessages(t *testing.T) {
	for text, want := range map[string]string{
		`password="correct horse 1" end`:      `password [redacted]" end`,
		`{"password":"x1","a":"b"}`:           `{"password [redacted]","a":"b"}`,
		"my_secret=abc; x":                    "my_secret [redacted]; x",
		"secret: password=abc":                "secret: password [redacted]",
		"secret: none; invalid token: abc1":   "secret: none; invalid token: abc1",
		"Cookie: sid=abc1; theme=dark end":    "Cookie [redacted] end",
		"Authorization: Bearer abc123, next":  "Authorization [redacted], next",
		"x=1 (mailto:a@b.example) y":          "x=1 ( y",
		"see docs.example:8080/x, then 127.1": "see, then 127.1",
		"at a@b.example:/home/c/d":            "at [redacted]:[path]",
		"wr()k_ABC x":                         "[redacted] x",
		"w\ufe0frk_ABC ⚠️ x":                  "[redacted] ⚠️ x",
		"AI_X: AI_Y: z":                       "AI_Y: z",
		"limit 5,000 . done -":                "limit 5,000. done",
		"( [ < > ] ) x":                       "x",
		"\ufeff\u00ad":                        Generic,
		"[redacted] … [path]":                 Generic,
	} {
		if got := judged(said(text), mine).Message; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestLinks(t *testing.T) {
	for text, want := range map[string]string{
		"x\nhttps://opencode.ai/workspace/a/go\ny":                          "https://opencode.ai/workspace/a/go",
		"x\thttps://opencode.ai/workspace/a/go":                             "",
		"https://opencode.ai/workspace/a/go/go":                             "",
		"https://opencode.ai/workspace/" + strings.Repeat("a", 128) + "/go": "https://opencode.ai/workspace/" + strings.Repeat("a", 128) + "/go",
	} {
		if got := judged(said(text), mine).RemediationURL; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	// A field of its own is the only candidate.
	if got := judged(said("x https://opencode.ai/workspace/a/go", `action_url="https://opencode.ai/workspace/b"`), mine); got.RemediationURL != "" {
		t.Errorf("%+v", got)
	}
}
