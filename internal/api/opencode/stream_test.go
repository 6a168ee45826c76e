package opencode

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// reader is an event stream in the test's hand.
type reader struct {
	t      *testing.T
	cancel context.CancelFunc
	frames chan received
	lastID string
}

type received struct {
	id   string
	raw  string
	kind string
	body struct {
		ID         string
		Type       string
		Properties json.RawMessage
		Payload    struct {
			Type       string
			Properties json.RawMessage
		}
		Directory string
		Project   string
	}
}

func (f *received) props(v any) {
	raw := f.body.Properties
	if raw == nil {
		raw = f.body.Payload.Properties
	}
	if err := json.Unmarshal(raw, v); err != nil {
		panic(err)
	}
}

func (r *rig) follow(path string, headers ...string) *reader {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", r.server.URL+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		r.t.Fatalf("stream: %d %q", res.StatusCode, res.Header.Get("Content-Type"))
	}
	s := &reader{t: r.t, cancel: cancel, frames: make(chan received, 100000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.frames)
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 16<<20)
		id := ""
		for lines.Scan() {
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "id: "):
				id = line[4:]
			case strings.HasPrefix(line, "data: "):
				f := received{id: id, raw: line[6:]}
				if err := json.Unmarshal([]byte(line[6:]), &f.body); err != nil {
					f.kind = "broken: " + err.Error()
				} else if f.kind = f.body.Type; f.kind == "" {
					f.kind = f.body.Payload.Type
				}
				s.frames <- f
				id = ""
			case line != "":
				s.frames <- received{kind: "broken: " + line}
			}
		}
	}()
	r.t.Cleanup(func() { cancel(); <-done })
	s.until("server.connected")
	return s
}

// until collects frames up to one of a kind.
func (s *reader) until(kind string) []received {
	s.t.Helper()
	return s.untilThat(func(f *received) bool { return f.kind == kind })
}

func (s *reader) untilThat(ok func(*received) bool) []received {
	s.t.Helper()
	var out []received
	deadline := time.After(20 * time.Second)
	for {
		select {
		case f, open := <-s.frames:
			if !open {
				s.t.Fatalf("stream ended after %v", kinds(out))
			}
			if strings.HasPrefix(f.kind, "broken") {
				s.t.Fatal(f.kind)
			}
			if f.id != "" {
				s.lastID = f.id
			}
			out = append(out, f)
			if ok(&f) {
				return out
			}
		case <-deadline:
			s.t.Fatalf("waited in vain; got %v", kinds(out))
		}
	}
}

func kinds(list []received) string {
	var out []string
	for i := range list {
		out = append(out, list[i].kind)
	}
	return strings.Join(out, " ")
}

// texts folds frames the way a client does: the text of each part.
type texts map[string]string

// announced are the parts that one connection has told of; the sum of deltas
// is promised within a connection.
type announced map[string]bool

func (m texts) fold(t *testing.T, frames []received) { m.foldFor(t, nil, frames) }

func (m texts) foldFor(t *testing.T, in announced, frames []received) {
	t.Helper()
	for i := range frames {
		switch f := &frames[i]; f.kind {
		case "message.part.updated":
			var p struct {
				Part struct {
					ID, Type, Text string
					Time           struct{ End int64 }
				}
			}
			f.props(&p)
			if p.Part.Type != "text" && p.Part.Type != "reasoning" {
				continue
			}
			old, known := m[p.Part.ID]
			if in != nil {
				known = in[p.Part.ID]
				in[p.Part.ID] = true
			}
			if known && p.Part.Time.End != 0 && old != p.Part.Text {
				t.Errorf("the deltas of %s sum up to %q, its end says %q", p.Part.ID, old, p.Part.Text)
			}
			m[p.Part.ID] = p.Part.Text
		case "message.part.delta":
			var d struct{ PartID, Field, Delta string }
			f.props(&d)
			_, known := m[d.PartID]
			if in != nil {
				known = in[d.PartID]
			}
			if !known {
				t.Errorf("a delta of the unknown part %s", d.PartID)
			}
			m[d.PartID] += d.Delta
		}
	}
}

