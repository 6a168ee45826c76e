package daemon_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse"
	"rouse/internal/daemon"
)

func async(t *testing.T, r daemon.Ready, session, model, text string) *http.Response {
	t.Helper()
	return call(t, r, "POST", "/session/"+session+"/prompt_async", map[string]any{"model": "drill/" + model,
		"parts": []map[string]string{{"type": "text", "text": text}}}, nil)
}

// A drain lets the running turn end, holds what waits and what comes, and the
// next start runs it.
func TestDrain(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	ready := make(chan daemon.Ready, 1)
	opt := options(t, data)
	opt.Ready = func(r daemon.Ready) { ready <- r }
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(context.Background(), opt) }()
	r := <-ready
	var s struct{ ID string }
	call(t, r, "POST", "/session?directory="+t.TempDir(), map[string]any{}, &s)
	first := async(t, r, s.ID, "stream", "[[drill tokens=30 rate=50]] one").Header.Get("X-Rouse-Turn")
	second := async(t, r, s.ID, "echo", "two").Header.Get("X-Rouse-Turn")
	for { // the first one runs
		var out struct{ State string }
		if call(t, r, "GET", "/session/"+s.ID, nil, &out); out.State == "generating" {
			break
		}
	}
	var drained struct{ Running int }
	if res := call(t, r, "POST", "/rouse/v1/drain", map[string]int{"timeout_sec": 30}, &drained); res.StatusCode != 202 || drained.Running != 1 {
		t.Errorf("drain: %d %+v", res.StatusCode, drained)
	}
	held := async(t, r, s.ID, "echo", "three")
	if held.StatusCode != 202 {
		t.Errorf("a prompt during the drain: %d", held.StatusCode)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the server did not stop")
	}
	http.DefaultClient.CloseIdleConnections()
	start(t, options(t, data)) // stopped by the test's end, after what waited has run
	l := &ledger{turns: map[string]string{first: s.ID, second: s.ID, held.Header.Get("X-Rouse-Turn"): s.ID}}
	l.await(t, data)
}

// await waits until all promised turns are completed, reading the database.
func (l *ledger) await(t *testing.T, data string) {
	t.Helper()
	copies := t.TempDir()
	deadline := time.Now().Add(30 * time.Second)
	for n := 0; ; n++ {
		file := filepath.Join(copies, time.Now().Format("150405.000000000"))
		if err := daemon.Backup(t.Context(), data, file); err != nil {
			t.Fatal(err)
		}
		states := l.states(t, file)
		if states[rouse.TurnCompleted] == len(l.turns) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("turns: %v", states)
		}
	}
}

func TestBackupAndRestore(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "copy.db")
	r, stop := start(t, options(t, data))
	var s struct{ ID string }
	call(t, r, "POST", "/session?directory="+t.TempDir(), map[string]any{"title": "kept"}, &s)
	if err := daemon.Backup(t.Context(), data, file); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Backup(t.Context(), data, file); rouse.KindOf(err) != rouse.Conflict {
		t.Errorf("over an existing file: %v", err)
	}
	if _, err := daemon.Restore(t.Context(), data, file, time.Now()); rouse.KindOf(err) != rouse.Conflict {
		t.Errorf("under a running server: %v", err)
	}
	call(t, r, "DELETE", "/session/"+s.ID, nil, nil)
	stop()
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Restore(t.Context(), data, bad, time.Now()); rouse.KindOf(err) != rouse.Invalid {
		t.Errorf("a file that is none: %v", err)
	}
	kept, err := daemon.Restore(t.Context(), data, file, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	for _, from := range []string{filepath.Join(data, "none"), data, bad} {
		if _, err := daemon.Restore(t.Context(), moved, from, time.Now()); rouse.KindOf(err) != rouse.Invalid || !strings.Contains(rouse.SafeMessage(err), from) {
			t.Errorf("from %s: %v", from, err)
		}
		if _, err := os.Stat(moved); err == nil {
			t.Errorf("from %s: the folder was made", from)
		}
	}
	if kept, err := daemon.Restore(t.Context(), moved, file, time.Now()); kept != "" || err != nil {
		t.Errorf("into a new folder: kept %q, %v", kept, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
		t.Errorf("beside the backup: %v", left)
	}
	if err := daemon.Backup(t.Context(), data, filepath.Join(bad, "x.db")); !strings.Contains(rouse.SafeMessage(err), bad) {
		t.Errorf("to where nothing can be made: %v", err)
	}
	for _, folder := range []string{data, moved} {
		r, stop = start(t, options(t, folder))
		var list []struct{ Title string }
		if call(t, r, "GET", "/session", nil, &list); len(list) != 1 || list[0].Title != "kept" {
			t.Errorf("after the restore: %+v", list)
		}
		stop()
	}
}

// To open a named pipe waits, and no signal ends that.
func TestRestoreFromAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Restore(t.Context(), t.TempDir(), pipe, time.Now()); rouse.KindOf(err) != rouse.Invalid {
		t.Errorf("%v", err)
	}
}
