package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine/acp/wire"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func message(t testing.TB, line string) *wire.Message {
	t.Helper()
	m, err := wire.Parse([]byte(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return m
}

// update is a session/update of session s around one update object.
func update(object string) string {
	return `{"method":"session/update","params":{"sessionId":"ses_1","update":` + object + `}}`
}

func said(text string) string {
	return update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}`, text))
}

// feed plays lines a second apart: "> " in front is the client's, "exit" the
// process's end, anything else the agent's. The prompt is request 7 of s.
func feed(t testing.TB, turn *Turn, lines ...string) {
	t.Helper()
	for i, line := range lines {
		at := start.Add(time.Duration(i+1) * time.Second)
		switch client, ours := strings.CutPrefix(line, "> "); {
		case line == "exit":
			turn.Exit(at)
		case ours:
			turn.Client(at, message(t, client))
		default:
			turn.Agent(at, message(t, line))
		}
	}
}

func newTurn() *Turn { return New(Params{}, "claude", "ses_1", []byte("7"), start) }

const (
	cancel    = `> {"method":"session/cancel","params":{"sessionId":"ses_1"}}`
	newer     = `> {"id":8,"method":"session/prompt","params":{"sessionId":"ses_1"}}`
	ended0    = `{"id":7,"result":{"stopReason":"end_turn"}}`
	endedUsed = `{"id":7,"result":{"stopReason":"end_turn","usage":{"inputTokens":3}}}`
	broken    = `{"method":"session/update","params":{"sessionId":"ses_1","update":{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"systemError"}}}}}}`
	reported  = `{"method":"session/update","params":{"sessionId":"ses_1","update":{"sessionUpdate":"session_info_update","_meta":{"jetbrains":{"air":{"sessionFailure":{"severity":"error","category":"service","title":"Sorry."}}}}}}}`
	retrying  = `{"method":"session/update","params":{"sessionId":"ses_1","update":{"sessionUpdate":"session_info_update","_meta":{"jetbrains":{"air":{"sessionFailure":{"severity":"warning","category":"service","title":"Retrying."}}}}}}}`
)

func rpcError(code int, message, data string) string {
	return fmt.Sprintf(`{"id":7,"error":{"code":%d,"message":%q,"data":%s}}`, code, message, data)
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name     string
		lines    []string
		outcome  Outcome
		evidence Evidence
		class    rouse.Class
	}{
		{"nothing", nil, Open, EvidenceNone, ""},
		{"another request's answer", []string{`{"id":6,"result":{"stopReason":"end_turn"}}`, `{"id":"7","result":{}}`}, Open, EvidenceNone, ""},
		{"the agent's own request with our id", []string{`{"id":7,"method":"x/y","params":{}}`}, Open, EvidenceNone, ""},

		// 3: the process.
		{"exit", []string{said("hi"), "exit", endedUsed}, Failed, EvidenceExit, rouse.ClassNone},
		{"exit after the answer", []string{endedUsed, "exit"}, Completed, EvidenceStop, ""},

		// 4: errors.
		{"cancelled by code, unasked", []string{rpcError(-32800, "x", "null")}, Cancelled, EvidenceRPC, ""},
		{"aborted, unasked", []string{rpcError(-32603, "Request was aborted.", "null")}, Failed, EvidenceRPC, rouse.ClassNone},
		{"aborted after a cancel", []string{cancel, rpcError(-32603, "Request was aborted.", "null")}, Cancelled, EvidenceRPC, ""},
		{"aborted after a newer prompt", []string{newer, rpcError(-32603, "Internal error", `{"details":"The prompt was cancelled"}`)}, Cancelled, EvidenceRPC, ""},
		{"aborted, a bare word", []string{cancel, rpcError(-32603, "Internal error: Aborted by the user", "null")}, Cancelled, EvidenceRPC, ""},
		{"another failure after a cancel", []string{cancel, rpcError(-32603, "connection aborted by peer: ECONNRESET", "null")}, Failed, EvidenceRPC, rouse.ClassNetwork},
		{"a cancel of another session", []string{`> {"method":"session/cancel","params":{"sessionId":"t"}}`, rpcError(-32603, "Request was aborted", "null")}, Failed, EvidenceRPC, rouse.ClassNone},
		{"a prompt of another session", []string{`> {"id":8,"method":"session/prompt","params":{"sessionId":"t"}}`, rpcError(-32603, "Request was aborted", "null")}, Failed, EvidenceRPC, rouse.ClassNone},
		{"the request taken back", []string{`> {"method":"$/cancel_request","params":{"requestId":7}}`, rpcError(-32603, "operation was aborted", "null")}, Cancelled, EvidenceRPC, ""},
		{"class by data's key", []string{rpcError(-32603, "Internal error", `{"x":{"usage_limit":1}}`)}, Failed, EvidenceRPC, rouse.ClassQuota},
		{"class by data's string", []string{rpcError(-32603, "Internal error", `["a",{"b":"Overloaded"}]`)}, Failed, EvidenceRPC, rouse.ClassCapacity},
		{"numbers in data say nothing", []string{rpcError(-32603, "Internal error", `{"status":429}`)}, Failed, EvidenceRPC, rouse.ClassNone},
		{"text before code", []string{rpcError(429, "daily quota", "null")}, Failed, EvidenceRPC, rouse.ClassQuota},
		{"code -32000", []string{rpcError(-32000, "x", "null")}, Failed, EvidenceRPC, rouse.ClassAuth},
		{"code 401", []string{rpcError(401, "x", "null")}, Failed, EvidenceRPC, rouse.ClassAuth},
		{"code 403", []string{rpcError(403, "x", "null")}, Failed, EvidenceRPC, rouse.ClassAuth},
		{"code 402", []string{rpcError(402, "x", "null")}, Failed, EvidenceRPC, rouse.ClassBilling},
		{"code 429", []string{rpcError(429, "x", "null")}, Failed, EvidenceRPC, rouse.ClassRate},
		{"code 500", []string{rpcError(500, "terminat", "null")}, Failed, EvidenceRPC, rouse.ClassCapacity},
		{"code 400", []string{rpcError(400, "x", "null")}, Failed, EvidenceRPC, rouse.ClassNone},

		// 5: answers.
		{"a: cancelled, unasked, with usage", []string{`{"id":7,"result":{"stopReason":"cancelled","usage":{"inputTokens":3}}}`}, Cancelled, EvidenceStop, ""},
		{"a before c", []string{reported, `{"id":7,"result":{"stopReason":"cancelled"}}`}, Cancelled, EvidenceStop, ""},
		{"b: end_turn of no cost after a cancel", []string{said("hi"), cancel, `{"id":7,"result":{"stopReason":"end_turn","usage":{"inputTokens":0}}}`}, Cancelled, EvidenceStop, ""},
		{"b before c", []string{reported, cancel, ended0}, Cancelled, EvidenceStop, ""},
		{"a cancel that came too late", []string{said("hi"), cancel, endedUsed}, Completed, EvidenceStop, ""},
		{"c: in an update, with usage", []string{said("hi"), reported, endedUsed}, Failed, EvidenceStatus, rouse.ClassCapacity},
		{"c: in the result, title before category", []string{said("hi"), `{"id":7,"result":{"stopReason":"end_turn","_meta":{"jetbrains":{"air":{"sessionFailure":{"severity":"error","category":"service","title":"usage limit"}}}}}}`}, Failed, EvidenceStatus, rouse.ClassQuota},
		{"c: limit", []string{`{"id":7,"result":{"_meta":{"jetbrains":{"air":{"sessionFailure":{"severity":"error","category":"limit"}}}}}}`}, Failed, EvidenceStatus, rouse.ClassQuota},
		{"c: connection", []string{`{"id":7,"result":{"_meta":{"jetbrains":{"air":{"sessionFailure":{"severity":"error","category":"connection"}}}}}}`}, Failed, EvidenceStatus, rouse.ClassNetwork},
		{"c: access", []string{`{"id":7,"result":{"_meta":{"jetbrains":{"air":{"sessionFailure":{"severity":"error","category":"access"}}}}}}`}, Failed, EvidenceStatus, rouse.ClassAuth},
		{"c: request", []string{`{"id":7,"result":{"_meta":{"jetbrains":{"air":{"sessionFailure":{"severity":"error","category":"request"}}}}}}`}, Failed, EvidenceStatus, rouse.ClassNone},
		{"a warning is a retry", []string{retrying, said("hi"), ended0}, Completed, EvidenceStop, ""},
		{"d: by the last failure text", []string{said("Error: quota"), said("Error: Overloaded"), said("and a word"), broken, ended0}, Failed, EvidenceStatus, rouse.ClassCapacity},
		{"d: without a text", []string{said("hi"), broken, ended0}, Failed, EvidenceStatus, rouse.ClassNone},
		{"d: the thread went on", []string{broken, said("hi"), endedUsed}, Completed, EvidenceStop, ""},
		{"the status alone", []string{broken}, Open, EvidenceNone, ""},
		{"e: failure text", []string{said("Error: 401 Unauthorized"), ended0}, Failed, EvidenceText, rouse.ClassAuth},
		{"e: after work", []string{said("hi"), said("You’ve reached your weekly limit"), ended0}, Failed, EvidenceText, rouse.ClassQuota},
		{"e: with a banner and a blank behind", []string{said("API Error: 529"), said("Info: x Retrying..."), said(" \n"), ended0}, Failed, EvidenceText, rouse.ClassCapacity},
		{"text after a failure", []string{said("Error: 500"), said("fine now"), ended0}, Completed, EvidenceStop, ""},
		{"a failure text and usage", []string{said("Error: 500"), endedUsed}, Completed, EvidenceStop, ""},
		{"e before f", []string{said("Error: quota"), `{"id":7,"result":{"stopReason":"refusal"}}`}, Failed, EvidenceText, rouse.ClassQuota},
		{"f: refusal", []string{said("no"), `{"id":7,"result":{"stopReason":"refusal","usage":{"outputTokens":1}}}`}, Failed, EvidenceStop, rouse.ClassNone},
		{"g: empty", []string{said("Info: Operation cancelled by user"), ended0}, Failed, EvidenceEmpty, rouse.ClassNone},
		{"g: no result at all", []string{`{"id":7,"result":null}`}, Failed, EvidenceEmpty, rouse.ClassNone},
		{"h: no text, but usage", []string{endedUsed}, Completed, EvidenceStop, ""},
		{"h: usage in the quota", []string{`{"id":7,"result":{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"output_tokens":9}}}}}`}, Completed, EvidenceStop, ""},
		{"h: a picture", []string{update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":""}}`), ended0}, Completed, EvidenceStop, ""},
		{"h: max_tokens without anything", []string{`{"id":7,"result":{"stopReason":"max_tokens"}}`}, Completed, EvidenceStop, ""},
		{"context size is no usage", []string{update(`{"sessionUpdate":"usage_update","used":8696,"size":9}`), ended0}, Failed, EvidenceEmpty, rouse.ClassNone},

		// One decision.
		{"an error after the end", []string{endedUsed, rpcError(500, "x", "null"), "exit"}, Completed, EvidenceStop, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			turn := newTurn()
			feed(t, turn, c.lines...)
			v := turn.Verdict()
			if v.Outcome != c.outcome || v.Evidence != c.evidence || v.Class != c.class {
				t.Errorf("%s %s %q, want %s %s %q", v.Outcome, v.Evidence, v.Class, c.outcome, c.evidence, c.class)
			}
			if v.DecidedAt.IsZero() == (v.Outcome != Open) {
				t.Errorf("%s at %v", v.Outcome, v.DecidedAt)
			}
		})
	}
}

