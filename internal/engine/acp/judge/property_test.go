package judge

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rouse/internal/diagnostics"
	"rouse/internal/engine/acp/wire"
)

// lines are what the property draws from: the agent's and, behind "> ", the
// client's.
var lines = []string{
	cancel, newer, ended0, endedUsed, broken, reported, retrying, said("hi"), said(""), said("Error: 500"), said("Info: x Retrying..."), rpcError(429, "x", "[]"),
	rpcError(-32800, "", "null"), rpcError(0, "aborted", "null"), `{"id":7}`, `{"id":null,"result":1}`, `{"method":"session/update"}`, `{}`, `{"id":7,"result":"x"}`,
	update(`{"sessionUpdate":"tool_call","toolCallId":"a"}`), update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}`), update(`5`),
	`{"id":1,"method":"session/request_permission","params":{"sessionId":"ses_1","toolCall":{"toolCallId":"b"}}}`, `> {"id":1,"result":{}}`,
	`{"method":"$/cancel_request","params":{"requestId":1}}`, `{"method":"$/cancel_request"}`, `> {"method":"$/cancel_request","params":{"requestId":7}}`, `> {}`,
}

// TestAnyOrder feeds events in any order, with times that may even run back:
// there is one decision, it is final, and nothing that was counted is forgotten.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn := New(Params{}, rapid.SampledFrom([]string{"opencode", "codex"}).Draw(t, "agent"), ses, []byte("7"), start)
		at := start
		before := turn.Verdict()
		for range rapid.IntRange(0, 60).Draw(t, "length") {
			at = at.Add(time.Duration(rapid.IntRange(-5, 40).Draw(t, "seconds")) * time.Second)
			end := turn.Deadline()
			switch what := rapid.IntRange(0, len(lines)+3).Draw(t, "event"); {
			case what < len(lines) && lines[what][0] == '>':
				turn.Client(at, parse(lines[what][2:]))
			case what < len(lines):
				turn.Agent(at, parse(lines[what]))
			case what == len(lines):
				turn.Tick(at)
			case what == len(lines)+1 && rapid.IntRange(0, 5).Draw(t, "really") == 0:
				turn.Exit(at)
			default:
				text := rapid.SampledFrom([]string{"Overloaded", "quota", "x"}).Draw(t, "text")
				turn.Stderr(at, diagnostics.Parse(diagnostics.Line{Text: fmt.Appendf(nil,
					"timestamp=2026-11-30T12:00:00Z level=ERROR message=\"stream error\" session.id=ses_1 error.error=%s", text)}), diagnostics.Context{})
			}
			after := turn.Verdict()
			holds(t, before, after)
			if !end.IsZero() && !at.Before(end) && (after.Outcome == Open || after.DecidedAt.After(end)) {
				t.Fatalf("a deadline at %v passed: %+v", end, after)
			}
			before = after
		}
	})
}

func parse(line string) *wire.Message {
	m, err := wire.Parse([]byte(line))
	if err != nil {
		panic(err)
	}
	return m
}

// holds checks two looks at a turn, one after the other.
func holds(t *rapid.T, before, after Verdict) {
	if before.Outcome != Open && !reflect.DeepEqual(before, after) {
		t.Fatalf("decided twice: %+v, then %+v", before, after)
	}
	if after.Genuine < before.Genuine || after.Noise < before.Noise || before.ModelUsageSeen && !after.ModelUsageSeen {
		t.Fatalf("counters fell: %+v, then %+v", before, after)
	}
	if open := after.Outcome == Open; open != after.DecidedAt.IsZero() || open != (after.Evidence == EvidenceNone) || (after.Class != "") != (after.Outcome == Failed) {
		t.Fatalf("not one decision: %+v", after)
	}
}
