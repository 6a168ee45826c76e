package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, line string) *Message {
	t.Helper()
	m, err := Parse([]byte(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return m
}

// update is a session/update around one update object.
func update(object string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` + object + `}}`
}

func TestParseShapes(t *testing.T) {
	m := parse(t, `{"jsonrpc":"2.0","result":{"stopReason":"end_turn"},"id":3}`)
	if !m.IsAnswer() || m.IsRequest() || string(m.ID) != "3" || string(m.Result) != `{"stopReason":"end_turn"}` {
		t.Errorf("answer: %+v", m)
	}
	m = parse(t, ` {"id":"a-b","params":{"sessionId":"s\u00e4","x":[1,{"y":null}]},"method":"craft/x"} `)
	if !m.IsRequest() || m.SessionID != "sä" || m.Method != "craft/x" || string(m.Params) != `{"sessionId":"s\u00e4","x":[1,{"y":null}]}` {
		t.Errorf("request: %+v", m)
	}
	m = parse(t, `{"id":null,"error":{"code":-32700,"message":"bad","data":{"a":"b"}}}`)
	if m.ID != nil || !m.IsAnswer() || m.Error.Code != -32700 || m.Error.Message != "bad" || string(m.Error.Data) != `{"a":"b"}` {
		t.Errorf("error: %+v", m)
	}
	if m = parse(t, `{"id":1,"error":null,"result":null}`); m.Error != nil || string(m.Result) != "null" || !m.IsAnswer() {
		t.Errorf("null result: %+v", m)
	}
	if m = parse(t, `{"id":1,"error":"gone"}`); m.Error == nil || m.Error.Message != "gone" {
		t.Errorf("error that is a string: %+v", m)
	}
	if m = parse(t, `{"method":"$/cancel_request","params":{"requestId":2}}`); string(m.Cancels) != "2" {
		t.Errorf("cancel request: %+v", m)
	}
	for _, line := range []string{`{}`, `{"method":5,"id":{},"params":[1]}`, `{"method":"session/update"}`, `{"method":"session/request_permission","params":null}`} {
		parse(t, line)
	}
}

func TestParseRefuses(t *testing.T) {
	for line, want := range map[string]error{
		``: ErrNotJSON, `  `: ErrNotJSON, `hello`: ErrNotJSON, `{"a":1`: ErrNotJSON, `{"a":1} x`: ErrNotJSON, `{"a":01}`: ErrNotJSON,
		"{\"a\":\"\n\"}": ErrNotJSON, `{"a":"\x"}`: ErrNotJSON, `{"a" 1}`: ErrNotJSON, `{"a":1,}`: ErrNotJSON, `[1,]`: ErrNotJSON, "{}\x00": ErrNotJSON,
		`[1]`: ErrNotObject, `"x"`: ErrNotObject, `null`: ErrNotObject, `-1e5`: ErrNotObject,
		strings.Repeat(`{"a":`, 20000): ErrNotJSON,
	} {
		if m, err := Parse([]byte(line)); !errors.Is(err, want) || m != nil {
			t.Errorf("%.40q: %v, want %v", line, err, want)
		}
	}
}

func TestUpdateKinds(t *testing.T) {
	u := parse(t, update(`{"content":{"type":"text","text":"a\n\ud83d\ude00"},"messageId":"m","_meta":{"usage":{"inputTokens":1}},"sessionUpdate":"agent_message_chunk"}`)).Update
	if u.Kind != KindMessage || u.Content.Text != "a\n😀" || u.Content.Other || u.MessageID != "m" || !Positive(At(u.Meta, "usage")) {
		t.Errorf("chunk: %+v", u)
	}
	u = parse(t, update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"image","data":"xx","text":"no"}}`)).Update
	if !u.Content.Other || u.Content.Text != "" {
		t.Errorf("image: %+v", u)
	}
	u = parse(t, update(`{"sessionUpdate":"agent_message_chunk","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`)).Update
	if u.Content.Text != "ab" || u.Content.Other {
		t.Errorf("list of blocks: %+v", u)
	}
	u = parse(t, update(`{"toolCallId":"t1","title":"ls","_meta":{"a":1},"status":"pending","kind":"execute","rawInput":{"command":"ls"},"rawOutput":null,"locations":[{"path":"/a","line":3},{"path":"/b"}],"content":[{"type":"content","content":{"type":"text","text":"out"}},{"type":"diff","path":"/a","oldText":null,"newText":"n"},{"type":"terminal","terminalId":"x"}],"sessionUpdate":"tool_call"}`)).Update
	want := &Tool{ID: "t1", Title: "ls", Kind: "execute", Status: "pending", RawInput: json.RawMessage(`{"command":"ls"}`), Locations: []Location{{"/a", 3}, {Path: "/b"}}}
	got := *u.Tool
	got.Content = nil
	if !reflect.DeepEqual(&got, want) || u.Title != "" {
		t.Errorf("tool: %+v", got)
	}
	if c := u.Tool.Content; len(c) != 3 || c[0].Text != "out" || c[1].Path != "/a" || c[1].Text != "n" || c[2].TerminalID != "x" {
		t.Errorf("tool content: %+v", c)
	}
	if u = parse(t, update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1"}`)).Update; u.Tool == nil || u.Tool.ID != "t1" || u.Tool.Content != nil {
		t.Errorf("tool update: %+v", u.Tool)
	}
	u = parse(t, update(`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"},{"content":5}]}`)).Update
	if len(u.Plan) != 2 || u.Plan[0] != (PlanEntry{"a", "high", "pending"}) {
		t.Errorf("plan: %+v", u.Plan)
	}
	u = parse(t, update(`{"sessionUpdate":"usage_update","used":129,"size":200000,"cost":{"amount":0.5,"currency":"USD"}}`)).Update
	if u.Usage.Used != 129 || u.Usage.Size != 200000 || *u.Usage.Cost != (Cost{0.5, "USD"}) {
		t.Errorf("usage: %+v", u.Usage)
	}
	if u = parse(t, update(`{"sessionUpdate":"current_mode_update","currentModeId":"plan"}`)).Update; u.ModeID != "plan" {
		t.Errorf("mode: %+v", u)
	}
	if u = parse(t, update(`{"sessionUpdate":"session_info_update","title":"T"}`)).Update; u.Title != "T" {
		t.Errorf("title: %+v", u)
	}
	u = parse(t, update(`{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","category":"model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"group":"g","options":[{"value":"b"}]}]}]}`)).Update
	if len(u.ConfigOptions) != 1 || u.ConfigOptions[0].Options[1].Options[0].Value != "b" || Text(u.ConfigOptions[0].Current) != "a" {
		t.Errorf("options: %+v", u.ConfigOptions)
	}
}