func TestWeights(t *testing.T) {
	for line, want := range map[string]Weight{
		said("Hello"):  Genuine,
		said("  \n\t"): Noise,
		said("\u00a0"): Noise,
		said("Info: Request failed due to a transient API error. Retrying..."): Noise,
		said("\n\nInfo: Operation cancelled by user\n"):                        Noise,
		said("Info: all is well"):                                              Genuine,
		said("Info: Operation cancelled by user, and then"):                    Genuine,
		said("Model metadata for `m` not found. Defaulting"):                   Noise,
		said("Warning: Model metadata for `m` not found.\n\n"):                 Noise,
		said("Model metadata for you"):                                         Genuine,
		said("**Warning:** x"):                                                 Noise,
		said("Warning: x"):                                                     Genuine,
		said("pi v1.6.0\n---\n"):                                               Noise,
		said("pi v1.6.0 is out\n---\nnew"):                                     Genuine,
		said("Error: x"):                                                       Noise,
		said("Error in line 3"):                                                Genuine,
		said("API Error"):                                                      Noise,
		said("You've hit your limit"):                                          Noise,
		said("You’ve reached your limit"):                                      Noise,
		said("You've hit a wall"):                                              Genuine,
		said("You're out of usage credits"):                                    Noise,
		said("You’re out of luck"):                                             Noise,
		said("You're right"):                                                   Genuine,
		said("We’re currently experiencing high demand, so"):                   Noise,
		said("We're done"):                                                     Genuine,
		said("stream disconnected before completion: x"):                       Noise,
		said("unexpected status 503 Service"):                                  Noise,
		said("unexpected status of"):                                           Genuine,
		update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`):        Genuine,
		update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Error: hm"}}`): Noise,
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"x"}}`): Genuine,
		update(`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}`):         Noise,
		update(`{"sessionUpdate":"tool_call","toolCallId":"t"}`):                                       Genuine,
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"t"}`):                                Genuine,
		update(`{"sessionUpdate":"plan","entries":[]}`):                                                Genuine,
		update(`{"sessionUpdate":"plan_update"}`):                                                      Genuine,
		update(`{"sessionUpdate":"usage_update"}`):                                                     Noise,
		update(`{"sessionUpdate":"available_commands_update"}`):                                        Noise,
		update(`{"sessionUpdate":"session_info_update"}`):                                              Noise,
		update(`{"sessionUpdate":"current_mode_update"}`):                                              Noise,
		update(`{"sessionUpdate":"config_option_update"}`):                                             Noise,
		update(`{"sessionUpdate":"brand_new","content":{"type":"text","text":"x"}}`):                   Noise,
		`{"id":1,"method":"session/request_permission","params":{"sessionId":"ses_1"}}`:                Genuine,
		`{"id":1,"method":"craft/drainMidTurnQueue","params":{"sessionId":"ses_1"}}`:                   Noise,
		`{"method":"_auth/status_update","params":{}}`:                                                 Noise,
		`{"method":"$/cancel_request","params":{"requestId":2}}`:                                       Noise,
		`{"method":"session/update","params":{"update":{"sessionUpdate":"plan"}}}`:                     Noise,   // no session
		`{"method":"session/update","params":{"sessionId":"t","update":{"sessionUpdate":"plan"}}}`:     Foreign, // another's
		`{"id":9,"result":{}}`: Foreign,
	} {
		turn := newTurn()
		if got := turn.Agent(start, message(t, line)); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
		v := turn.Verdict()
		if v.Genuine != btoi(want == Genuine) || v.Noise != btoi(want == Noise) || v.LastGenuine.IsZero() == (want == Genuine) {
			t.Errorf("%s: %+v", line, v)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestOpenThings(t *testing.T) {
	turn := newTurn()
	feed(t, turn,
		update(`{"sessionUpdate":"tool_call","toolCallId":"a","status":"pending"}`),
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"b"}`),
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}`),
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","title":"no status"}`),
		`{"id":"p1","method":"session/request_permission","params":{"sessionId":"ses_1","toolCall":{"toolCallId":"c"}}}`,
		`{"id":2,"method":"session/request_permission","params":{"sessionId":"ses_1","toolCall":{"toolCallId":"c"}}}`,
		`{"id":3,"method":"session/request_permission","params":{"sessionId":"ses_1","toolCall":{"toolCallId":"d","status":"failed"}}}`,
		`{"id":4,"method":"session/request_permission","params":{"sessionId":"t","toolCall":{"toolCallId":"e"}}}`,
	)
	if v := turn.Verdict(); fmt.Sprintf("%s %s", v.ToolOpen, v.PermissionOpen) != `[b c] ["p1" 2 3]` {
		t.Errorf("%s %s", v.ToolOpen, v.PermissionOpen)
	}
	feed(t, turn, `> {"id":"p1","result":{"outcome":{"outcome":"cancelled"}}}`, `> {"id":3,"error":{"code":-32601}}`,
		`{"method":"$/cancel_request","params":{"requestId":2}}`, update(`{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"cancelled"}`))
	if v := turn.Verdict(); fmt.Sprintf("%s %s", v.ToolOpen, v.PermissionOpen) != `[c] []` {
		t.Errorf("%s %s", v.ToolOpen, v.PermissionOpen)
	}
	feed(t, turn, endedUsed, update(`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}`))
	if v := turn.Verdict(); v.Outcome != Completed || fmt.Sprint(v.ToolOpen) != "[c]" {
		t.Errorf("open at the end stays open: %+v", v)
	}
}

