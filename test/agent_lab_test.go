package test

import (
	"bytes"
	"context"
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
