package test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the simulated provider is asked to play; every agent passes it on with
// the prompt.
const (
	playTool   = `[[drill model=tool cmd="echo drilled | tee d.txt"]] use the tool`
	playHang   = "[[drill model=hang]] hang on"
	playQuota  = "[[drill model=quota]] go on"
	playRecall = "[[drill model=recall]] what did I say?"
)

// TestAgents plays the same day with every agent program: a prompt from the
// command line, a tool that asks, a model that hangs, a process that is killed,
// a usage limit.
func TestAgents(t *testing.T) {
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			l := agent(t, p, nil)
			l.run("launch", l.launches)
			l.run("run", l.runs)
			var c *chat
			l.run("tool", func() { c = l.chat(); c.usesTool() })
			if p.write != "" {
				l.run("file", func() { c.writesFile() })
			}
			l.run("hang and abort", func() { c.hangs() })
			l.run("kill -9", func() { c.isKilled() })
			l.run("usage limit", func() { c.meetsLimit() })
		})
	}
}

func (l *lab) launches() {
	out, code := l.command(append([]string{"launch", "hello from the launch"}, l.choice()...)...)
	if code != 0 {
		l.t.Fatalf("exit code %d:\n%s", code, out)
	}
	lines := strings.Fields(out)
	c := &chat{l, lines[len(lines)-1]}
	if outcome := c.settles(); outcome != "completed" {
		l.t.Fatalf("the launched turn is %s: %+v", outcome, c.health())
	}
	if _, text := c.answer(); !strings.Contains(text, "hello from the launch") {
		l.t.Errorf("it answered %q", text)
	}
}

func (l *lab) runs() {
	out, code := l.command(append([]string{"run", "hello from the run"}, l.choice()...)...)
	if code != 0 || !strings.Contains(out, "hello from the run") {
		l.t.Fatalf("exit code %d:\n%s", code, out)
	}
}

// usesTool plays a command that the agent wants to run.
func (c *chat) usesTool() {
	seen := c.events()
	c.asks(playTool)
	p, asked := c.asked()
	if asked != c.program.asks {
		c.t.Fatalf("asked: %t, want %t; %+v", asked, c.program.asks, c.messages())
	}
	if asked {
		if p.Permission != "bash" || len(p.Patterns) == 0 || !strings.Contains(p.Patterns[0], "echo drilled") || p.Tool.CallID == "" || p.Tool.MessageID == "" || p.Always == nil {
			c.t.Errorf("the permission is %+v", p)
		}
		c.until("the permission as an event", func() bool { return seen("permission.asked", p.ID, `"permission":"bash"`) })
		c.call("POST", "/permission/"+p.ID+"/reply", map[string]string{"reply": "once"}, nil)
		c.until("the reply as an event", func() bool { return seen("permission.replied", p.ID) })
	}
	if outcome := c.settles(); outcome != "completed" {
		c.t.Fatalf("the turn is %s: %+v", outcome, c.health())
	}
	if _, text := c.answer(); !strings.Contains(text, "The tool drill is done.") {
		c.t.Errorf("it answered %q", text)
	}
	c.showsTool()
}

// showsTool looks at the call as OpenCode's clients draw it.
func (c *chat) showsTool() {
	tools := 0
	for _, m := range c.messages() {
		for _, p := range m.Parts {
			if p.Type != "tool" {
				continue
			}
			tools++
			command, _ := p.State.Input["command"].(string)
			if p.Tool != "bash" || p.State.Status != "completed" || command != "echo drilled | tee d.txt" {
				c.t.Errorf("the tool's part is %+v", p)
			}
			if out := strings.TrimSpace(p.State.Output); out != "drilled" && (out != "" || !c.program.terse) {
				c.t.Errorf("the tool printed %q", out)
			}
		}
	}
	if tools != 1 {
		c.t.Errorf("there are %d tools", tools)
	}
}

