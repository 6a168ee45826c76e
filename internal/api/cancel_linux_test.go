package api_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// running says whether a process has this text in its command line.
func running(t *testing.T, text string) bool {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(bytes.ReplaceAll(line, []byte{0}, []byte(" ")), []byte(text)) {
			return true
		}
	}
	return false
}

// A tool whose processes ignore every signal that may be ignored, one of them
// in a session of its own, is over in bounded time and leaves nothing behind;
// what was queued runs, in order.
func TestCancelOfAStubbornChild(t *testing.T) {
	s := start(t)
	id := s.create()
	mark := fmt.Sprintf("301.%d", time.Now().UnixNano())
	cmd := "trap '' TERM INT HUP; setsid sleep " + mark + " & sleep " + mark + "; sleep " + mark
	s.empty(204, "POST", "/session/"+id+"/prompt_async", object{"model": "drill/slowtool", "parts": []object{{"type": "text", "text": `[[drill cmd="` + cmd + `"]]`}}})
	deadline := time.After(20 * time.Second)
	for poll := time.NewTicker(20 * time.Millisecond); !running(t, "sleep "+mark); {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("the tool does not run: %v", s.health(id))
		}
	}
	if h := s.health(id); h["evidence"].(object)["open_tool"].(object)["name"] != "bash" || strings.Contains(fmt.Sprint(h), mark) {
		t.Errorf("the tool's command is shown: %v", h["evidence"])
	}
	s.prompt(id, "echo")
	s.prompt(id, "echo")
	began := time.Now()
	s.call(202, s.token, "POST", "/rouse/v1/sessions/"+id+"/cancel", object{"generation": 1})
	if took := time.Since(began); took > time.Second {
		t.Errorf("cancel answers after %v", took)
	}
	if out := s.wait(id, "idle"); out["outcome"] != "completed" || out["generation"] != 3.0 {
		t.Errorf("the queue: %v", out)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("idle after %v", took)
	}
	if running(t, "sleep "+mark) {
		t.Error("a process is left")
	}
	told := s.events(id, "rouse.cancel.stage")
	if !strings.Contains(told, "rouse.turn.running") {
		t.Errorf("events:\n%s", told)
	}
}
