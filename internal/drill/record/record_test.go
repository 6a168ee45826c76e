package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/judge"
	"rouse/internal/engine/acp/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secrets are of each kind that must not be written; every text below holds
// them all.
var secrets = []string{"sk-ant-api03-canary0123456789", "someone@example.org", "/home/someone", "wrk_canary01", "/srv/tree", "please build", "rm -rf"}

var loaded = strings.Join(secrets, " ")

func TestNothingPrivateIsWritten(t *testing.T) {
	for _, line := range []string{
		`{"id":7,"method":"session/prompt","params":{"sessionId":"ses_X","prompt":[{"type":"text","text":"%s"},{"type":"resource","resource":{"uri":"file:///home/someone","text":"%s"}}]}}`,
		`{"id":7,"method":"session/new","params":{"cwd":"/srv/tree","mcpServers":[{"name":"%s","command":"%s","env":[{"name":"K","value":"%s"}]}]}}`,
		`{"method":"session/update","params":{"sessionId":"ses_X","update":{"sessionUpdate":"agent_message_chunk","messageId":"%s","content":{"type":"text","text":"%s"}}}}`,
		`{"method":"session/update","params":{"sessionId":"ses_X","update":{"sessionUpdate":"agent_message_chunk","content":[{"type":"text","text":"Error: 429 sk-ant-api03-canary0123456789 someone@example.org /home/someone/x"},{"type":"image","data":"%s"}]}}}`,
		`{"method":"session/update","params":{"sessionId":"ses_X","update":{"sessionUpdate":"tool_call","toolCallId":"%s","title":"%s","kind":"execute","status":"pending","rawInput":{"command":"%s","%s":1},"content":[{"type":"diff","path":"/srv/tree","newText":"%s"}],"locations":[{"path":"/home/someone"}]}}}`,
		`{"method":"session/update","params":{"sessionId":"ses_X","update":{"sessionUpdate":"plan","entries":[{"content":"%s","status":"pending"}]}}}`,
		`{"method":"session/update","params":{"sessionId":"ses_X","update":{"sessionUpdate":"session_info_update","title":"%s","_meta":{"x":"%s","jetbrains":{"air":{"sessionFailure":{"severity":"error","title":"Usage limit: sk-ant-api03-canary0123456789 someone@example.org /home/someone/x wrk_canary01 /srv/tree/a","category":"limit"}}}}}}}`,
		`{"id":"someone@example.org","method":"session/request_permission","params":{"sessionId":"ses_X","toolCall":{"toolCallId":"c","title":"%s","rawInput":["%s"],"content":[{"type":"content","content":{"type":"text","text":"%s"}}]},"options":[{"optionId":"%s","name":"%s","kind":"allow_once"}]}}`,
		`{"id":7,"error":{"code":-32603,"message":"Usage limit reached: sk-ant-api03-canary0123456789 someone@example.org /home/someone/x https://x.example/wrk_canary01","data":{"requestBody":"%s","%s":"%s"}}}`,
		`{"id":7,"result":{"sessions":[{"sessionId":"ses_X","cwd":"/srv/tree","title":"%s"}],"stopReason":"%s"}}`,
		`{"%s":"%s","unknown":["%s",{"deep":"%s"}]}`,
	} {
		line = strings.ReplaceAll(line, "%s", loaded)
		var n Neutral
		out, ok := n.Message([]byte(line))
		if !ok || !json.Valid(out) {
			t.Fatalf("%s\n→ %v %s", line, ok, out)
		}
		for _, s := range append(secrets, "ses_X") {
			if bytes.Contains(out, []byte(s)) {
				t.Errorf("%q is in %s", s, out)
			}
		}
		sameWeight(t, []byte(line), out)
	}
}

// sameWeight checks what the judge sees of one message.
func sameWeight(t *testing.T, before, after []byte) {
	t.Helper()
	a, err := wire.Parse(before)
	if err != nil {
		t.Fatal(err)
	}
	b, err := wire.Parse(after)
	if err != nil {
		t.Fatal(err)
	}
	if judge.Weigh(a) != judge.Weigh(b) || a.IsAnswer() != b.IsAnswer() || a.IsRequest() != b.IsRequest() || (a.SessionID == "") != (b.SessionID == "") {
		t.Errorf("%s\nbecame %s", before, after)
	}
}

