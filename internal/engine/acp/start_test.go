package acp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/enginetest"
)

// launch opens a conversation that must fail and gives the failure.
func launch(t *testing.T, b *bed) rouse.Failure {
	t.Helper()
	c, err := b.e.OpenConversation(t.Context(), b.spec, b.sink)
	if err == nil {
		_ = c.Close()
		t.Fatal("it was opened")
	}
	failed, ok := errors.AsType[*engine.LaunchError](err)
	if !ok {
		t.Fatalf("%T %v", err, err)
	}
	return failed.Failure
}

func TestLaunchFailures(t *testing.T) {
	for _, c := range []struct {
		name, how string
		change    func(*Agent, *Options)
		code      string
		class     rouse.Class
		says      string
	}{
		{"exit before initialize", "dies", nil, rouse.CodeLaunch, rouse.ClassNone, "exited before it was ready (exit code 1): ENOENT: cannot read"},
		{"error on initialize", "refuses", nil, rouse.CodeLaunch, rouse.ClassNone, "refused initialize: Codex process has exited with code 1"},
		{"another protocol", "newer", nil, rouse.CodeLaunch, rouse.ClassNone, "speaks version 99 of the Agent Client Protocol; Rouse speaks 1"},
		{"error on session/new", "locked", nil, rouse.CodeAuth, rouse.ClassAuth, "log in with `fake login`"},
		{"silence", "mute", func(_ *Agent, o *Options) { o.Start = 300 * time.Millisecond }, rouse.CodeLaunch, rouse.ClassNone, "did not answer initialize in time"},
		{"no such program", "", func(a *Agent, _ *Options) { a.Command = []string{"no-such-agent-here"} }, rouse.CodeLaunch, rouse.ClassNone, "could not be started: the program was not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, c.how)
			if c.change != nil {
				b = newBed(t, c.how, c.change)
			}
			f := launch(t, b)
			if f.Code != c.code || f.Class != c.class || !strings.Contains(f.Message, c.says) || !strings.HasPrefix(f.Message, "Fake ") {
				t.Errorf("%+v", f)
			}
			for _, secret := range []string{"sk-ant", "/home/someone"} {
				if strings.Contains(f.Message, secret) {
					t.Errorf("the message tells %s: %s", secret, f.Message)
				}
			}
		})
	}
	t.Run("no directory", func(t *testing.T) {
		b := newBed(t, "plain")
		b.spec.Directory += "/gone"
		if f := launch(t, b); !strings.Contains(f.Message, "does not exist") {
			t.Errorf("%+v", f)
		}
	})
}

// TestDiagnosticFlags: an agent that exits on them runs without, and says so.
func TestDiagnosticFlags(t *testing.T) {
	for how, want := range map[string]string{"plain": "supported", "noflags": "unsupported"} {
		b := newBed(t, how)
		c := b.open(t)
		if got := c.Info(); got.Diagnostics != want || got.PID == 0 || got.EngineSession == "" {
			t.Errorf("%s: %+v", how, got)
		}
		if out := asking(t, c, deeds(1, "say=hello")); out.State != rouse.TurnCompleted {
			t.Errorf("%s: %+v", how, out)
		}
	}
}

// TestResume: a process that is gone between two prompts is started again and
// the session resumed, loaded, or opened anew with a word about what is lost;
// its history is nobody's progress.
func TestResume(t *testing.T) {
	for _, c := range []struct{ name, how, first string }{
		{"resume", "plain", "blocks=1 first=seen"},
		{"load", "loads", "blocks=1 first=seen"},
		{"forgotten", "unknown", "blocks=2 first=You are in a new session of your own: you do not know the earlier one any more."},
		{"cannot", "forgetful", "blocks=2 first=You are in a new session of your own: you cannot resume sessions."},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, c.how)
			conv := b.open(t)
			id := conv.Info().EngineSession
			out := asking(t, conv, deeds(1, "say=one kill"))
			if f := out.Failure; out.State != rouse.TurnFailed || f == nil || f.Code != rouse.CodeExited || !strings.Contains(f.Message, "signal: killed") || out.Evidence != "process_exit" {
				t.Fatalf("%+v %+v", out, out.Failure)
			}
			if out := asking(t, conv, deeds(2, "seen")); out.State != rouse.TurnCompleted {
				t.Fatalf("%+v %+v", out, out.Failure)
			}
			text := b.sink.Text(2)
			if told, after, ok := strings.Cut(text, "\n\n"); ok {
				if text = after; !strings.Contains(told, "without memory of the earlier turns") {
					t.Errorf("%q", told)
				}
			}
			if !strings.HasPrefix(text, c.first) {
				t.Errorf("%q", text)
			}
			if same := conv.Info().EngineSession == id; same != (c.how == "plain" || c.how == "loads") {
				t.Errorf("session %s, was %s", conv.Info().EngineSession, id)
			}
			for _, u := range b.sink.Updates() {
				if x, ok := u.Body.(engine.Text); ok && strings.HasPrefix(x.Text, "old ") {
					t.Fatal("history came as an answer")
				}
			}
		})
	}
	t.Run("a later conversation", func(t *testing.T) {
		b := newBed(t, "plain")
		b.spec.Resume = "ses_of-another-process"
		conv := b.open(t)
		if got := conv.Info().EngineSession; got != "ses_of-another-process" {
			t.Error(got)
		}
		if out := asking(t, conv, deeds(1, "seen")); out.State != rouse.TurnCompleted || !strings.HasPrefix(b.sink.Text(1), "blocks=1") {
			t.Errorf("%+v", out)
		}
	})
}

