package diagnostics

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"rouse"
)

// corpus reads a recorded contract.
func corpus(t *testing.T, file string, want any) []Case {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := ReadCases(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, want); err != nil {
		t.Fatal(err)
	}
	return cases
}

// wanted is a finding as the contract writes it.
type wanted struct {
	Action   Action  `json:"action"`
	Reason   Reason  `json:"reason"`
	Class    *string `json:"class"`
	Provider *string `json:"provider_id"`
	Model    *string `json:"model_id"`
	Message  *string `json:"message"`
	At       *string `json:"occurred_at"`
	Reset    *string `json:"reset_at"`
	URL      *string `json:"remediation_url"`
}

func written(f Finding) wanted {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	at := func(t time.Time) *string {
		if t.IsZero() {
			return nil
		}
		return text(t.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return wanted{f.Action, f.Reason, text(className(f.Class)), text(f.Provider), text(f.Model), text(f.Message), at(f.OccurredAt), at(f.ResetAt), text(f.RemediationURL)}
}

func className(c rouse.Class) string {
	if c == rouse.ClassNone {
		return "unknown"
	}
	return string(c)
}

func TestRecordedLines(t *testing.T) { linesOf(t, "diagnostics-shared.json") }

// TestLinesByTheRules are not recorded: each sentence of the rules tried from
// both sides, with what a careful and slightly mean examiner thinks of. The
// expectations were written from the rules, not from what the code does.
func TestLinesByTheRules(t *testing.T) { linesOf(t, "diagnostics-more.json") }

func linesOf(t *testing.T, name string) {
	t.Helper()
	var file struct {
		Cases []struct {
			Want  []wanted
			Check string `json:"message_check"`
		}
	}
	for i, c := range corpus(t, name, &file) {
		t.Run(c.ID, func(t *testing.T) {
			want := file.Cases[i].Want
			got := c.Findings()
			if len(got) != len(want) {
				t.Fatalf("%d lines, want %d", len(got), len(want))
			}
			for k, f := range got {
				w := written(f)
				if file.Cases[i].Check == "safe" && w.Message != nil {
					safe(t, *w.Message)
				}
				g, _ := json.Marshal(w)
				if x, _ := json.Marshal(want[k]); !bytes.Equal(g, x) {
					t.Errorf("line %d\n got %s\nwant %s", k, g, x)
				}
			}
		})
	}
}

func safe(t *testing.T, message string) {
	t.Helper()
	for _, bad := range []string{"://", "opencode.ai/", "wrk_"} {
		if strings.Contains(message, bad) {
			t.Errorf("%q holds %q", message, bad)
		}
	}
}

func TestRecordedTimelines(t *testing.T) { timelinesOf(t, "grace-shared.json") }

// TestTimelinesByTheRules are to those as TestLinesByTheRules to the lines.
func TestTimelinesByTheRules(t *testing.T) { timelinesOf(t, "grace-more.json") }

func timelinesOf(t *testing.T, name string) {
	t.Helper()
	type decision struct {
		Decision Outcome `json:"decision"`
		Via      Via     `json:"via"`
		Class    *string `json:"class"`
	}
	var file struct{ Cases []struct{ Want []decision } }
	for i, c := range corpus(t, name, &file) {
		got := []decision{}
		for _, d := range c.Decisions() {
			one := decision{d.Outcome, d.Via, nil}
			if d.Class != "" {
				s := className(d.Class)
				one.Class = &s
			}
			got = append(got, one)
		}
		g, _ := json.Marshal(got)
		if w, _ := json.Marshal(file.Cases[i].Want); !bytes.Equal(g, w) {
			t.Errorf("%s\n got %s\nwant %s", c.ID, g, w)
		}
	}
}
