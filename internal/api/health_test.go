package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rouse/internal/api"
	"rouse/internal/daemon"
)

// quick is a server whose watch and ladder run 600 times faster: five minutes
// are half a second, a tick is a tenth of one.
func quick(t *testing.T) *server {
	t.Helper()
	return startWith(t, func(o *daemon.Options) { o.DrillSpeed = 600 })
}

// prompt sends a prompt on OpenCode's wire to a session of the drill engine.
func (s *server) prompt(session, model string) {
	s.t.Helper()
	s.empty(204, "POST", "/session/"+session+"/prompt_async", object{"model": "drill/" + model, "parts": []object{{"type": "text", "text": "go"}}})
}

// empty is a call whose answer has no body.
func (s *server) empty(status int, method, path string, body object) {
	s.t.Helper()
	if out := s.answer(status, s.token, method, path, body); len(out) > 0 {
		s.t.Fatalf("%s %s: %s", method, path, out)
	}
}

// events is what the session's own stream told from its beginning until a
// line: type and verdict of each.
func (s *server) events(session, until string) string {
	s.t.Helper()
	var told []string
	s.frames(session, func(e object) bool {
		verdict, _ := e["verdict"].(string)
		told = append(told, strings.TrimSpace(e["type"].(string)+" "+verdict))
		return told[len(told)-1] == until
	})
	return strings.Join(told, "\n")
}

func (s *server) create() string {
	s.t.Helper()
	return s.call(200, s.token, "POST", "/session?directory="+s.dir, object{"title": "x"})["id"].(string)
}

func (s *server) wait(session, what string) object {
	s.t.Helper()
	return s.call(200, s.token, "GET", "/rouse/v1/sessions/"+session+"/wait?timeout=20&for="+what, nil)
}

func (s *server) health(session string) object {
	s.t.Helper()
	return s.call(200, s.token, "GET", "/rouse/v1/sessions/"+session+"/health", nil)
}

// A turn that hangs is called so in one call, with its evidence, a notice and
// what may follow; cancelled, it is over.
func TestHealthOfAHungTurn(t *testing.T) {
	s := quick(t)
	id := s.create()
	if h := s.health(id); h["verdict"] != nil || h["state"] != "idle" || h["turn"] != nil {
		t.Errorf("before the first turn: %v", h)
	}
	s.prompt(id, "hang")
	if out := s.wait(id, "verdict:hung"); out["reached"] != true || out["matched"] != "verdict:hung" || out["timed_out"] != false {
		t.Fatalf("%v", out)
	}
	var h object
	for h = s.health(id); h["notice"] == nil; h = s.health(id) { // the same tick stores it a moment later
	}
	v, e, n := h["verdict"].(object), h["evidence"].(object), h["notice"].(object)
	if v["code"] != "hung" || v["confidence"] != "likely" || !strings.Contains(v["why"].(string), "no progress for") || fmt.Sprint(v["next"]) != "[rescue cancel]" || v["since"] == nil {
		t.Errorf("verdict %v", v)
	}
	samples := e["samples"].([]any)
	if len(samples) != 2 {
		t.Fatalf("samples %v", samples)
	}
	a, b := samples[0].(object), samples[1].(object)
	if fmt.Sprint(a["counters"]) != fmt.Sprint(b["counters"]) || a["state"] != "generating" || a["at"] == b["at"] || a["counters"].(object)["text_bytes"] == 0.0 {
		t.Errorf("samples %v %v", a, b)
	}
	if age := e["progress_age_ms"].(float64); age < 500 || age > 60_000 {
		t.Errorf("progress age %v", age)
	}
	if l := e["lease"].(object); l["live"] != true || l["here"] != true || e["open_tool"] != nil || e["waiting"] != nil || e["wall"] != nil {
		t.Errorf("evidence %v", e)
	}
	if n["visible"] != true || n["generation"] != 1.0 || n["tool"] != nil || n["code"] != "still_waiting" {
		t.Errorf("notice %v", n)
	}
	row := s.call(200, s.token, "GET", "/rouse/v1/sessions/"+id, nil)
	if row["verdict"] != "hung" || !strings.Contains(fmt.Sprint(row["evidence"]), "two samples show the same progress") {
		t.Errorf("row %v", row)
	}
	s.call(409, s.token, "POST", "/rouse/v1/sessions/"+id+"/cancel", object{"generation": 7})
	out := s.call(202, s.token, "POST", "/rouse/v1/sessions/"+id+"/cancel", object{"generation": 1})
	if out["turn"] != h["turn"] || out["generation"] != 1.0 {
		t.Errorf("cancel %v", out)
	}
	if out := s.wait(id, "settled"); out["outcome"] != "cancelled" || out["state"] != "idle" {
		t.Errorf("%v", out)
	}
	if h := s.health(id); h["verdict"].(object)["code"] != "settled:cancelled" || h["notice"].(object)["visible"] != false {
		t.Errorf("afterwards %v", h)
	}
	if out := s.call(202, s.token, "POST", "/rouse/v1/sessions/"+id+"/cancel", nil); out["turn"] != nil {
		t.Errorf("nothing runs: %v", out)
	}
	s.call(404, s.token, "POST", "/rouse/v1/sessions/ses_nope/cancel", nil)
	s.call(404, s.token, "GET", "/rouse/v1/sessions/ses_nope/health", nil)
	told := s.events(id, "rouse.verdict settled:cancelled")
	for _, want := range []string{"rouse.verdict working", "rouse.verdict quiet", "rouse.verdict hung", "rouse.notice.created", "rouse.cancel.stage", "rouse.notice.hidden", "rouse.turn.settled"} {
		if !strings.Contains(told, want) {
			t.Errorf("%s is not told in\n%s", want, told)
		}
	}
	if n := strings.Count(told, "rouse.notice.created"); n != 1 {
		t.Errorf("%d notices", n)
	}
}

