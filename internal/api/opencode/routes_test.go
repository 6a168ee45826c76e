package opencode

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rouse"
	"rouse/internal/api"
	"rouse/internal/engine"
)

func (a answer) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	a.into(t, &p)
	if p.Name == "" || p.Data.Message == "" {
		t.Errorf("error body %s", a.body)
	}
	return p
}

func text(s string) map[string]any {
	return map[string]any{"parts": []any{map[string]any{"type": "text", "text": s}}}
}

// Whatever is unknown is a 404 in JSON, whatever the method.
func TestUnknown(t *testing.T) {
	r := newRig(t, 0)
	for _, c := range []string{"GET /nope", "POST /nope", "PUT /session", "GET /model", "GET /session/ses_x/messages", "GET /api/nope", "DELETE /event", "GET /"} {
		method, path, _ := strings.Cut(c, " ")
		a := r.want(404, method, path, nil)
		if a.header.Get("Content-Type") != "application/json" || a.problem(t).Name != "NotFoundError" {
			t.Errorf("%s: %s", c, a.body)
		}
	}
	r.want(404, "GET", "/session/ses_unknown", nil).problem(t)
	r.want(404, "GET", "/session/ses_unknown/message", nil).problem(t)
	if p := r.want(404, "POST", "/prompt_async", map[string]any{"sessionID": "ses_unknown", "parts": []any{}}).problem(t); !strings.Contains(p.Data.Message, "/session/:id/prompt_async") {
		t.Errorf("does not name the other route: %s", p.Data.Message)
	}
	if p := r.want(400, "GET", "/session/xyz", nil).problem(t); p.Data.Field != "id" {
		t.Errorf("%+v", p)
	}
	r.want(200, "POST", "/session/ses_unknown/abort", nil)
}

