package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// frames is what a session's own stream tells from its beginning until stop
// says so.
func (s *server) frames(session string, stop func(object) bool) (told []object) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/rouse/v1/sessions/"+session+"/events?after=0", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		e := object{}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			s.t.Fatal(data, err)
		}
		if told = append(told, e); stop(e) {
			return told
		}
	}
	s.t.Fatalf("it did not come: %v", told)
	return nil
}

// states are the session.state frames in short: the state, with a + while it is
// paused.
func states(told []object) string {
	var out []string
	for _, e := range told {
		if e["type"] == "rouse.session.state" {
			mark := ""
			if e["paused"] == true {
				mark = "+"
			}
			out = append(out, e["state"].(string)+mark)
		}
	}
	return strings.Join(out, " ")
}

func isState(state string, n int) func(object) bool {
	return func(e object) bool {
		if e["type"] == "rouse.session.state" && e["state"] == state {
			n--
		}
		return n == 0
	}
}

// The states that are told are those that the session's row says at that
// moment.
func TestStatesAreTold(t *testing.T) {
	s := quick(t)
	paused := s.create()
	s.prompt(paused, "hang")
	s.frames(paused, isState("generating", 1))
	s.answer(200, s.token, "POST", "/session/"+paused+"/pause", nil)
	s.answer(200, s.token, "POST", "/session/"+paused+"/abort", nil)
	s.answer(200, s.token, "POST", "/session/"+paused+"/resume", nil)
	if got := states(s.frames(paused, isState("idle", 2))); got != "idle generating generating+ paused+ idle" {
		t.Errorf("paused while it ran: %s", got)
	}

	asked := s.create()
	s.prompt(asked, "permission")
	s.frames(asked, isState("waiting", 1))
	var open []object
	if err := json.Unmarshal(s.answer(200, s.token, "GET", "/permission?directory="+s.dir, nil), &open); err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	s.answer(200, s.token, "POST", "/permission/"+open[0]["id"].(string)+"/reply", object{"reply": "once"})
	told := s.frames(asked, isState("idle", 2))
	if got := states(told); got != "idle generating waiting generating idle" {
		t.Errorf("answered: %s", got)
	}

	failed := s.create()
	s.prompt(failed, "auth")
	told = s.frames(failed, isState("idle", 2))
	last, settled := told[len(told)-1], told[len(told)-2]
	incident, _ := last["incident"].(object)
	if incident["kind"] != "provider_auth" || incident["status"] != "open" || last["outcome"] != "failed" {
		t.Errorf("failed: %v", last)
	}
	if settled["type"] != "rouse.turn.settled" || settled["data"].(object)["session"] != nil || settled["incident"] != nil {
		t.Errorf("settled: %v", settled)
	}
}

// An event about a row carries the row as this API gives it: names, times and
// what is offered.
func TestEventsCarryRows(t *testing.T) {
	s := quick(t)
	id := s.create()
	s.prompt(id, "quota")
	s.wait(id, "settled")
	r := s.call(202, s.token, "POST", "/rouse/v1/sessions/"+id+"/rescue", object{"model": "drill/hang"})
	for r["status"] == "running" {
		r = s.call(200, s.token, "GET", "/rouse/v1/rescues/"+r["id"].(string), nil)
	}
	s.wait(id, "verdict:hung")
	data := map[string]object{}
	s.frames(id, func(e object) bool {
		if d, ok := e["data"].(object); ok {
			data[e["type"].(string)] = d
		}
		return e["type"] == "rouse.notice.created"
	})
	if !reflect.DeepEqual(data["rouse.rescue.stage"], r) {
		t.Errorf("rescue\n%v\n%v", data["rouse.rescue.stage"], r)
	}
	incident := data["rouse.incident.opened"]
	if row := s.call(200, s.token, "GET", "/rouse/v1/incidents/"+incident["id"].(string), nil); !reflect.DeepEqual(incident, row) {
		t.Errorf("incident\n%v\n%v", incident, row)
	}
	h := s.health(id)
	notice := data["rouse.notice.created"]
	if shown := h["notice"].(object); !reflect.DeepEqual(notice, shown) {
		t.Errorf("notice\n%v\n%v", notice, shown)
	}
	walls := s.call(200, s.token, "GET", "/rouse/v1/walls", nil)["walls"].([]any)
	wall := walls[0].(object)
	wall["held"] = nil // not known to the event
	if !reflect.DeepEqual(data["rouse.wall.opened"], wall) {
		t.Errorf("wall\n%v\n%v", data["rouse.wall.opened"], wall)
	}
}
