package api_test

import (
	"os"
	"strings"
	"testing"
)

// What speaks against a rescue is said before anything is ended, each in its
// own words; force overrules it.
func TestRescueSaysWhatSpeaksAgainstIt(t *testing.T) {
	s := quick(t)
	rescue := func(status int, id string, body object) object {
		t.Helper()
		return s.call(status, s.token, "POST", "/rouse/v1/sessions/"+id+"/rescue", body)
	}
	refused := func(id, field string, words ...string) {
		t.Helper()
		d := rescue(409, id, object{"model": "drill/echo"})["data"].(object)
		if d["field"] != field {
			t.Errorf("%s: %v", field, d)
		}
		for _, w := range words {
			if !strings.Contains(d["message"].(string), w) {
				t.Errorf("%s: %v does not say %q", field, d["message"], w)
			}
		}
	}
	asked := s.create()
	s.prompt(asked, "permission")
	s.frames(asked, isState("waiting", 1))
	refused(asked, "waiting", "permission", "--force")

	retrying := s.create()
	s.engine(retrying, "longretry")
	s.frames(retrying, func(e object) bool { return e["type"] == "rouse.turn.retry" })
	refused(retrying, "retrying", "next attempt", "--force")

	limited := s.create()
	s.prompt(limited, "quota")
	s.wait(limited, "settled")
	for _, body := range []object{{}, {"model": "drill/quota"}} {
		out := rescue(409, limited, body)
		if d := out["data"].(object); out["name"] != "WallOpen" || d["wall"] == nil || !strings.Contains(d["message"].(string), "nothing was ended") {
			t.Errorf("%v: %v", body, out)
		}
	}
	rescue(202, limited, object{"model": "drill/echo"})

	gone := t.TempDir() + "/gone"
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	homeless := s.call(200, s.token, "POST", "/session?directory="+gone, object{"title": "x"})["id"].(string)
	s.prompt(homeless, "hang")
	s.frames(homeless, isState("generating", 1))
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if d := rescue(400, homeless, object{"force": true})["data"].(object); !strings.Contains(d["message"].(string), "does not exist") {
		t.Errorf("%v", d)
	}
	if row := s.call(200, s.token, "GET", "/session/"+homeless, nil); row["state"] != "generating" {
		t.Errorf("ended for a rescue that cannot be: %v", row)
	}

	rescue(202, asked, object{"model": "drill/echo", "force": true})
	rescue(202, retrying, object{"model": "drill/quota", "force": true})
	for _, bad := range []struct {
		body  object
		field string
	}{
		{object{"model": "drill/nonesuch"}, "model"},
		{object{"model": "nonesuch"}, "model"},
		{object{"facts": []string{"fine", strings.Repeat("x", 4001)}}, "facts[1]"},
		{object{"facts": strings.Split(strings.Repeat(strings.Repeat("x", 3000)+",", 30), ",")}, "facts"},
		{object{"facts": strings.Split(strings.Repeat("x,", 60), ",")}, "facts"},
	} {
		if d := rescue(400, s.create(), bad.body)["data"].(object); d["field"] != bad.field && !strings.Contains(d["message"].(string), bad.field) {
			t.Errorf("%s: %v", bad.field, d)
		}
	}
}

// engine sends a prompt to a mode of the drill engine.
func (s *server) engine(session, mode string) {
	s.t.Helper()
	s.empty(204, "POST", "/session/"+session+"/prompt_async", object{"model": "drill-engine/" + mode, "parts": []object{{"type": "text", "text": "go"}}})
}
