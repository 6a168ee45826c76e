// Command mutants breaks rules of the house on purpose, one at a time and in
// memory only, and runs the simulation: each break must be noticed. It exits 1
// if one was not.
//
//	go run ./internal/sim/mutants [name …]
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rouse/internal/proc"
)

// mutant replaces text in one file.
type mutant struct {
	name, file, old, new string
	test                 string // the package whose tests must notice it; "" is the simulation
}

// unbroken is the house as it is: it must pass, or the others prove nothing.
const unbroken = "nothing"

// stale is how a lane tells what is about a turn that is over.
const stale = "if a == nil || u.Generation != a.turn.Generation {"

// sequence is where the store's numbers are tested.
const sequence = "./internal/store"

var mutants = []mutant{
	{unbroken, "internal/session/fold.go", "package session", "package session", ""},
	{"drop the generation check", "internal/session/fold.go", stale, "if a == nil {", ""},
	{"settle twice", "internal/session/settle.go",
		"\tln.release(a)\n", "\t_ = ln.write(store.Promise, func(tx *store.Tx) error {\n\t\ts, err := tx.Session(ln.id)\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\tt := a.turn\n\t\t_, err = ln.l.finishTurn(tx, s, &t, e, a.rest())\n\t\treturn err\n\t})\n\tln.release(a)\n", ""},
	{"skip the lease check", "internal/store/turn.go",
		"\tif s.Running != turnID || s.RunningBoot != boot {", "\tif state.Valid {\n\t\treturn &s, nil\n\t}\n\tif s.Running != turnID || s.RunningBoot != boot {", ""},
	{"run the queue during a rescue", "internal/store/turn.go",
		"if s.Rescue == \"\" {", "if true {", ""},
	{"dispatch while a settled turn's engine still works", "internal/session/lane.go",
		"if ln.turn != nil || ln.draining != nil || ln.down {", "if ln.turn != nil || ln.down {", ""},
	{"forget queued prompts at the start", "internal/session/session.go",
		"\t\tl.post(id, kick{})\n\t}\n\t<-ctx.Done()", "\t\t_ = id\n\t}\n\t<-ctx.Done()", ""},
	{"leave requests open at the end of a turn", "internal/session/finish.go",
		"for i := range requests {", "for i := range requests[:0] {", ""},
	{"leave the notice at the end of a turn", "internal/session/finish.go",
		"if err := tx.HideNotice(s, t.Generation); err != nil {", "if err := error(nil); err != nil {", ""},
	{"tell no verdict of an end", "internal/session/finish.go", "return news, l.judge(tx, t)", "return news, nil", ""},
	{"wait for a dead protocol for ever", "internal/watch/judge.go", "without.Vitals = &alive", "without.Vitals = f.Vitals", ""},
	{"make a notice twice", "internal/store/notice.go",
		"if was != nil {\n\t\tkind", "if was != nil && was.Visible {\n\t\tkind", ""},
	{"spend the notice before storing", "internal/watch/keep.go",
		"\tif err != nil {\n\t\treturn rouse.Wrap(\"watch: keep\", err)\n\t}\n", "\t_ = err\n\tfor i := range told {\n\t\ttold[i] = list[i].notice\n\t}\n", ""},
	{"judge on bytes", "internal/session/sink.go", "\tif !u.Genuine {\n", "\tif !u.Genuine && u.Bytes == 0 {\n", ""},
	{"hear a diagnostic of an earlier generation", "internal/session/fold.go", stale,
		"if _, heard := u.Body.(engine.Diagnostic); a == nil || u.Generation != a.turn.Generation && !heard {", ""},
	{"take an exit for another turn's", "internal/session/fold.go", stale, stale + `
			if x, gone := u.Body.(engine.Exit); gone && a != nil {
				ln.claim(a.turn.Generation, engine.Outcome{State: rouse.TurnFailed, Failure: &rouse.Failure{Class: rouse.ClassNone, Message: x.Reason}})
			}`, ""},
	{"settle again when richer evidence comes", "internal/session/settle.go", "\t\t\ta.claimed.failure = f\n\t\t\tln.settleClaim()\n", `
			a.claimed.failure = f
			ln.settleClaim()
			_ = ln.write(store.Promise, func(tx *store.Tx) error {
				s, err := tx.Session(ln.id)
				if err != nil {
					return err
				}
				t := a.turn
				_, err = ln.l.finishTurn(tx, s, &t, *a.claimed, a.rest())
				return err
			})
`, ""},
	{"let a turn that is over choose the engine's session", "internal/session/resume.go", "\ta := ln.turn\n", `
	a := cmp.Or(ln.turn, ln.draining)
	if a != nil && ln.conv != nil {
		_ = ln.write(store.Lazy, func(tx *store.Tx) error {
			s, err := tx.Session(ln.id)
			if err != nil {
				return err
			}
			s.Resume = map[string]string{a.session.Engine: ln.conv.Info().EngineSession}
			return tx.KeepSession(s)
		})
	}
`, ""},
	{"keep the process of a deleted session", "internal/session/create.go", "l.postExisting(id, reset{}) // an agent", "_ = reset{} // an agent", ""},
	{"give a rolled back write its sequence numbers", "internal/store/committer.go",
		"tx.seq, tx.partN, tx.events = seq, part, tx.events[:events]", "_, tx.partN, tx.events = seq, part, tx.events[:events]", sequence},
	{"let a lone refused write keep its sequence numbers", "internal/store/committer.go",
		"tx.seq, tx.partN, tx.events = c.s.seq.Load(), c.s.parts, nil", "tx.partN, tx.events = c.s.parts, nil", sequence},
}

