package recovery

import (
	"context"
	"strings"
	"time"

	"rouse"
	"rouse/internal/proc"
	"rouse/internal/store"
)

const (
	gitWait   = 10 * time.Second
	mostDirty = 50
	mostTools = 5
)

// gather collects what is true of a session now. What cannot be had is left
// out; nothing is guessed.
func gather(ctx context.Context, s *rouse.Session, st *store.Store, r *rouse.Rescue) (*rouse.Facts, error) {
	f := &rouse.Facts{Directory: s.Directory, Dirty: []string{}, LastTools: []rouse.ToolFact{}, InFlight: []rouse.ToolFact{}}
	page, err := st.Messages(ctx, store.MessageQuery{SessionID: s.ID, Limit: 30})
	if err != nil {
		return nil, err
	}
	for _, e := range page.Entries {
		for _, p := range e.Parts {
			if p.Tool == nil || p.Broken != nil {
				continue
			}
			fact := rouse.ToolFact{Name: p.Tool.Name, Title: rouse.Clip(p.Tool.Title, 200), State: string(p.Tool.State)}
			if r.Aborted != "" && e.Message.TurnID == r.Aborted && !p.End.Before(r.Created) { // it ended because the turn was ended
				fact.State = "ended with the turn"
				f.InFlight = append(f.InFlight, fact)
				continue
			}
			f.LastTools = append(f.LastTools, fact)
		}
	}
	if n := len(f.LastTools); n > mostTools {
		f.LastTools = f.LastTools[n-mostTools:]
	}
	gitFacts(ctx, f)
	return f, nil
}

// gitFacts asks git, if the directory is in a repository.
func gitFacts(ctx context.Context, f *rouse.Facts) {
	git := func(args ...string) (string, bool) {
		out, err := proc.Run(ctx, proc.Command{Dir: f.Directory, Argv: append([]string{"git", "--no-optional-locks"}, args...),
			Timeout: gitWait, MaxOutput: 1 << 20})
		return strings.TrimRight(out.Output, "\n"), err == nil && out.Exit == 0
	}
	if _, ok := git("rev-parse", "--git-dir"); !ok {
		return
	}
	f.Git = true
	if head, ok := git("log", "-1", "--format=%h %s"); ok { // else nothing is committed yet
		f.Head = rouse.Clip(head, 200)
	}
	if branch, ok := git("symbolic-ref", "--quiet", "--short", "HEAD"); ok {
		f.Branch = branch
	}
	status, ok := git("status", "--porcelain=v1", "-z", "--untracked-files=normal")
	if f.DirtyUnknown = !ok; !ok || status == "" {
		return
	}
	fields := strings.Split(strings.TrimRight(status, "\x00"), "\x00")
	for i := 0; i < len(fields); i++ {
		entry := fields[i]
		if len(entry) < 4 {
			continue
		}
		if entry[0] == 'R' || entry[0] == 'C' { // the old name follows
			i++
		}
		if len(f.Dirty) == mostDirty {
			f.MoreDirty++
			continue
		}
		f.Dirty = append(f.Dirty, entry[3:])
	}
}
