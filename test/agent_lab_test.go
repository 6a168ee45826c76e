package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lab is an agent program with a home, a simulated provider and a server of its
// own.
type lab struct {
	*server
	program program
}

// atOnce bounds the agents that work at a time: their starts are heavy.
var atOnce = make(chan struct{}, 2)

// agent makes the lab of a program; more is added to its configuration. When
// the test ends, no process of the agent may be left.
func agent(t *testing.T, p program, more map[string]any) *lab {
	t.Helper()
	file := p.find(t)
	atOnce <- struct{}{}
	t.Cleanup(func() { <-atOnce })
	l := &lab{server: place(t, "{}"), program: p}
	provider := l.provider()
	for name, text := range p.files {
		l.write(filepath.Join(l.home, filepath.FromSlash(name)), strings.ReplaceAll(text, "PROVIDER", provider))
	}
	l.write(filepath.Join(l.home, ".config", "rouse", "rouse.jsonc"), configOf(map[string]any{p.name: p.section(file, provider, more)}))
	l.start()
	marks := newMarks(t)
	t.Cleanup(func() {
		if l.cmd != nil {
			marks.of(l.cmd.Process.Pid)
			l.stop()
		}
		marks.gone()
	})
	return l
}

// provider starts a simulated provider and gives its address.
func (s *server) provider() string {
	s.t.Helper()
	cmd := exec.Command(binary, "drill", "provider", "--json")
	cmd.Env = s.env()
	var ready struct{ URL string }
	s.firstLine(cmd, &ready)
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	return strings.TrimSuffix(ready.URL, "/v1")
}

// run is one case: what looks at the server meanwhile fails that case. When a
// case failed the next ones are skipped: they use the same sessions.
func (l *lab) run(name string, f func()) {
	outer := l.t
	if outer.Failed() {
		return
	}
	outer.Run(name, func(t *testing.T) {
		l.t = t
		defer func() { l.t = outer }()
		defer l.confess()
		f()
	})
}

// confess shows what the newest session holds when its case failed.
func (l *lab) confess() {
	if !l.t.Failed() || l.cmd == nil {
		return
	}
	list := l.sessions()
	if len(list) == 0 {
		return
	}
	for _, m := range (&chat{l, list[0].ID}).messages() {
		l.t.Logf("%s: %s %+v", m.Info.Role, m.Info.Error, m.Parts)
	}
}

// command runs `rouse` as a person would, beside the server.
func (l *lab) command(args ...string) (out string, code int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"--data", l.data()}, args...)...)
	cmd.Dir, cmd.Env = l.project, l.env()
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		l.t.Fatalf("rouse %v: %v\n%s", args, err, both.String())
	}
	return colour.ReplaceAllString(both.String(), ""), code
}

// choice are the arguments that choose agent and model.
func (l *lab) choice() []string {
	args := []string{"--agent", l.program.name}
	if l.program.model != "" {
		args = append(args, "-m", "acp:"+l.program.name+"/"+l.program.model)
	}
	return args
}

// chat is a session that somebody sits in front of.
type chat struct {
	*lab
	id string
}

// chat makes one.
func (l *lab) chat() *chat {
	l.t.Helper()
	body := map[string]any{"agent": l.program.name, "title": "lab"}
	if m := l.program.model; m != "" {
		body["model"] = map[string]string{"providerID": "acp:" + l.program.name, "id": m}
	}
	var s sessionRow
	l.call("POST", "/session?directory="+l.project, body, &s)
	return &chat{l, s.ID}
}

// asks sends a prompt and does not wait.
func (c *chat) asks(text string) {
	c.t.Helper()
	c.call("POST", "/session/"+c.id+"/prompt_async", map[string]any{"parts": []any{map[string]string{"type": "text", "text": text}}}, nil)
}

// state is the session as the wire shows it.
func (c *chat) state() (s sessionRow) {
	c.t.Helper()
	c.call("GET", "/session/"+c.id, nil, &s)
	return s
}