func TestUsageSeen(t *testing.T) {
	for line, want := range map[string]bool{
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":1}}}`):  true,
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"_meta":{"usage":{"inputTokens":0}}}`): false,
		update(`{"sessionUpdate":"usage_update","used":5,"_meta":{"usage":{"inputTokens":1}}}`):                                    false,
		endedUsed: true, ended0: false,
		`{"id":7,"result":{"stopReason":"cancelled","usage":{"totalTokens":4}}}`: true,
	} {
		turn := newTurn()
		feed(t, turn, line)
		if turn.Verdict().ModelUsageSeen != want {
			t.Errorf("%s: %t", line, !want)
		}
	}
}

// An agent that counts the session says in every answer what the turns before
// used: only more is proof of work.
func TestUsageOfTheSession(t *testing.T) {
	before := wire.Usage{Input: 90, Output: 9, Total: 99}
	for tokens, want := range map[string]Outcome{
		`{"inputTokens":90,"outputTokens":9,"totalTokens":99}`:    Failed,
		`{"inputTokens":190,"outputTokens":19,"totalTokens":209}`: Completed,
		`{"inputTokens":20,"outputTokens":2,"totalTokens":22}`:    Completed, // it began anew
		`{"inputTokens":0,"outputTokens":0,"totalTokens":0}`:      Failed,
	} {
		turn := New(Params{Before: before}, "copilot", "ses_1", []byte("7"), start)
		feed(t, turn, said("Error: 429 usage limit reached"), `{"id":7,"result":{"stopReason":"end_turn","usage":`+tokens+`}}`)
		if v := turn.Verdict(); v.Outcome != want || v.ModelUsageSeen != (want == Completed) {
			t.Errorf("%s after %+v: %+v", tokens, before, v)
		}
	}
}

func TestVerdictTellsAPerson(t *testing.T) {
	for line, want := range map[string]string{
		rpcError(429, "Daily quota.", `{"message":"no"}`):               "Daily quota.",
		rpcError(-32603, "Internal error", `{"message":"Usage limit"}`): "Usage limit",
		rpcError(-32603, "Internal error", `{"details":"Bad key"}`):     "Bad key",
		rpcError(-32603, "Internal error", `"as text"`):                 "as text",
		rpcError(-32603, "Internal error", `{"x":1}`):                   "Internal error",
	} {
		turn := newTurn()
		feed(t, turn, line)
		if v := turn.Verdict(); v.Text != want || v.Error == nil {
			t.Errorf("%s: %q", line, v.Text)
		}
	}
	turn := newTurn()
	feed(t, turn, said("Error: Overloaded"), `{"id":7,"result":{"stopReason":"end_turn","usage":{"inputTokens":0}}}`)
	if v := turn.Verdict(); v.Text != "Error: Overloaded" || v.StopReason != "end_turn" || !v.HasUsage {
		t.Errorf("%+v", v)
	}
}

// BenchmarkChunk is what a turn costs for each piece of text.
func BenchmarkChunk(b *testing.B) {
	turn, m := newTurn(), message(b, said("Hello "))
	b.ReportAllocs()
	for b.Loop() {
		turn.Agent(start, m)
	}
}