func TestStreamOfOneTurn(t *testing.T) {
	r := newRig(t, 0)
	id := r.create()
	s := r.follow("/event?directory=" + r.dir)
	r.prompt(id, "hello")
	tn := r.next()
	tn.send(engine.StepStarted{Agent: tn.prompt.Agent, Model: tn.prompt.Model})
	tn.say("Ein ", "Stück ", "“Text”\n")
	tn.finish()
	frames := s.until("session.idle")

	var order []string
	for i := range frames {
		f := &frames[i]
		if f.kind == "message.part.delta" && order[len(order)-1] == f.kind {
			continue
		}
		order = append(order, f.kind)
	}
	got := strings.Join(order, " ")
	want := "session.updated message.updated message.part.updated session.status message.updated message.part.updated message.part.updated" +
		" message.part.delta message.part.updated message.part.updated message.updated session.status session.idle"
	if strings.ReplaceAll(got, "session.updated ", "") != strings.ReplaceAll(want, "session.updated ", "") {
		t.Errorf("order\n got %s\nwant %s", got, want)
	}
	all := texts{}
	all.fold(t, frames)
	found := false
	for _, text := range all {
		found = found || text == "Ein Stück “Text”\n"
	}
	if !found {
		t.Errorf("texts: %q", all)
	}
	last, seen := int64(0), map[string]bool{}
	for i := range frames {
		f := &frames[i]
		if seen[f.body.ID] {
			t.Errorf("two frames have the id %s", f.body.ID)
		}
		seen[f.body.ID] = true
		if f.id == "" {
			continue
		}
		n, err := strconv.ParseInt(f.id, 10, 64)
		if err != nil || n <= last {
			t.Errorf("event id %q after %d", f.id, last)
		}
		last = n
	}
	if frames[len(frames)-1].id == "" || frames[len(frames)-2].id != "" {
		t.Error("the id belongs on the last frame of an event")
	}
}

func TestGlobalStreamWraps(t *testing.T) {
	r := newRig(t, 0)
	s := r.follow("/global/event")
	id := r.create()
	frames := s.until("session.created")
	f := frames[len(frames)-1]
	if f.body.Directory != r.dir || f.body.Project != "global" {
		t.Errorf("wrapper: %s", f.raw)
	}
	r.prompt(id, "x")
	tn := r.next()
	tn.say("abc")
	s.until("message.part.delta")
	tn.finish()
	s.until("session.idle")
}

// A reader that comes in the middle has the text so far before any delta.
func TestJoinInTheMiddle(t *testing.T) {
	r := newRig(t, 0)
	id := r.create()
	first := r.follow("/event")
	r.prompt(id, "x")
	tn := r.next()
	tn.say("one ", "two ")
	m := texts{}
	first.untilThat(func(f *received) bool { m.fold(t, []received{*f}); return hasText(m, "one two ") })

	var list []struct{ Parts []struct{ Type, Text string } }
	r.want(200, "GET", "/session/"+id+"/message", nil).into(t, &list)
	if parts := list[len(list)-1].Parts; len(parts) == 0 || parts[len(parts)-1].Text != "one two " {
		t.Errorf("the text of a running turn is not current: %+v", list)
	}
	second := r.follow("/event")
	late := texts{}
	second.untilThat(func(f *received) bool { late.fold(t, []received{*f}); return hasText(late, "one two ") })
	tn.say("three")
	second.untilThat(func(f *received) bool { late.fold(t, []received{*f}); return hasText(late, "one two three") })
	tn.finish()
	late.fold(t, second.until("session.idle"))
}

func hasText(m texts, want string) bool {
	for _, text := range m {
		if text == want {
			return true
		}
	}
	return false
}

// A reader that reconnects with the last id it saw misses nothing and gets
// nothing twice, from the ring and from the store.
func TestResume(t *testing.T) {
	for name, ring := range map[string]int{"ring": 0, "store": 8} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, ring)
			id := r.create()
			whole := r.follow("/event")
			broken := r.follow("/event")
			r.prompt(id, "x")
			tn := r.next()
			tn.say("part one")
			broken.until("message.part.delta")
			broken.cancel()
			tn.send(engine.ToolStarted{CallID: "c1", Name: "bash", State: rouse.ToolRunning, Input: json.RawMessage(`{"command":"ls"}`)})
			tn.send(engine.ToolEnded{CallID: "c1", Title: "ls", Output: "a\n"})
			tn.say("part two")
			m := texts{}
			m.fold(t, whole.untilThat(func(f *received) bool { m.fold(t, []received{*f}); return hasText(m, "part two") }))

			again := r.follow("/event", "Last-Event-ID", broken.lastID)
			n := texts{}
			middle := again.untilThat(func(f *received) bool { n.fold(t, []received{*f}); return hasText(n, "part two") })
			tn.say(" and more")
			tn.finish()
			rest := again.until("session.idle")
			n.fold(t, rest)
			if !hasText(n, "part one") || !hasText(n, "part two and more") {
				t.Errorf("texts after resuming: %q", n)
			}
			var ids []int64
			for _, f := range append(middle, rest...) {
				if f.id != "" {
					i, _ := strconv.ParseInt(f.id, 10, 64)
					ids = append(ids, i)
				}
			}
			from, _ := strconv.ParseInt(broken.lastID, 10, 64)
			for _, i := range ids {
				if i <= from {
					t.Errorf("event %d came again after %d", i, from)
				}
				from = i
			}
		})
	}
}

