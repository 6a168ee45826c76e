// Package recovery brings a hung session back: it ends the turn, verifies that
// the session is idle, gathers the facts, and wakes it with one assignment.
//
//	authorized ─► written ─► aborted ─► idle ─► prompted ─► generating
//	                 └─ the queue is held ────────────┘ released
//
// Every stage is stored before the next deed, under keys that make each deed
// happen once, so a crash anywhere is continued or ended, never doubled. Next
// is the pure part; Medic acts.
package recovery

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rouse"
)

// The budget: more rescues than this in an hour need a person.
const (
	budget       = 3
	budgetWindow = time.Hour
)

// Step is what a rescue does next.
type Step string

// The steps. Each ends in the stage that it makes true.
const (
	DoAbort  Step = "abort"  // end the running turn
	DoVerify Step = "verify" // see that nothing runs
	DoPrompt Step = "prompt" // gather facts and wake
	DoWatch  Step = "watch"  // see that it generates
	DoEnd    Step = "end"    // nothing is left to do
)

// Next says what follows the stages that are stored.
func Next(r *rouse.Rescue) Step {
	if r.Status != rouse.RescueRunning {
		return DoEnd
	}
	switch r.Stage() {
	case rouse.StageAuthorized, rouse.StageWritten:
		return DoAbort
	case rouse.StageAborted:
		return DoVerify
	case rouse.StageIdle:
		return DoPrompt
	case rouse.StagePrompted:
		return DoWatch
	default:
		return DoEnd
	}
}

// Spent says whether the budget is used up, and when the next rescue is
// allowed. Rescues that were refused for it do not count.
func Spent(past []rouse.Rescue, now time.Time) (again time.Time, spent bool) {
	var counted []rouse.Rescue
	for _, r := range past {
		if r.Status != rouse.RescuePerson && now.Sub(r.Created) < budgetWindow {
			counted = append(counted, r)
		}
	}
	if len(counted) < budget {
		return time.Time{}, false
	}
	return counted[len(counted)-budget].Created.Add(budgetWindow), true
}

// Authorized checks who asks: a person, or the session that launched this one.
// by is "user" or a session's id.
func Authorized(s *rouse.Session, by string) error {
	if by == User || by != "" && by == s.Orchestrator && by != s.ID {
		return nil
	}
	return rouse.Errorf(rouse.Denied, "rescue", "only a person or the session that launched %s may rescue it", s.ID)
}

// Patience is how long a turn must have shown no progress before it may be
// rescued without force: the distance of the watch's two frozen samples.
const Patience = 30 * time.Second

// User is who rescues when a person does.
const User = "user"

// Clause is what keeps a woken session from hanging in the same way.
const Clause = "Do not repeat the call that was in flight when the turn was ended; find another way, in smaller steps. " +
	"If you cannot go on, report status=blocked with a one-line reason and stop: do not wait, and do not ask."

// Text is the prompt that wakes the session: facts, what no longer holds, one
// assignment, the clause.
func Text(r *rouse.Rescue) string {
	out := opening(r) + " What follows was gathered by the server now; where it differs from what you remember, it is right.\n\nFacts:\n"
	f := r.Facts
	if f == nil {
		f = &rouse.Facts{}
	}
	line := func(format string, args ...any) { out += "- " + fmt.Sprintf(format, args...) + "\n" }
	line("directory: %s", plain(f.Directory))
	if f.Git {
		line("branch: %s, HEAD: %s", plain(or(f.Branch, "(detached)")), plain(or(f.Head, "(no commit yet)")))
		line("changed files: %s", changed(f))
	}
	for _, t := range f.LastTools {
		line("finished: %s", tool(t))
	}
	for _, t := range f.InFlight {
		line("ended in flight, its effect is unknown: %s", tool(t))
	}
	for _, g := range r.Given {
		line("%s", plain(g))
	}
	out += "\nNo longer valid: anything you assumed about work that was under way, queued, or promised before this message.\n"
	out += "\nYour one assignment now: " + or(r.Reassignment, "go on with the task you were given, from these facts.") + "\n\n" + Clause
	return out
}

// opening says what was done to the session, and no more than that.
func opening(r *rouse.Rescue) string {
	why := "."
	if r.Reason != "" {
		why = ": " + plain(strings.TrimRight(r.Reason, ".")) + "."
	}
	switch {
	case r.Aborted == "" && r.Last == "":
		return "You are woken" + why
	case r.Aborted == "":
		return fmt.Sprintf("Your last turn had ended (%s) and nothing ran; you are woken%s", r.Last, why)
	case r.Silence >= Patience:
		return fmt.Sprintf("Your last turn was ended from outside after %s without progress%s", r.Silence.Truncate(time.Second), why)
	default:
		return "Your last turn was ended from outside while it ran" + why
	}
}

// plain keeps what comes from files, models and callers on its line: a name
// with a line break in it must not write an assignment of its own.
func plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func tool(t rouse.ToolFact) string {
	out := plain(t.Name)
	if t.Title != "" {
		out += " (" + plain(t.Title) + ")"
	}
	if t.State != "" {
		out += ": " + t.State
	}
	return out
}

func changed(f *rouse.Facts) string {
	switch {
	case f.DirtyUnknown:
		return "not known: git did not say"
	case len(f.Dirty) == 0:
		return "none"
	}
	out := ""
	for i, file := range f.Dirty {
		if i > 0 {
			out += ", "
		}
		out += plain(file)
	}
	if f.MoreDirty > 0 {
		out += fmt.Sprintf(" and %d more", f.MoreDirty)
	}
	return out
}
