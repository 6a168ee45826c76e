package native

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"rouse"
)

// basePrompt is for agents without a prompt of their own.
const basePrompt = `You are a coding agent that works in a directory on somebody's machine, through tools.
Do what is asked, completely and nothing beyond it. Look before you change: read the files that matter and follow the conventions you find there.
Prefer the tools for files over shell commands; use the shell to build, test and look around. Check your work with the project's own tests where there are any.
Say briefly what you are about to do when it is not obvious, and at the end what you did and what is left. Refer to code as path:line.
When something essential is unclear and a question tool is offered, ask; otherwise choose what is safest and say so.
Never print secrets. Never undo changes that you did not make.`

// systemPrompt is built without running anything: it stands between a prompt
// and its first token.
func (t *turn) systemPrompt() []string {
	ref, dir := t.model.Ref, t.c.spec.Directory
	out := []string{
		cmp.Or(t.agent.Prompt, basePrompt),
		fmt.Sprintf("You are powered by the model named %s (provider: %s).", ref.Model, ref.Provider) +
			fmt.Sprintf("\n<env>\nWorking directory: %s\nGit repository: %s\nPlatform: %s\nDate: %s\n</env>",
				dir, yes(inRepository(dir)), runtime.GOOS, time.Now().Format("Mon Jan 2 2006")),
	}
	if s := t.c.rules.read(dir); s != "" {
		out = append(out, "Instructions from AGENTS.md of the working directory:\n"+s)
	}
	if t.p.System != "" {
		out = append(out, t.p.System)
	}
	return out
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// inRepository looks for .git in a folder and those above it.
func inRepository(dir string) bool {
	for range 64 {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
	return false
}

// instructions is AGENTS.md as it was last read.
type instructions struct {
	mu   sync.Mutex
	at   fileStamp
	text string
}

// maxInstructions bounds what AGENTS.md adds to the prompt.
const maxInstructions = 32 << 10

// fileStamp tells whether a file changed.
type fileStamp struct {
	mod  time.Time
	size int64
}

func stampOf(info os.FileInfo) fileStamp { return fileStamp{info.ModTime(), info.Size()} }

// read gives AGENTS.md of a folder, read again only when it changed.
func (i *instructions) read(dir string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	path := filepath.Join(dir, "AGENTS.md")
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if s := stampOf(info); s != i.at {
		f, err := os.Open(path)
		if err != nil {
			return ""
		}
		b, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
		_ = f.Close()
		if err != nil {
			return ""
		}
		i.at, i.text = s, strings.ToValidUTF8(rouse.Clip(string(b), maxInstructions), "\ufffd")
	}
	return i.text
}