// A turn that never starts fails as such, with an incident and no way to
// cancel it.
func TestHealthOfATurnThatNeverStarts(t *testing.T) {
	s := quick(t)
	id := s.create()
	s.prompt(id, "mute")
	if out := s.wait(id, "settled"); out["outcome"] != "failed" {
		t.Fatalf("%v", out)
	}
	h := s.health(id)
	v := h["verdict"].(object)
	if v["code"] != "settled:failed" || v["facts"].(object)["failure"] != "never_started" || len(v["next"].([]any)) != 0 || h["notice"] != nil {
		t.Errorf("%v", h)
	}
	if i := h["incident"].(object); i["kind"] != "never_started" || i["source"] != "watch" {
		t.Errorf("incident %v", i)
	}
}

// What is waited for is met, one condition after the other, and unknown ones
// are refused by name.
func TestWait(t *testing.T) {
	s := quick(t)
	id := s.create()
	for what, want := range map[string]string{"bogus": "bogus", "verdict:nope": "verdict:nope", "settled,": `""`, "": "name what to wait for: settled", "%20": "name what to wait for: settled"} {
		out := s.call(400, s.token, "GET", "/rouse/v1/sessions/"+id+"/wait?for="+what, nil)
		if d := out["data"].(object); d["field"] != "for" || !strings.Contains(d["message"].(string), want) {
			t.Errorf("%s: %v", what, out)
		}
	}
	s.call(400, s.token, "GET", "/rouse/v1/sessions/"+id+"/wait?timeout=601", nil)
	s.call(404, s.token, "GET", "/rouse/v1/sessions/ses_nope/wait", nil)
	if out := s.wait(id, "idle"); out["matched"] != "idle" || out["outcome"] != nil {
		t.Errorf("fresh: %v", out)
	}
	began := time.Now()
	out := s.call(200, s.token, "GET", "/rouse/v1/sessions/"+id+"/wait?for=settled,needs_person&timeout=1", nil)
	if out["timed_out"] != true || out["reached"] != false || out["matched"] != nil || time.Since(began) < time.Second {
		t.Errorf("nothing comes: %v", out)
	}
	s.prompt(id, "quota")
	if out := s.wait(id, "settled,wall"); out["outcome"] != "failed" || out["matched"] != "settled" || out["verdict"] != "waiting_quota" || out["wall"].(object)["reset_at"] == nil {
		t.Errorf("quota: %v", out)
	}
	if out := s.wait(id, "wall"); out["matched"] != "wall" {
		t.Errorf("wall: %v", out)
	}
	h := s.health(id)
	if v := h["verdict"].(object); v["code"] != "waiting_quota" || v["until"] == nil || h["evidence"].(object)["wall"] == nil {
		t.Errorf("quota: %v", h)
	}
	other := s.create()
	s.prompt(other, "question")
	if out := s.wait(other, "needs_person,settled"); out["matched"] != "needs_person" || out["needs_person"] != true || out["state"] != "waiting" || out["verdict"] != "waiting_question" {
		t.Errorf("question: %v", out)
	}
	if w := s.health(other)["evidence"].(object)["waiting"].(object); w["for"] != "question" || w["id"] == "" {
		t.Errorf("waiting %v", w)
	}
}

