package rouse_test

import (
	"strings"
	"testing"
	"time"

	"rouse"
)

// TestAgentWalls: whatever provider a failure names, the wall is the agent
// program's; inside one that names its models by provider, that provider's.
func TestAgentWalls(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	model := func(provider, id string) rouse.ModelRef { return rouse.ModelRef{Provider: provider, Model: id} }
	for _, c := range []struct {
		name          string
		turn          rouse.ModelRef
		said          string // the failure's provider
		account       string
		covers, spare []rouse.ModelRef
	}{
		{"a vendor's name", model("acp:claude", "default"), "anthropic", "default",
			[]rouse.ModelRef{model("acp:claude", "default")}, []rouse.ModelRef{model("anthropic", "default"), model("acp:codex", "default")}},
		{"a provider inside", model("acp:opencode", "mock/big"), "mock", "mock",
			[]rouse.ModelRef{model("acp:opencode", "mock/big"), model("acp:opencode", "mock/small"), model("acp:opencode", "default")},
			[]rouse.ModelRef{model("acp:opencode", "other/big"), model("mock", "big"), model("opencode", "mock/big")}},
		{"a provider inside, the agent chose", model("acp:opencode", "default"), "mock", "default",
			[]rouse.ModelRef{model("acp:opencode", "default"), model("acp:opencode", "mock/big")}, []rouse.ModelRef{model("mock", "big")}},
		{"its stderr names the provider, the agent chose", model("acp:opencode", "default"), "stderr:mock", "mock",
			[]rouse.ModelRef{model("acp:opencode", "default"), model("acp:opencode", "mock/big")}, []rouse.ModelRef{model("acp:opencode", "other/big")}},
		{"nobody named", model("acp:pi", "default"), "", "default", []rouse.ModelRef{model("acp:pi", "x")}, []rouse.ModelRef{model("pi", "x")}},
	} {
		source := ""
		if name, ok := strings.CutPrefix(c.said, "stderr:"); ok {
			c.said, source = name, rouse.SourceStderr
		}
		turn := &rouse.Turn{ID: "trn_1", State: rouse.TurnFailed, Model: c.turn, Failure: &rouse.Failure{Class: rouse.ClassQuota, Provider: c.said, Source: source}}
		w, ok := rouse.WallOf(turn, now)
		if !ok || w.Provider != c.turn.Provider || w.Account != c.account {
			t.Errorf("%s: %+v", c.name, w)
		}
		for _, m := range c.covers {
			if !w.Covers(m) {
				t.Errorf("%s: does not cover %s", c.name, m)
			}
		}
		for _, m := range c.spare {
			if w.Covers(m) {
				t.Errorf("%s: covers %s", c.name, m)
			}
		}
		done := &rouse.Turn{State: rouse.TurnCompleted, Model: c.turn, Started: now.Add(time.Hour)}
		if !w.FallsTo(done) {
			t.Errorf("%s: does not fall to its own model", c.name)
		}
		for _, m := range c.spare {
			done.Model = m
			if w.FallsTo(done) {
				t.Errorf("%s: falls to %s", c.name, m)
			}
		}
		i, _ := rouse.IncidentOf(turn, now)
		if i.Model != c.turn.Model || i.Kind != rouse.CodeAgent && i.Kind != rouse.CodeQuota {
			t.Errorf("%s: incident %+v", c.name, i)
		}
	}
}

// TestAgentWallNamesTheModel: where the agent chose the model, the wall names
// the one that the limit names, never the choice, and is in the way of both.
func TestAgentWallNamesTheModel(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		asked, limited, names string
		covers, spare         []string
	}{
		{"default", "echo", "echo", []string{"default", "echo"}, []string{"other"}},
		{"default", "Opus", "Opus", []string{"default", "opus", "claude-opus-4"}, []string{"claude-sonnet-4"}},
		{"default", "", "", []string{"default", "echo"}, nil},
		{"default", "default", "default", []string{"default"}, []string{"echo"}},
		{"echo", "echo", "echo", []string{"echo"}, []string{"default", "other"}},
		{"claude-opus-4", "opus", "opus", []string{"claude-opus-4"}, []string{"default"}},
		{"alias", "echo-4", "alias", []string{"alias"}, []string{"default"}},
	} {
		for _, agent := range []string{"acp:claude", "acp:copilot", "acp:mine"} {
			turn := &rouse.Turn{State: rouse.TurnFailed, Model: rouse.ModelRef{Provider: agent, Model: c.asked}, Failure: &rouse.Failure{Class: rouse.ClassQuota, LimitModel: c.limited}}
			w, ok := rouse.WallOf(turn, now)
			if !ok || w.Model != c.names {
				t.Errorf("%s asked, %s limited: %+v", c.asked, c.limited, w)
			}
			for _, m := range c.covers {
				if !w.Covers(rouse.ModelRef{Provider: agent, Model: m}) {
					t.Errorf("%s asked, %s limited: does not cover %s", c.asked, c.limited, m)
				}
			}
			for _, m := range c.spare {
				if w.Covers(rouse.ModelRef{Provider: agent, Model: m}) {
					t.Errorf("%s asked, %s limited: covers %s", c.asked, c.limited, m)
				}
			}
		}
	}
	own := &rouse.Turn{State: rouse.TurnFailed, Model: rouse.ModelRef{Provider: "mock", Model: "default"}, Failure: &rouse.Failure{Class: rouse.ClassQuota, Provider: "mock", LimitModel: "echo"}}
	if w, _ := rouse.WallOf(own, now); w.Model != "default" || w.AgentChose {
		t.Errorf("a provider's model that is called default: %+v", w)
	}
}