// settles waits until nothing runs and gives the outcome.
func (c *chat) settles() string {
	c.t.Helper()
	var s sessionRow
	c.until("the turn's end", func() bool { s = c.state(); return s.State == "idle" && s.Queued == 0 && s.Outcome != "" })
	return s.Outcome
}

func (c *chat) until(what string, ok func() bool) {
	c.t.Helper()
	eventually(c.t, what, ok)
}

// eventually waits for what another program does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// said is a message of the session.
type saidMessage struct {
	Info struct {
		ID, Role, ModelID, ProviderID, Finish string
		Error                                 json.RawMessage
	}
	Parts []struct {
		Type, Text, Tool, CallID string
		State                    struct {
			Status, Output, Title, Error string
			Input                        map[string]any
			Metadata                     map[string]any
		}
	}
}

// messages are all, oldest first.
func (c *chat) messages() (list []saidMessage) {
	c.t.Helper()
	c.call("GET", "/session/"+c.id+"/message", nil, &list)
	return list
}

// answer is the last message with its text.
func (c *chat) answer() (m saidMessage, text string) {
	c.t.Helper()
	list := c.messages()
	if len(list) == 0 {
		c.t.Fatal("the session has no messages")
	}
	m = list[len(list)-1]
	for _, p := range m.Parts {
		if p.Type == "text" {
			text += p.Text
		}
	}
	return m, text
}

// permission is an open one as OpenCode's wire has it.
type permission struct {
	ID, SessionID, Permission string
	Patterns                  []string
	Metadata                  map[string]any
	Always                    []string
	Tool                      struct{ MessageID, CallID string }
}

// asked waits for a permission of the session, or its end.
func (c *chat) asked() (p permission, ok bool) {
	c.t.Helper()
	c.until("a permission", func() bool {
		var open []permission
		c.call("GET", "/permission?directory="+c.project, nil, &open)
		for _, o := range open {
			if o.SessionID == c.id {
				p, ok = o, true
			}
		}
		s := c.state()
		return ok || s.State == "idle" && s.Queued == 0
	})
	return p, ok
}

// health is what the server makes of the session.
type healthRow struct {
	Verdict  struct{ Code, Why string }
	Evidence struct {
		Process        struct{ PID int }
		ModelConfirmed string `json:"model_confirmed"`
		Stderr         struct{ Supported bool }
	}
	Incident *incidentRow
}

type incidentRow struct {
	Kind, Provider, Model, Message, Source string
	ResetAt                                *time.Time `json:"reset_at"`
}

func (c *chat) health() (h healthRow) {
	c.t.Helper()
	c.call("GET", "/rouse/v1/sessions/"+c.id+"/health", nil, &h)
	return h
}

// works waits until the agent's model was asked and something came of it: the
// process is known and the turn has progress.
func (c *chat) works() (pid int) {
	c.t.Helper()
	c.until("progress", func() bool {
		pid = c.health().Evidence.Process.PID
		_, text := c.answer()
		return pid != 0 && strings.Contains(text, "Let me think")
	})
	return pid
}

// abort ends the turn as OpenCode's clients do.
func (c *chat) abort() {
	c.t.Helper()
	c.call("POST", "/session/"+c.id+"/abort", nil, nil)
}

// events follows the wire's events from now on; seen says whether one of a type
// came with all pieces in it.
func (l *lab) events() (seen func(kind string, pieces ...string) bool) {
	t := l.t
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/event?directory="+l.project, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var all journal
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = all.ReadFrom(res.Body)
	}()
	t.Cleanup(func() { cancel(); <-done; _ = res.Body.Close() })
	return func(kind string, pieces ...string) bool {
		for line := range strings.Lines(all.String()) {
			found := strings.Contains(line, `"type":"`+kind+`"`)
			for _, p := range pieces {
				found = found && strings.Contains(line, p)
			}
			if found {
				return true
			}
		}
		return false
	}
}