func TestIDsKeepTheirIdentity(t *testing.T) {
	var n Neutral
	read := func(line string) *wire.Message {
		out, ok := n.Message([]byte(line))
		m, err := wire.Parse(out)
		if !ok || err != nil {
			t.Fatal(line, err)
		}
		return m
	}
	asked := read(`{"id":"u-1","method":"session/request_permission","params":{"sessionId":"a","toolCall":{"toolCallId":"c"},"options":[]}}`)
	back := read(`{"method":"$/cancel_request","params":{"requestId":"u-1"}}`)
	other := read(`{"id":"u-2","result":{"sessionId":"b"}}`)
	if !wire.SameID(asked.ID, back.Cancels) || wire.SameID(asked.ID, other.ID) || asked.SessionID == wire.Text(wire.At(other.Result, "sessionId")) || asked.SessionID != n.Session("a") {
		t.Errorf("%+v %+v %+v", asked, back, other)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Info: Request failed. Retrying..."}}}}`))
	f.Add([]byte(`{"id":1,"error":{"code":-1,"message":"throttled","data":["x",1.5e3,null]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var n Neutral
		out, ok := n.Message(line)
		if !ok {
			return
		}
		if !json.Valid(out) || bytes.IndexByte(out, '\n') >= 0 {
			t.Fatalf("%q", out)
		}
		a, _ := wire.Parse(line)
		b, err := wire.Parse(out)
		if err != nil || a.IsAnswer() != b.IsAnswer() || a.Method != "" != (b.Method != "") {
			t.Fatalf("%s\nbecame %s", line, out)
		}
		if a.Error != nil && diagnostics.ClassOf(a.Error.Message) != diagnostics.ClassOf(b.Error.Message) {
			t.Fatalf("%s\nspeaks of another class than %s", out, line)
		}
	})
}

func TestAgentIsEndedAndItsSignalKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	j, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path); rouse.KindOf(err) != rouse.Conflict {
		t.Errorf("written over: %v", err)
	}
	in, client := io.Pipe()
	agent, out := io.Pipe()
	ended := make(chan string, 1)
	go func() {
		exit, err := Proxy{Argv: []string{"sh", "-c", "echo '{\"method\":\"up\"}'; cat; kill -9 $$"}, In: in, Out: out, Err: io.Discard, Journal: j}.Run(t.Context())
		_ = out.Close()
		ended <- fmt.Sprint(exit.Signal, err)
	}()
	buf := make([]byte, 100)
	if n, err := agent.Read(buf); err != nil || string(buf[:n]) != "{\"method\":\"up\"}\n" {
		t.Fatalf("%q %v", buf[:n], err)
	}
	_ = client.Close()
	go func() { _, _ = io.Copy(io.Discard, agent) }()
	select {
	case end := <-ended:
		if end != "killed<nil>" {
			t.Errorf("ended %s", end)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the agent does not end with its input")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 3 || !strings.Contains(string(text), `"signal":"SIGKILL"`) {
		t.Errorf("%s %v", text, err)
	}
}

func TestProxyPassesItsEndOn(t *testing.T) {
	j := begin(full{}, full{})
	ctx, cancel := context.WithCancel(t.Context())
	out, agent := io.Pipe()
	ended := make(chan string, 1)
	go func() {
		exit, err := Proxy{Argv: []string{"sh", "-c", "echo up; exec sleep 1000"}, In: strings.NewReader(""), Out: agent, Err: io.Discard, Journal: j}.Run(ctx)
		ended <- fmt.Sprint(SignalName(exit.Signal), err)
	}()
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case end := <-ended:
		if end != "SIGTERM<nil>" {
			t.Errorf("ended %s", end)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the agent goes on")
	}
	_ = j.Close() // nothing could be written
	if _, err := (Proxy{Argv: []string{"no-such-program-here"}, Journal: j}).Run(t.Context()); rouse.KindOf(err) != rouse.Invalid {
		t.Errorf("%v", err)
	}
}

// full is a disk on which nothing more fits.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
func (full) Close() error              { return nil }

func TestFullDiskHoldsNobodyUp(t *testing.T) {
	j := begin(full{}, full{})
	for range 1000 {
		j.Agent([]byte(`{"method":"x"}`))
		j.Stderr([]byte("x"))
	}
	if err := j.Close(); rouse.KindOf(err) != rouse.Unavailable {
		t.Errorf("%v", err)
	}
}
