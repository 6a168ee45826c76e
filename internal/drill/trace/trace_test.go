package trace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse"
)

func write(t *testing.T, jsonl, stderr string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.jsonl")
	for name, text := range map[string]string{path: jsonl, strings.TrimSuffix(path, ".jsonl") + ".stderr.txt": stderr} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestLoadMerges(t *testing.T) {
	path := write(t, `{"t":1,"dir":"proc","ev":"spawn","n":1}
{"t":2,"dir":"c2a","msg":{"id":1,"method":"session/prompt","params":{"sessionId":"s"}}}
{"t":3,"dir":"note","x":1}
{"t":3,"dir":"a2c","msg":{"id":1,"result":{}}}
{"t":4,"dir":"c2a","raw":"{\"id\":2,\"method\":\"session/prompt\"}\n"}
{"t":5,"dir":"proc","ev":"exit","n":1,"code":null,"signal":"SIGKILL"}
{"t":6,"dir":"proc","ev":"spawn","n":2}
{"t":9,"dir":"proc","ev":"exit","n":2,"code":0,"signal":null}
`, "[3] first\ncontinued\n[7] [8] two\n")
	tr, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range tr.Events {
		got = append(got, strings.Join([]string{e.At.String(), [...]string{"c", "a", "e", "spawn", "exit"}[e.Kind], string(rune('0' + e.Process)), string(e.Line)}, " "))
	}
	want := []string{"1ms spawn 1 ", `2ms c 1 {"id":1,"method":"session/prompt","params":{"sessionId":"s"}}`, "3ms e 1 first", "3ms e 1 continued", `3ms a 1 {"id":1,"result":{}}`,
		`4ms c 1 {"id":2,"method":"session/prompt"}`, "5ms exit 1 ", "6ms spawn 2 ", "7ms e 2 [8] two", "9ms exit 2 "}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if e := tr.Events[6]; e.Code != -1 || e.Signal != "SIGKILL" {
		t.Errorf("exit: %+v", e)
	}
	if p := tr.Prompts(); len(p) != 1 || p[0].Session != "s" || p[0].Event != 1 || tr.Events[p[0].Event].At != 2*time.Millisecond {
		t.Errorf("prompts: %+v", p)
	}
}

// TestLoadText: what an agent wrote that is no message is its text, line by
// line, and nothing that its client wrote past a protocol.
func TestLoadText(t *testing.T) {
	tr, err := Load(write(t, `{"t":1,"dir":"a2c","raw":"npm warn\r\n\n{\"method\":\"x\"}\n[1]"}
{"t":2,"dir":"a2c","raw":"\n"}
{"t":2,"dir":"a2c"}
{"t":3,"dir":"a2c","msg":[1]}
{"t":4,"dir":"c2a","raw":"no JSON\n"}
`, ""))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range tr.Events {
		got = append(got, fmt.Sprintf("%s %t %t", e.Line, e.Message != nil, e.Raw))
	}
	want := []string{"npm warn false false", `{"method":"x"} true false`, "[1] false false", "[1] false false", "no JSON false true"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLoadDropsTornEnd(t *testing.T) {
	long := "[1] " + strings.Repeat("x", 189_000) + "\n[2] " + strings.Repeat("y", 2_000)
	tr, err := Load(write(t, "", long))
	if err != nil || len(tr.Events) != 1 || !bytes.HasPrefix(tr.Events[0].Line, []byte("xxx")) {
		t.Errorf("%d events, %v", len(tr.Events), err)
	}
	if tr, err = Load(write(t, "", "[1] a\n[2] b")); err != nil || len(tr.Events) != 2 {
		t.Errorf("a short file keeps its last line: %d events, %v", len(tr.Events), err)
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load("none.jsonl"); rouse.KindOf(err) != rouse.NotFound {
		t.Error(err)
	}
	if _, err := Load(write(t, "{}\n{", "")); rouse.KindOf(err) != rouse.Invalid || !strings.Contains(err.Error(), "Line 2") {
		t.Error(err)
	}
}