func TestDirectory(t *testing.T) {
	r := newRig(t, 0)
	other := filepath.Join(t.TempDir(), "ä b")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	var s struct{ Directory string }
	r.want(200, "POST", "/session", nil).into(t, &s)
	if s.Directory != r.dir {
		t.Errorf("without a directory: %q", s.Directory)
	}
	r.want(200, "POST", "/session?directory="+pathEscape(other+"/../ä b/"), `{}`).into(t, &s)
	if s.Directory != other {
		t.Errorf("by query: %q", s.Directory)
	}
	r.want(200, "POST", "/session", `{}`, "X-Opencode-Directory", pathEscape(other)).into(t, &s)
	if s.Directory != other {
		t.Errorf("by header: %q", s.Directory)
	}
	for _, bad := range []string{"/not/there", "relative", pathEscape(filepath.Join(other, "x"))} {
		if p := r.want(400, "POST", "/session?directory="+bad, `{}`).problem(t); p.Data.Field != "directory" {
			t.Errorf("%s: %+v", bad, p)
		}
	}
	r.want(400, "GET", "/session?directory=/not/there", nil)
	a := r.want(200, "GET", "/session?limit=1&directory="+pathEscape(other), nil)
	if a.header.Get("X-Total-Count") != "2" || a.header.Get("X-Has-More") != "true" || a.header.Get("X-Next-Cursor") == "" {
		t.Errorf("%v", a.header)
	}
	a = r.want(200, "GET", "/session?limit=1&directory="+pathEscape(other)+"&cursor="+a.header.Get("X-Next-Cursor"), nil)
	if a.header.Get("X-Has-More") != "false" {
		t.Errorf("second page: %v", a.header)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	r.want(200, "GET", "/session?directory="+pathEscape(other), nil) // its sessions are still there
}

func pathEscape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func TestIntakeAnswers(t *testing.T) {
	r := newRig(t, 0)
	id := r.create()
	a := r.prompt(id, "x")
	if a.header.Get("X-Rouse-Message") == "" || a.header.Get("X-Rouse-Turn") == "" || a.header.Get("X-Rouse-Generation") != "1" || len(a.body) != 0 {
		t.Errorf("%v %s", a.header, a.body)
	}
	tn := r.next()
	if b := r.prompt(id, "while busy"); b.header.Get("X-Rouse-Generation") != "2" {
		t.Errorf("joined: %v", b.header)
	}
	n := r.want(204, "POST", "/session/"+id+"/prompt_async", map[string]any{"noReply": true, "parts": []any{}})
	if n.header.Get("X-Rouse-Turn") != "" || n.header.Get("X-Rouse-Message") == "" {
		t.Errorf("noReply: %v", n.header)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/shell", `{"agent":"build","command":"ls"}`}, {"POST", "/revert", `{"messageID":"` + a.header.Get("X-Rouse-Message") + `"}`},
		{"DELETE", "/message/" + a.header.Get("X-Rouse-Message"), ""},
	} {
		var p struct {
			Tag       string `json:"_tag"`
			SessionID string
		}
		busy := r.want(409, c.method, "/session/"+id+c.path, c.body)
		busy.into(t, &p)
		if p.Tag != "SessionBusyError" || p.SessionID != id {
			t.Errorf("%s: %s", c.path, busy.body)
		}
	}
	tn.finish()
	r.next().finish()
	r.want(200, "POST", "/session/"+id+"/pause", nil)
	if p := r.want(409, "POST", "/session/"+id+"/prompt_async", text("x")).problem(t); !strings.Contains(p.Data.Message, "paused") {
		t.Errorf("%+v", p)
	}
	r.want(200, "POST", "/session/"+id+"/resume", nil)
	body := text("x")
	body["delay_sec"] = 5
	r.want(501, "POST", "/session/"+id+"/prompt_async", body).problem(t)
	body["delay_sec"] = 0
	r.want(204, "POST", "/session/"+id+"/prompt_async", body)
	tn = r.next()
	body["delay_sec"] = 5
	r.want(204, "POST", "/session/"+id+"/prompt_async", body) // busy: the delay is dropped
	tn.finish()
	r.next().finish()

	for field, body := range map[string]map[string]any{
		"model": {"parts": []any{}, "model": "drill/nope"}, "agent": {"parts": []any{}, "agent": "nope"},
	} {
		if p := r.want(400, "POST", "/session/"+id+"/prompt_async", body).problem(t); p.Data.Field != field {
			t.Errorf("%s: %+v", field, p)
		}
	}
	r.want(400, "POST", "/session/"+id+"/prompt_async", map[string]any{"parts": []any{}, "agent": "worker"})
}

func TestIdempotencyKey(t *testing.T) {
	r := newRig(t, 0)
	id := r.create()
	path := "/session/" + id + "/prompt_async"
	one := r.want(204, "POST", path, text("x"), "Idempotency-Key", "k1")
	two := r.want(204, "POST", path, text("x"), "Idempotency-Key", "k1")
	if one.header.Get("X-Rouse-Turn") != two.header.Get("X-Rouse-Turn") {
		t.Errorf("two turns: %v %v", one.header, two.header)
	}
	r.want(422, "POST", path, text("y"), "Idempotency-Key", "k1").problem(t)
	r.want(400, "POST", path, text("x"), "Idempotency-Key", strings.Repeat("k", 300)).problem(t)
	other := r.want(204, "POST", "/session/"+r.create()+"/prompt_async", text("y"), "Idempotency-Key", "k1") // its own business
	if turn := other.header.Get("X-Rouse-Turn"); turn == "" || turn == one.header.Get("X-Rouse-Turn") {
		t.Errorf("another session under the same key: %v", other.header)
	}
	r.next().finish()
	r.next().finish()
	select {
	case <-r.turns:
		t.Error("the prompt ran twice")
	default:
	}
}

func TestMessagePaging(t *testing.T) {
	r := newRig(t, 0)
	id := r.create()
	var ids []string
	for i := range 7 {
		body := text(fmt.Sprint("n", i))
		body["noReply"] = true
		ids = append(ids, r.want(204, "POST", "/session/"+id+"/prompt_async", body).header.Get("X-Rouse-Message"))
	}
	base := "/session/" + id + "/message"
	page := func(query string) ([]string, answer) {
		var list []struct{ Info struct{ ID string } }
		a := r.want(200, "GET", base+query, nil)
		a.into(t, &list)
		got := []string{}
		for _, e := range list {
			got = append(got, e.Info.ID)
		}
		return got, a
	}
	same := func(what string, got, want []string) {
		t.Helper()
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	got, a := page("")
	same("all", got, ids)
	if a.header.Get("X-Next-Cursor") != "" {
		t.Error("a cursor on the last page")
	}
	got, _ = page("?limit=0")
	same("limit=0", got, ids)
	got, a = page("?limit=3")
	same("limit=3", got, ids[4:])
	if link := a.header.Get("Link"); !strings.HasSuffix(link, `>; rel="next"`) || !strings.Contains(link, "limit=3&before="+a.header.Get("X-Next-Cursor")) || !strings.HasPrefix(link, "<"+r.server.URL+base) {
		t.Errorf("Link %q", link)
	}
	got, a = page("?limit=3&before=" + a.header.Get("X-Next-Cursor"))
	same("before", got, ids[1:4])
	got, a = page("?limit=3&before=" + a.header.Get("X-Next-Cursor"))
	same("first page", got, ids[:1])
	if a.header.Get("X-Next-Cursor") != "" {
		t.Error("a cursor beyond the first message")
	}
	got, a = page("?limit=3&after=" + ids[0])
	same("after an id", got, ids[1:4])
	got, _ = page("?limit=3&after=" + a.header.Get("X-Next-Cursor"))
	same("after a cursor", got, ids[4:])
	for _, bad := range []string{"?limit=abc", "?limit=-1", "?limit=2&before=garbage", "?before=" + a.header.Get("X-Next-Cursor"),
		"?limit=2&before=" + a.header.Get("X-Next-Cursor") + "&after=" + ids[0]} {
		r.want(400, "GET", base+bad, nil).problem(t)
	}
	r.want(404, "GET", base+"?limit=2&after=msg_unknown", nil)
	r.want(200, "GET", base+"/"+ids[2], nil)
	r.want(404, "GET", base+"/msg_unknown", nil)
	r.want(200, "DELETE", base+"/"+ids[2], nil)
	r.want(200, "DELETE", base+"/"+ids[2], nil)
	got, _ = page("")
	same("after removal", got, append(append([]string{}, ids[:2]...), ids[3:]...))
}

func TestSessionRecord(t *testing.T) {
	r := newRig(t, 0)
	var s map[string]any
	r.want(200, "POST", "/session", `{"title":"T","agent":"build","model":{"providerID":"drill","id":"echo"},"metadata":{"a":1},"permission":[{"permission":"question","pattern":"*","action":"deny"}]}`).into(t, &s)
	id := s["id"].(string)
	if s["agent"] != "builder" || s["title"] != "T" || s["state"] != "idle" || s["outcome"] != nil || s["messageCount"] != 0.0 {
		t.Errorf("%v", s)
	}
	if m := s["model"].(map[string]any); m["id"] != "echo" || m["providerID"] != "drill" {
		t.Errorf("%v", m)
	}
	r.prompt(id, "x")
	tn := r.next()
	tn.send(engine.ToolStarted{CallID: "c", Name: "bash", State: rouse.ToolRunning, Input: json.RawMessage(`{}`)})
	r.want(200, "GET", "/session/"+id, nil).into(t, &s)
	p := s["progress"].(map[string]any)
	if s["state"] != "generating" || p["generation"] != 1.0 || p["openTool"].(map[string]any)["name"] != "bash" || p["lastGenuineAt"] == nil {
		t.Errorf("%v", s)
	}
	var status map[string]map[string]any
	r.want(200, "GET", "/session/status", nil).into(t, &status)
	if status[id]["type"] != "busy" {
		t.Errorf("%v", status)
	}
	r.want(200, "POST", "/session/"+id+"/abort", nil)
	clear(s)
	r.want(200, "GET", "/session/"+id, nil).into(t, &s)
	if s["state"] != "idle" || s["outcome"] != "cancelled" || s["progress"] != nil {
		t.Errorf("after abort: %v", s)
	}
	var list []struct {
		Info struct {
			Role  string
			Error struct{ Name string }
			Time  struct{ Completed int64 }
		}
		Parts []struct {
			Type  string
			State struct{ Status string }
		}
	}
	r.want(200, "GET", "/session/"+id+"/message", nil).into(t, &list)
	if last := list[len(list)-1]; last.Info.Error.Name != "MessageAbortedError" || last.Info.Time.Completed == 0 {
		t.Errorf("%+v", list)
	}
	r.want(200, "PATCH", "/session/"+id, `{"title":"new","time":{"archived":1700000000000}}`).into(t, &s)
	if s["title"] != "new" || s["time"].(map[string]any)["archived"] != 1.7e12 {
		t.Errorf("%v", s)
	}
	r.want(400, "PATCH", "/session/"+id, `{"title":5}`)
	r.want(200, "DELETE", "/session/"+id, nil)
	r.want(404, "DELETE", "/session/"+id, nil)
	r.want(404, "GET", "/session/"+id, nil)
}

func TestBadBodies(t *testing.T) {
	r := newRig(t, 0)
	id := r.create()
	for _, c := range []struct{ path, body string }{
		{"/session", `{bad`}, {"/session", `{"title":5}`}, {"/session", `{"parentID":"nope"}`},
		{"/session/" + id + "/prompt_async", `{oops`}, {"/session/" + id + "/message", `{oops`},
		{"/session/" + id + "/shell", `{"command":"x"}`}, {"/session/" + id + "/command", `{"command":"nope","arguments":""}`},
		{"/session/" + id + "/summarize", `{}`}, {"/permission/per_1/reply", `{"reply":"maybe"}`}, {"/question/que_1/reply", `{"answers":"A"}`},
		{"/session/" + id + "/prompt_async", `{"parts":[{"type":"file","mime":"text/plain","url":""}]}`},
		{"/session/" + id + "/prompt_async", `{"parts":[{"type":"file","mime":"image/png","url":"data:image/png;base64,@@@"}]}`},
		{"/session/" + id + "/prompt_async", `{"parts":[{"type":"file","mime":"image/png","url":"data:image/png;base64"}]}`},
		{"/log", `{"level":"nope"}`}, {"/session/" + id + "/revert", `{}`}, {"/session/" + id + "/fork", `{"messageID":"x"}`},
	} {
		r.want(400, "POST", c.path, c.body).problem(t)
	}
	r.want(404, "POST", "/permission/per_1/reply", `{"reply":"once"}`).problem(t)
	r.want(404, "POST", "/question/que_1/reject", nil).problem(t)
	r.want(501, "POST", "/session/"+id+"/share", nil).problem(t)
	big := `{"parts":[{"type":"text","text":"` + strings.Repeat("x", 11<<20) + `"}]}`
	r.want(http.StatusRequestEntityTooLarge, "POST", "/session/"+id+"/prompt_async", big).problem(t)
}

func TestFiles(t *testing.T) {
	r := newRig(t, 0)
	write := func(name, body string) {
		t.Helper()
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("README.md", "# lab\nlabel\n")
	write("src/deep/main.go", "package main\n")
	write("bin", "\x00\x01")
	write("node_modules/lab.js", "lab")
	if err := os.Symlink("/etc/hostname", filepath.Join(r.dir, "out")); err != nil {
		t.Fatal(err)
	}
	var found []string
	r.want(200, "GET", "/find/file?query=READ", nil).into(t, &found)
	if len(found) != 1 || found[0] != "README.md" {
		t.Errorf("%v", found)
	}
	var hits []wireMatch
	r.want(200, "GET", "/find?pattern=la[b]", nil).into(t, &hits)
	if len(hits) != 2 || hits[1].LineNumber != 2 || hits[1].AbsoluteOffset != 6 || hits[0].Submatches[0].Start != 2 {
		t.Errorf("%+v", hits)
	}
	r.want(400, "GET", "/find?pattern=(", nil)
	var nodes []wireNode
	r.want(200, "GET", "/file?path=.", nil).into(t, &nodes)
	if nodes[0].Type != "directory" || nodes[0].Name != "node_modules" {
		t.Errorf("%+v", nodes)
	}
	var c struct{ Type, Content, Encoding string }
	r.want(200, "GET", "/file/content?path=README.md", nil).into(t, &c)
	if c.Type != "text" || c.Content != "# lab\nlabel" {
		t.Errorf("%+v", c)
	}
	r.want(200, "GET", "/file/content?path=bin", nil).into(t, &c)
	if c.Type != "binary" || c.Encoding != "base64" {
		t.Errorf("%+v", c)
	}
	for _, bad := range []string{"../x", "/etc/passwd", "out", "nope", "src"} {
		r.want(400, "GET", "/file/content?path="+bad, nil)
	}
}

// No answer shows a key.
func TestNoSecrets(t *testing.T) {
	r := newRig(t, 0)
	for _, path := range []string{"/config", "/config/providers", "/provider", "/global/config"} {
		if a := r.want(200, "GET", path, nil); strings.Contains(strings.ToLower(string(a.body)), "apikey") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

// What the terminal client asks at its start is answered, as measured with
// opencode 1.18.33.
func TestQuietAnswers(t *testing.T) {
	r := newRig(t, 0)
	id := r.create()
	for _, path := range []string{"/path", "/project/current", "/project/global/directories", "/config/providers", "/provider", "/provider/auth",
		"/experimental/capabilities", "/experimental/console", "/experimental/resource", "/experimental/workspace", "/experimental/workspace/status",
		"/agent", "/config", "/command", "/lsp", "/mcp", "/formatter", "/vcs", "/session/status", "/global/health", "/permission", "/question",
		"/api/location", "/api/agent", "/api/integration", "/api/model", "/api/provider", "/api/reference", "/api/command", "/api/skill",
		"/session/" + id + "/todo", "/session/" + id + "/diff", "/session/" + id + "/children", "/project", "/experimental/tool/ids"} {
		for _, suffix := range []string{"", "?directory=" + pathEscape(r.dir)} {
			if a := r.want(200, "GET", path+suffix, nil); !json.Valid(a.body) {
				t.Errorf("%s: %s", path, a.body)
			}
		}
	}
}