// TestUnknownSurvives is what the Go SDK's types get wrong: a kind that is not
// known must not become one that is.
func TestUnknownSurvives(t *testing.T) {
	raw := `{"sessionUpdate":"brand_new","content":{"type":"text","text":"x"},"title":"y","toolCallId":"z","entries":[1],"_meta":{"k":1}}`
	u := parse(t, update(raw)).Update
	if u.Kind != "brand_new" || u.Content.Text != "" || u.Tool != nil || u.Title != "" || u.Plan != nil || string(u.Raw) != raw || string(u.Meta) != `{"k":1}` {
		t.Errorf("%+v", u)
	}
	// Fields of another type are absent, the rest stays.
	u = parse(t, update(`{"sessionUpdate":"tool_call","toolCallId":7,"title":["x"],"status":"failed","locations":"none","content":"text"}`)).Update
	if u.Tool.ID != "" || u.Tool.Title != "" || u.Tool.Status != "failed" || u.Tool.Locations != nil {
		t.Errorf("%+v", u.Tool)
	}
	if u = parse(t, update(`[1]`)).Update; u == nil || u.Kind != "" {
		t.Errorf("no object: %+v", u)
	}
}

func TestPermission(t *testing.T) {
	m := parse(t, `{"id":0,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"c","kind":"execute","title":"ls","content":[]},"options":[{"optionId":"once","name":"Allow","kind":"allow_once"}],"sessionId":"s"}}`)
	if m.SessionID != "s" || m.Permission.Tool.ID != "c" || !slices.Equal(m.Permission.Options, []Option{{"once", "Allow", "allow_once"}}) {
		t.Errorf("%+v", m.Permission)
	}
}

