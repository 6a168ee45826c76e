package opencode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
)

// A wait for the next attempt is visible everywhere, with attempt and time.
func TestRetryIsVisible(t *testing.T) {
	r := newRig(t, 0)
	id := r.create()
	s := r.follow("/event")
	r.prompt(id, "x")
	tn := r.next()
	next := time.Now().Add(20 * time.Second).Truncate(time.Millisecond)
	tn.send(engine.Retry{Attempt: 2, Next: next, Class: rouse.ClassRate, Message: "slow down"})
	type status struct {
		Type, Message string
		Attempt       int
		Next          int64
	}
	check := func(where string, got status) {
		t.Helper()
		if want := (status{"retry", "slow down", 2, next.UnixMilli()}); got != want {
			t.Errorf("%s: %+v, want %+v", where, got, want)
		}
	}
	var f struct{ Status status }
	for f.Status.Type != "retry" {
		list := s.until("session.status")
		list[len(list)-1].props(&f)
	}
	check("event", f.Status)
	var all map[string]status
	r.want(200, "GET", "/session/status", nil).into(t, &all)
	check("/session/status", all[id])
	var one struct {
		State    string
		Progress struct {
			Retry struct {
				Attempt int
				Next    int64
				Class   string
			}
		}
	}
	r.want(200, "GET", "/session/"+id, nil).into(t, &one)
	if p := one.Progress.Retry; one.State != "generating" || p.Attempt != 2 || p.Next != next.UnixMilli() || p.Class != "rate" {
		t.Errorf("progress: %+v", one)
	}
	tn.send(engine.Resumed{})
	tn.say("at last")
	tn.finish()
	s.until("session.idle")
	all = nil
	r.want(200, "GET", "/session/status", nil).into(t, &all)
	if len(all) != 0 {
		t.Errorf("idle sessions have no status: %v", all)
	}
}

// A linked worktree is not its main checkout: whoever opens a session there is
// told.
func TestLinkedWorktreeWarns(t *testing.T) {
	r := newRig(t, 0)
	top := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("main/.git/HEAD", "ref: refs/heads/master\n")
	write("main/.git/worktrees/side/HEAD", "ref: refs/heads/side\n")
	write("main/.git/worktrees/side/commondir", "../..\n")
	write("main/.git/worktrees/side/gitdir", filepath.Join(top, "side", ".git")+"\n")
	write("side/.git", "gitdir: "+filepath.Join(top, "main", ".git", "worktrees", "side")+"\n")
	a := r.want(200, "POST", "/session?directory="+pathEscape(filepath.Join(top, "side")), nil)
	if w := a.header.Get("X-Session-Directory-Warning"); !strings.Contains(w, filepath.Join(top, "main")) {
		t.Errorf("warning %q", w)
	}
	if w := r.want(200, "POST", "/session?directory="+pathEscape(filepath.Join(top, "main")), nil).header.Get("X-Session-Directory-Warning"); w != "" {
		t.Errorf("a warning about the main checkout: %q", w)
	}
	var vcs struct{ Branch string }
	r.want(200, "GET", "/vcs?directory="+pathEscape(filepath.Join(top, "side")), nil).into(t, &vcs)
	if vcs.Branch != "side" {
		t.Errorf("branch %q", vcs.Branch)
	}
}
