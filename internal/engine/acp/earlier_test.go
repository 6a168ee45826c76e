package acp

import (
	"context"
	"strings"
	"testing"

	"rouse"
)

// stored is a transcript that an agent did not see.
func stored(entries ...rouse.Entry) func(*Agent, *Options) {
	return func(_ *Agent, o *Options) {
		o.Messages = func(_ context.Context, _ string, limit int) ([]rouse.Entry, error) {
			return entries[max(0, len(entries)-limit):], nil
		}
	}
}

func said(role rouse.Role, id, turn, text string, more ...rouse.Part) rouse.Entry {
	return rouse.Entry{Message: rouse.Message{ID: id, Role: role, TurnID: turn}, Parts: append([]rouse.Part{{Kind: rouse.TextPart, Text: text}}, more...)}
}

// TestRecordIsGiven: an agent that is new to a session that has turns is given
// their record, bounded, and people are told.
func TestRecordIsGiven(t *testing.T) {
	entries := []rouse.Entry{said(rouse.User, "msg_0", "trn_0", "far back "+strings.Repeat("x", earlierBytes)),
		said(rouse.User, "msg_1", "trn_1", "what is it"),
		said(rouse.Assistant, "msg_2", "trn_1", "it is blue", rouse.Part{Kind: rouse.ToolPart, Tool: &rouse.ToolCall{Name: "bash", Title: "look", Output: "secret output"}}),
		said(rouse.User, "msg_3", "trn_2", "seen"), said(rouse.User, "msg_4", "trn_3", "queued behind")}
	b := newBed(t, "plain", stored(entries...))
	b.spec.Session.Messages = len(entries)
	c := b.open(t)
	p := deeds(7, "seen")
	p.MessageID = "msg_3"
	if out := asking(t, c, p); out.State != rouse.TurnCompleted {
		t.Fatalf("%+v", out)
	}
	told, text, _ := strings.Cut(b.sink.Text(7), "\n\n")
	if !strings.Contains(told, "without memory of the earlier turns") {
		t.Errorf("people are not told: %q", told)
	}
	for _, want := range []string{"blocks=2", "what came before is left out", "user: what is it", "assistant: it is blue\n(tool bash: look)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %.600q", want, text)
		}
	}
	for _, not := range []string{"far back", "secret output", "user: seen", "queued behind"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is in %.600q", not, text)
		}
	}
	if out := asking(t, c, deeds(8, "seen")); out.State != rouse.TurnCompleted || !strings.HasPrefix(b.sink.Text(8), "blocks=1 ") {
		t.Errorf("it is given twice: %.200q", b.sink.Text(8))
	}
}

// TestNotesAreGiven: messages that were stored without a turn go along with the
// next prompt, in order; older ones were given before.
func TestNotesAreGiven(t *testing.T) {
	entries := []rouse.Entry{said(rouse.User, "msg_0", "", "old note"), said(rouse.User, "msg_1", "trn_1", "first"), said(rouse.Assistant, "msg_2", "trn_1", "answer"),
		said(rouse.User, "msg_3", "", "note one"), said(rouse.User, "msg_4", "", "note two"), said(rouse.User, "msg_5", "trn_2", "seen")}
	b := newBed(t, "plain", stored(entries...))
	c := b.open(t)
	p := deeds(2, "seen")
	p.MessageID = "msg_5"
	if out := asking(t, c, p); out.State != rouse.TurnCompleted {
		t.Fatalf("%+v", out)
	}
	if got := b.sink.Text(2); got != "blocks=3 first=note one" {
		t.Errorf("%q", got)
	}
}

// TestOthersTurnsAreGiven: an agent that comes back after another one had turns
// is given the record of them, once, and of nothing that it knows.
func TestOthersTurnsAreGiven(t *testing.T) {
	by := func(provider string, e rouse.Entry) rouse.Entry {
		e.Message.Model = rouse.ModelRef{Provider: provider, Model: "m"}
		return e
	}
	b := newBed(t, "plain", stored(
		by("acp:fake", said(rouse.User, "msg_1", "trn_1", "mine")), by("acp:fake", said(rouse.Assistant, "msg_2", "trn_1", "known")),
		by("acp:fake", said(rouse.User, "msg_3", "", "a note")),
		by("openai", said(rouse.User, "msg_4", "trn_2", "theirs")), by("openai", said(rouse.Assistant, "msg_5", "trn_2", "painted it red")),
		by("acp:fake", said(rouse.User, "msg_6", "", "another note")), by("acp:fake", said(rouse.User, "msg_7", "trn_3", "seen"))))
	b.spec.Resume, b.spec.Session.Messages = "ses_earlier", 7
	c := b.open(t)
	p := deeds(3, "seen")
	p.MessageID = "msg_7"
	if out := asking(t, c, p); out.State != rouse.TurnCompleted {
		t.Fatalf("%+v", out)
	}
	got := b.sink.Text(3)
	for _, want := range []string{"blocks=2", "Another agent", "user: a note\n\nuser: theirs\n\nassistant: painted it red\n\nuser: another note"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	for _, not := range []string{"mine", "known", "seen"} {
		if strings.Contains(got, not+"\n") {
			t.Errorf("%q is in %q", not, got)
		}
	}
}