func TestResults(t *testing.T) {
	i, err := Decode[Initialize](json.RawMessage(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":"odd"},"sessionCapabilities":{"list":{},"resume":{},"close":null}},"agentInfo":{"name":"x","version":"1"},"authMethods":[{"id":"key","name":"Key"}]}`))
	if err != nil || i.ProtocolVersion != 1 || !i.Capabilities.LoadSession || !bool(i.Capabilities.Session.Resume) || bool(i.Capabilities.Session.Close) || bool(i.Capabilities.Session.Fork) || !i.Capabilities.Prompt.Image || i.AuthMethods[0].ID != "key" {
		t.Errorf("%+v %v", i, err)
	}
	s, err := Decode[Session](json.RawMessage(`{"sessionId":"s","models":{"currentModelId":"m","availableModels":[{"modelId":"m","name":"M"}]},"modes":{"currentModeId":"a","availableModes":[{"id":"a"}]},"configOptions":[{"id":"fast","type":"boolean","currentValue":true}]}`))
	if err != nil || s.SessionID != "s" || s.Models.Available[0].ID != "m" || s.Modes.Current != "a" || string(s.ConfigOptions[0].Current) != "true" {
		t.Errorf("%+v %v", s, err)
	}
	for raw, want := range map[string]Usage{
		`{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2,"totalTokens":5}}`:             {Input: 3, Output: 2, Total: 5},
		`{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":3,"output_tokens":2}}}}`: {Input: 3, Output: 2, Total: 5},
	} {
		p, err := Decode[PromptResult](json.RawMessage(raw))
		if u, ok := p.Tokens(); err != nil || !ok || u != want || p.StopReason != "end_turn" {
			t.Errorf("%s: %+v %v", raw, u, err)
		}
	}
	if p, _ := Decode[PromptResult](json.RawMessage(`{"usage":null,"_meta":{"quota":{"token_count":null}}}`)); p.StopReason != "" {
		t.Errorf("%+v", p)
	} else if _, ok := p.Tokens(); ok {
		t.Error("usage out of null")
	}
	if _, err := Decode[Session](json.RawMessage(`{`)); err == nil {
		t.Error("no error for text that is not JSON")
	}
}

// TestEncode reads back what a client writes, one line each.
func TestEncode(t *testing.T) {
	id := json.RawMessage(`"q-1"`)
	for want, line := range map[string][]byte{
		MethodInitialize: Hello(1, "rouse", "0", json.RawMessage(`{"x":1}`)), MethodAuthenticate: Authenticate(1, "key"), MethodNew: NewSession(1, "/w", nil),
		MethodLoad: LoadSession(1, "s", "/w", nil), MethodResume: ResumeSession(1, "s", "/w", []MCPServer{{Name: "a"}}), MethodList: ListSessions(1, "/w"),
		MethodClose: CloseSession(1, "s"), MethodPrompt: Prompt(1, "s", TextBlock("<a>&\n\x00")), MethodCancel: Cancel("s"), MethodSetMode: SetMode(1, "s", "plan"),
		MethodSetModel: SetModel(1, "s", "m"), MethodSetConfigOption: SetConfigOption(1, "s", "model", "m"), MethodCancelRequest: TakeBack(4),
	} {
		m, err := Parse(line[:len(line)-1])
		if err != nil || m.Method != want || bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
			t.Fatalf("%q: %v", line, err)
		}
		if wantID := want != MethodCancel && want != MethodCancelRequest; (m.ID != nil) != wantID {
			t.Errorf("%s: id %s", want, m.ID)
		}
	}
	for want, line := range map[string][]byte{
		`{"outcome":{"optionId":"once","outcome":"selected"}}`: Select(id, "once"),
		`{"outcome":{"outcome":"cancelled"}}`:                  SelectNone(id),
	} {
		if m := parse(t, string(line)); string(m.Result) != want || !SameID(m.ID, id) || !m.IsAnswer() {
			t.Errorf("%s", line)
		}
	}
	if m := parse(t, string(MethodNotFound(id, "x/y"))); m.Error.Code != CodeMethodNotFound || !SameID(m.ID, id) {
		t.Errorf("%+v", m)
	}
}

func TestSameID(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"1", "1", true}, {"1", "1.0", true}, {`"a"`, `"\u0061"`, true}, {"1", `"1"`, false}, {"1", "2", false}} {
		if SameID(json.RawMessage(c.a), json.RawMessage(c.b)) != c.want {
			t.Errorf("%s %s", c.a, c.b)
		}
	}
	if SameID(nil, nil) {
		t.Error("no id is nobody's")
	}
}

func TestRaw(t *testing.T) {
	raw := json.RawMessage(`{"a":{"b":[0,{"c":"x"},-1]},"n":0.5,"s":"7"}`)
	if string(At(raw, "a", "b")) != `[0,{"c":"x"},-1]` || At(raw, "a", "x") != nil || At(raw, "s", "b") != nil || At(nil, "a") != nil {
		t.Error("At")
	}
	if Positive(At(raw, "a")) || Positive(At(raw, "s")) || !Positive(raw) || Positive(nil) {
		t.Error("Positive")
	}
	var words []string
	Words(raw, func(w string) { words = append(words, w) })
	if got := strings.Join(words, " "); got != "a b c x n s 7" {
		t.Error(got)
	}
}