// A session's own token sees its own health and that of what it launched, and
// cancels only the latter.
func TestHealthScopes(t *testing.T) {
	s := start(t)
	boss := s.launch(201, object{"prompt": "go", "model": "drill/echo"})["session"].(string)
	other := s.launch(201, object{"prompt": "go", "model": "drill/echo"})["session"].(string)
	token := api.AgentToken(s.token, boss)
	child := s.call(201, token, "POST", "/rouse/v1/launch", object{"prompt": "work", "model": "drill/hang"})["session"].(string)
	for id, status := range map[string]int{boss: 200, child: 200, other: 403} {
		s.call(status, token, "GET", "/rouse/v1/sessions/"+id+"/health", nil)
		s.call(status, token, "GET", "/rouse/v1/sessions/"+id+"/wait?for=idle&timeout=0", nil)
	}
	s.call(403, api.AgentToken(s.token, child), "POST", "/rouse/v1/sessions/"+child+"/cancel", nil)
	s.call(403, token, "POST", "/rouse/v1/sessions/"+other+"/cancel", nil)
	s.call(202, token, "POST", "/rouse/v1/sessions/"+child+"/cancel", nil)
}

// A person is needed as long as the incident stands that says so: not after it
// was dismissed, and not after a later turn completed.
func TestWhoNeedsAPerson(t *testing.T) {
	s := quick(t)
	needed := func(id string) bool {
		return s.call(200, s.token, "GET", "/rouse/v1/sessions/"+id+"/wait?timeout=0&for=needs_person", nil)["needs_person"].(bool)
	}
	open := func(id string) object {
		list := s.call(200, s.token, "GET", "/rouse/v1/incidents?status=open&session="+id, nil)["incidents"].([]any)
		if len(list) != 1 {
			t.Fatalf("%v", list)
		}
		return list[0].(object)
	}
	rescued := s.create()
	for i := range 5 {
		status := 202
		if i >= 3 {
			status = 429
		}
		r := s.call(status, s.token, "POST", "/rouse/v1/sessions/"+rescued+"/rescue", object{"model": "drill/echo"})
		for status == 202 && r["status"] == "running" { // each look takes a round trip
			r = s.call(200, s.token, "GET", "/rouse/v1/rescues/"+r["id"].(string), nil)
		}
	}
	if !needed(rescued) || open(rescued)["kind"] != "needs_person" {
		t.Errorf("after five rescues: %v", open(rescued))
	}
	s.prompt(rescued, "echo")
	s.wait(rescued, "settled")
	if needed(rescued) {
		t.Error("a later turn completed")
	}

	keys := s.create()
	s.prompt(keys, "auth")
	s.wait(keys, "settled")
	if !needed(keys) {
		t.Error("the key is refused")
	}
	s.call(202, s.token, "POST", "/rouse/v1/incidents/"+open(keys)["id"].(string)+"/actions", object{"action": "dismiss"})
	if needed(keys) {
		t.Error("dismissed")
	}

	again := s.create()
	s.prompt(again, "auth")
	s.wait(again, "settled")
	s.prompt(again, "hang") // the key is mended, and the work goes on
	s.frames(again, isState("generating", 2))
	if needed(again) {
		t.Error("a turn runs, and asks nobody")
	}
}