func TestModelSelection(t *testing.T) {
	b := newBed(t, "plain")
	c := b.open(t)
	for i, step := range []struct{ model, said, code string }{
		{"", "", ""}, {"default", "", ""}, {"large", "true", ""}, {"exotic", "unknown", ""}, {"nosuch", "unknown", rouse.CodeModel}, {"small", "true", ""},
	} {
		p := deeds(uint64(i+1), "say=x")
		p.Model = rouse.ModelRef{Provider: "acp:fake", Model: step.model}
		out := asking(t, c, p)
		if step.code == "" && out.State != rouse.TurnCompleted || step.code != "" && (out.Failure == nil || out.Failure.Code != step.code || !strings.Contains(out.Failure.Message, "small, large")) {
			t.Errorf("%s: %+v %+v", step.model, out, out.Failure)
		}
		if got := c.Info().ModelConfirmed; got != step.said {
			t.Errorf("%s: confirmed %s, want %s", step.model, got, step.said)
		}
	}
}

// TestSharedProcess: two sessions in one process; force on one gives that one
// up and leaves the other at work, which is then alone and ends with the
// process. Both go on afterwards, in a fresh one.
func TestSharedProcess(t *testing.T) {
	b := newBed(t, "deaf", func(a *Agent, _ *Options) { a.Shared = true })
	one := b.open(t)
	other := &bed{e: b.e, spec: b.spec, sink: enginetest.NewRecorder()}
	two := other.open(t)
	old := one.Info()
	if old.PID != two.Info().PID || old.EngineSession == two.Info().EngineSession {
		t.Fatalf("%+v %+v", old, two.Info())
	}
	working := func(c *Conversation, sink *enginetest.Recorder) <-chan engine.Outcome {
		end := make(chan engine.Outcome, 1)
		go func() { end <- c.Prompt(t.Context(), deeds(1, "say=a hang")) }()
		sink.Await(t, "text", func(u engine.Update) bool { _, ok := u.Body.(engine.Text); return ok })
		return end
	}
	first, second := working(one, b.sink), working(two, other.sink)
	if err := one.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := <-first; out.State != rouse.TurnCancelled {
		t.Errorf("%+v", out)
	}
	if out := asking(t, one, deeds(2, "seen")); out.State != rouse.TurnCompleted || !strings.Contains(b.sink.Text(2), "was given up") {
		t.Errorf("%+v %+v %q", out, out.Failure, b.sink.Text(2))
	}
	if now := one.Info(); now.PID == old.PID || now.EngineSession == old.EngineSession {
		t.Errorf("%+v, was %+v", now, old)
	}
	select {
	case out := <-second:
		t.Fatalf("its sibling ended: %+v", out)
	default:
	}
	if err := two.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := <-second; out.State != rouse.TurnCancelled {
		t.Errorf("%+v", out)
	}
	if out := asking(t, two, deeds(2, "say=again")); out.State != rouse.TurnCompleted {
		t.Errorf("%+v %+v", out, out.Failure)
	}
	if one.Info().PID != two.Info().PID {
		t.Error("they have a process each now")
	}
}

// TestSharedProcessDies: the turns of all its sessions end as what they are.
func TestSharedProcessDies(t *testing.T) {
	b := newBed(t, "plain", func(a *Agent, _ *Options) { a.Shared = true })
	one := b.open(t)
	other := &bed{e: b.e, spec: b.spec, sink: enginetest.NewRecorder()}
	two := other.open(t)
	end := make(chan engine.Outcome, 1)
	go func() { end <- two.Prompt(t.Context(), deeds(1, "say=b hang")) }()
	other.sink.Await(t, "text", func(u engine.Update) bool { _, ok := u.Body.(engine.Text); return ok })
	for _, out := range []engine.Outcome{asking(t, one, deeds(1, "kill")), <-end} {
		if out.State != rouse.TurnFailed || out.Failure.Code != rouse.CodeExited || !strings.Contains(out.Failure.Message, "signal: killed") {
			t.Errorf("%+v %+v", out, out.Failure)
		}
	}
	other.sink.Await(t, "the exit", func(u engine.Update) bool { _, ok := u.Body.(engine.Exit); return ok })
	for _, c := range []*Conversation{one, two} {
		if out := asking(t, c, deeds(2, "say=again")); out.State != rouse.TurnCompleted {
			t.Errorf("%+v %+v", out, out.Failure)
		}
	}
}