// writesFile plays a file that the agent wants to make.
func (c *chat) writesFile() {
	file := filepath.Join(c.project, "new.txt")
	c.asks("[[drill model=tool " + strings.ReplaceAll(c.program.write, "FILE", file) + "]] write it")
	p, asked := c.asked()
	if diff, _ := p.Metadata["diff"].(string); !asked || p.Permission != "edit" || len(p.Patterns) == 0 || p.Patterns[0] != file || !strings.Contains(diff, "+new") {
		c.t.Fatalf("the permission is %+v; %+v", p, c.messages())
	}
	c.call("POST", "/session/"+c.id+"/permissions/"+p.ID, map[string]string{"response": "once"}, nil)
	if outcome := c.settles(); outcome != "completed" {
		c.t.Fatalf("the turn is %s: %+v", outcome, c.health())
	}
	m, _ := c.answer()
	for _, part := range m.Parts {
		if diff, _ := part.State.Metadata["diff"].(string); part.Type == "tool" &&
			(part.Tool != "write" || part.State.Status != "completed" || part.State.Input["filePath"] != file || part.State.Input["content"] != "new\n" || !strings.Contains(diff, "+new")) {
			c.t.Errorf("the tool's part is %+v", part)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "new\n" {
		c.t.Errorf("the file is %q, %v", text, err)
	}
}

// hangs plays a model that says no more; the turn is aborted and the session
// goes on.
func (c *chat) hangs() {
	c.asks(playHang)
	c.works()
	if said := c.health().Evidence.ModelConfirmed; said != c.program.confirmed {
		c.t.Errorf("the model is confirmed: %s, want %s", said, c.program.confirmed)
	}
	began := time.Now()
	c.abort()
	if outcome := c.settles(); outcome != "cancelled" {
		c.t.Errorf("the aborted turn is %s", outcome)
	}
	if took := time.Since(began); took > 15*time.Second {
		c.t.Errorf("it took %s to abort", took)
	}
	c.recalls("use the tool") // gemini 0.61.0 drops the prompt of an ended turn
}

// recalls asks what was said before: only an agent that has its session still
// knows.
func (c *chat) recalls(pieces ...string) {
	c.t.Helper()
	c.asks(playRecall)
	if outcome := c.settles(); outcome != "completed" {
		c.t.Fatalf("the next turn is %s: %+v", outcome, c.health())
	}
	_, text := c.answer()
	for _, p := range append(pieces, "what did I say?") {
		if !strings.Contains(text, p) {
			c.t.Errorf("it does not remember %q: %q", p, text)
		}
	}
	if strings.Contains(text, "is lost") {
		c.t.Errorf("it lost its session: %q", text)
	}
}

// isKilled plays the sudden end of the agent's process.
func (c *chat) isKilled() {
	c.asks(playHang)
	pid := c.works()
	left := newMarks(c.t)
	left.only(pid)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	if outcome := c.settles(); outcome != "failed" {
		c.t.Fatalf("the turn is %s", outcome)
	}
	i := c.health().Incident
	if i == nil || i.Kind != "agent_exited" || !strings.Contains(i.Message, "signal: killed") {
		c.t.Fatalf("the incident is %+v", i)
	}
	left.gone()
	c.recalls("use the tool")
}

// meetsLimit plays a plan whose limit is used up.
func (c *chat) meetsLimit() {
	began := time.Now()
	c.asks(playQuota)
	if c.program.silent {
		c.waitsSilently()
		return
	}
	if outcome := c.settles(); outcome != "failed" {
		c.t.Fatalf("the turn is %s", outcome)
	}
	c.t.Logf("the limit was known after %s", time.Since(began))
	i := c.health().Incident
	if c.program.mum {
		if i == nil || i.Kind != "agent_error" || i.Message == "" {
			c.t.Errorf("the incident is %+v", i)
		}
		return
	}
	if i == nil || i.Kind != "provider_quota_limited" || i.Provider != c.program.limit || i.Message == "" || (i.ResetAt != nil) != c.program.resets {
		c.t.Fatalf("the incident is %+v", i)
	}
	var walls struct {
		Walls []struct {
			Provider, State, Class string
			ResetAt                *time.Time `json:"reset_at"`
		}
	}
	c.call("GET", "/rouse/v1/walls", nil, &walls)
	if len(walls.Walls) != 1 || walls.Walls[0].Provider != "acp:"+c.program.name || walls.Walls[0].State != "open" || walls.Walls[0].Class != "quota" {
		c.t.Fatalf("the walls are %+v", walls.Walls)
	}
	out, code := c.command(append([]string{"launch", "hello again"}, c.choice()...)...)
	if code != 4 || !strings.Contains(out, "nothing was launched") {
		c.t.Errorf("exit code %d:\n%s", code, out)
	}
}

// waitsSilently is an agent that waits for a usage limit to end and says so
// nowhere: the turn stays open, and can be ended.
func (c *chat) waitsSilently() {
	quiet := time.NewTimer(10 * time.Second)
	defer quiet.Stop()
	<-quiet.C
	if s := c.state(); s.State != "generating" {
		c.t.Fatalf("the session is %+v", s)
	}
	c.abort()
	if outcome := c.settles(); outcome != "cancelled" {
		c.t.Errorf("the turn is %s", outcome)
	}
}