func TestResumeTooOld(t *testing.T) {
	r := newRig(t, 4)
	r.create()
	head := r.store.Head()
	for range 10 {
		r.create()
	}
	if err := prune(t, r); err != nil {
		t.Fatal(err)
	}
	s := r.follow("/event?after=" + strconv.FormatInt(head, 10))
	f := s.until("rouse.resync")
	if got := f[len(f)-1].id; got != strconv.FormatInt(r.store.Head(), 10) {
		t.Errorf("resync carries id %q, head is %d", got, r.store.Head())
	}
	wantReason(t, f[len(f)-1], "forgotten", "not kept any more")
	r.create()
	s.until("session.created")
}

// A position that was never given, of another database for one, is no reason
// to wait for it without a word.
func TestResumeBeyondTheHead(t *testing.T) {
	r := newRig(t, 4)
	r.create()
	s := r.follow("/event?after=999999")
	f := s.until("rouse.resync")
	if got := f[len(f)-1].id; got != strconv.FormatInt(r.store.Head(), 10) {
		t.Errorf("resync carries id %q, head is %d", got, r.store.Head())
	}
	wantReason(t, f[len(f)-1], "unknown", "There is no event 999999")
	r.create()
	s.until("session.created")
}

// wantReason checks that a resync says in words why it is one.
func wantReason(t *testing.T, f received, reason, words string) {
	t.Helper()
	if told := f.raw; !strings.Contains(told, `"reason":"`+reason+`"`) || !strings.Contains(told, words) {
		t.Errorf("%s does not say %q, %q", told, reason, words)
	}
}

func TestResumeRefusesNonsense(t *testing.T) {
	r := newRig(t, 0)
	r.want(400, "GET", "/event?after=soon", nil)
	r.want(400, "GET", "/event", nil, "Last-Event-ID", "-4")
	if told := string(r.want(400, "GET", "/event", nil, "Last-Event-ID", "evt_22dacca3c00100000000000000").body); !strings.Contains(told, "not positions") {
		t.Errorf("an event's own id as a position: %s", told)
	}
}

// The synchronous answer comes after the stream has the end of the turn.
func TestSynchronousAnswerAfterItsEvents(t *testing.T) {
	r := newRig(t, 0)
	id := r.create()
	s := r.follow("/event")
	got := make(chan answer, 1)
	go func() {
		a, err := r.try("POST", "/session/"+id+"/message", map[string]any{"parts": []any{map[string]any{"type": "text", "text": "x"}}})
		if err != nil {
			t.Error(err)
		}
		got <- a
	}()
	tn := r.next()
	tn.say("done")
	tn.finish()
	a := <-got
	idle := false
	for len(s.frames) > 0 {
		f := <-s.frames
		idle = idle || f.kind == "session.idle"
	}
	if !idle {
		t.Error("the answer came before the stream said idle")
	}
	var e struct {
		Info  struct{ Role, Finish string }
		Parts []struct{ Type, Text string }
	}
	a.into(t, &e)
	if a.status != 200 || e.Info.Role != "assistant" || e.Info.Finish != "stop" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a.header.Get("X-Rouse-Turn") == "" || a.header.Get("X-Rouse-Message") == "" || a.header.Get("X-Rouse-Generation") != "1" {
		t.Errorf("headers: %v", a.header)
	}
}

// The number of open streams is bounded; one more is told to come back.
func TestStreamsAreBounded(t *testing.T) {
	r := newRig(t, 0)
	first := r.follow("/event")
	for range subscribers - 1 {
		r.follow("/event")
	}
	a := r.want(503, "GET", "/event", nil)
	if a.header.Get("Retry-After") == "" {
		t.Errorf("%v %s", a.header, a.body)
	}
	first.cancel()
	deadline := time.Now().Add(10 * time.Second)
	for r.call("HEAD", "/event", nil).status == 503 {
		if time.Now().After(deadline) {
			t.Fatal("a closed stream still counts")
		}
	}
}
