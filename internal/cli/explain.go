package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"rouse"
	"rouse/internal/limits"
)

type explainCmd struct {
	Limits explainLimitsCmd `cmd:"" help:"Say what a provider's failure means, and why."`
	Stderr explainStderrCmd `cmd:"" help:"Say what an agent's standard error proves about a prompt."`
}

type explainLimitsCmd struct {
	File string `arg:"" optional:"" help:"File with one case or an array of cases; - or nothing is stdin." placeholder:"FILE"`
}

func (explainLimitsCmd) Help() string {
	return `Reads evidence as JSON and prints a line of JSON for each case: class, whether
waiting or a person is needed, when capacity returns, how sure that is, and the
rule that decided. No server and no network are needed. A case has a channel
(http, sse, acp_error, acp_update, sdk_event, stderr, text) and what came over
it; provider, agent, at, host_zone, trusted and bind are optional, and at is
now where it is missing.

Examples:
  echo '{"channel":"text","trusted":true,"provider":"anthropic","host_zone":"Europe/Berlin",
    "text":"You'"'"'ve hit your limit · resets 2am"}' | rouse explain limits
  echo '{"channel":"http","provider":"openai","http":{"status":429,"headers":{"retry-after":"30"},
    "body":"{\"error\":{\"code\":\"rate_limit_exceeded\"}}"}}' | rouse explain limits -`
}

// explanation is a finding as it is printed; what is unknown is null.
type explanation struct {
	ID            string      `json:"id"`
	Class         rouse.Class `json:"class"`
	Terminal      bool        `json:"terminal"`
	ResetAt       instant     `json:"reset_at"`
	ResetSource   *string     `json:"reset_source"`
	Confidence    string      `json:"confidence"`
	ProviderLabel string      `json:"provider_label"`
	Model         *string     `json:"model"`
	LimitName     *string     `json:"limit_name"`
	Why           string      `json:"why"`
}

func explain(c limits.Case) explanation {
	f := limits.Classify(c.Evidence)
	return explanation{ID: c.ID, Class: f.Class, Terminal: f.Terminal, ResetAt: instant(f.ResetAt), ResetSource: known(f.ResetSource), Confidence: f.Confidence,
		ProviderLabel: f.ProviderLabel, Model: known(f.Model), LimitName: known(f.LimitName), Why: f.Why}
}

// instant is a stamp as the corpus of limits writes one: milliseconds only where
// there are any, so that a line can be compared with what a case wants.
type instant time.Time

// MarshalJSON writes null for the zero time.
func (i instant) MarshalJSON() ([]byte, error) {
	t := time.Time(i)
	if t.Nanosecond() < int(time.Millisecond) && !t.IsZero() {
		return []byte(t.UTC().Format(`"2006-01-02T15:04:05Z"`)), nil
	}
	return stamp(t).MarshalJSON()
}

// known is null for what is not known.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Run explains.
func (c *explainLimitsCmd) Run(a *app) error {
	from, err := a.evidence(c.File)
	if err != nil {
		return err
	}
	defer from.Close()
	whole := &bytes.Buffer{}
	cases, err := limits.ReadCases(io.TeeReader(from, whole), time.Now())
	if err != nil {
		return brokenJSON(whole.Bytes(), err) // Invalid: a mistake in what was given
	}
	enc := a.jsonLines()
	for _, one := range cases {
		if err := enc.Encode(explain(one)); err != nil {
			return rouse.Wrap("cli: print", err)
		}
	}
	return nil
}

// brokenJSON says where the input stops being JSON, if that is what is wrong
// with it; else cause.
func brokenJSON(data []byte, cause error) error {
	if !strings.HasPrefix(rouse.SafeMessage(cause), "the input is not JSON") {
		return cause
	}
	for at := int64(0); ; {
		d := json.NewDecoder(bytes.NewReader(data[at:]))
		var one json.RawMessage
		err := d.Decode(&one)
		var syntax *json.SyntaxError
		switch {
		case err == nil:
			at += d.InputOffset()
		case errors.Is(err, io.ErrUnexpectedEOF):
			return usage("the input ends in the middle of a JSON value, after %d bytes: is the rest missing?", len(data))
		case errors.As(err, &syntax):
			line, column := place(data, at+syntax.Offset)
			return usage("the input is not JSON at line %d, column %d: %s", line, column, syntax)
		default:
			return cause
		}
	}
}

// place is the line and column, from 1, of the byte before an offset.
func place(data []byte, offset int64) (line, column int) {
	before := data[:min(max(0, offset-1), int64(len(data)))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// evidence opens a file; - and nothing are stdin.
func (a *app) evidence(name string) (io.ReadCloser, error) {
	if name == "" || name == "-" {
		return io.NopCloser(a.in), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usage("%s: the file cannot be opened", name)
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, usage("%s: it is a directory; give a file in it", name)
	}
	return f, nil
}

// jsonLines prints a line of JSON for each value, text as it is.
func (a *app) jsonLines() *json.Encoder {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc
}