func main() {
	bad := 0
	for _, m := range mutants {
		if len(os.Args) > 1 && !slices.Contains(os.Args[1:], m.name) {
			continue
		}
		noticed, why, err := m.run()
		switch {
		case err == nil && m.name == unbroken && !noticed:
			fmt.Printf("passes   %s\n", m.name)
		case err == nil && m.name == unbroken:
			bad++
			fmt.Printf("FAILS    %s: %s\n", m.name, why)
		case err != nil:
			bad++
			fmt.Printf("error    %s: %v\n", m.name, err)
		case !noticed:
			bad++
			fmt.Printf("LIVES    %s\n", m.name)
		default:
			fmt.Printf("noticed  %s: %s\n", m.name, why)
		}
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// run runs the simulation with the mutant in place of the file.
func (m mutant) run() (noticed bool, why string, err error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return false, "", err
	}
	defer os.RemoveAll(dir)
	src, err := os.ReadFile(m.file)
	if err != nil {
		return false, "", err
	}
	if strings.Count(string(src), m.old) != 1 {
		return false, "", fmt.Errorf("its text is not once in %s: mend the mutant", m.file)
	}
	mutated, overlay := filepath.Join(dir, "file.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(src), m.old, m.new, 1)), 0o600); err != nil {
		return false, "", err
	}
	real, err := filepath.Abs(m.file)
	if err != nil {
		return false, "", err
	}
	plan, err := json.Marshal(map[string]map[string]string{"Replace": {real: mutated}})
	if err != nil {
		return false, "", err
	}
	if err := os.WriteFile(overlay, plan, 0o600); err != nil {
		return false, "", err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return false, "", err
	}
	argv := []string{"go", "test", "-overlay", overlay, "-run", "TestSimulation", "-timeout", "4m", "./internal/sim",
		"-rapid.checks=400", "-rapid.shrinktime=1s", "-rapid.nofailfile"}
	if m.test != "" {
		argv = []string{"go", "test", "-overlay", overlay, "-timeout", "4m", m.test}
	}
	res, err := proc.Run(context.Background(), proc.Command{Dir: cwd, Timeout: 5 * time.Minute, Argv: argv})
	if err != nil {
		return false, "", err
	}
	if strings.Contains(res.Output, "[build failed]") || strings.Contains(res.Output, "Usage of") {
		return false, "", fmt.Errorf("does not build: %s", res.Output)
	}
	why = reason(res.Output)
	if res.Exit != 0 && why == "" {
		return false, "", fmt.Errorf("the run broke: %s", res.Output)
	}
	return res.Exit != 0, why, nil
}

// reason is the finding in a failed run's output; without one the run itself
// broke, which says nothing about the mutant.
func reason(out string) string {
	for line := range strings.Lines(out) {
		if _, why, ok := strings.Cut(line, "after "); ok && strings.Contains(line, "[rapid] failed") {
			return strings.TrimSpace(why)
		}
		if _, why, ok := strings.Cut(line, "Original traceback ("); ok { // seen once: goroutines took another order the second time
			return strings.TrimSuffix(strings.TrimSpace(why), "):")
		}
		if strings.HasPrefix(line, "panic:") {
			return strings.TrimSpace(line)
		}
	}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}
