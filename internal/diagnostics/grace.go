package diagnostics

import (
	"cmp"
	"time"

	"rouse"
)

// DefaultGrace is how long an agent that retries by itself may show nothing
// after a failed attempt.
const DefaultGrace = 30 * time.Second

// Outcome says whether a prompt has its end.
type Outcome string

// The outcomes. A prompt that has one of the last two keeps it.
const (
	Open     Outcome = "none"
	Failed   Outcome = "failed"
	Answered Outcome = "answered" // what the answer means is judged elsewhere
)

// Via says what brought a decision about.
type Via string

// What can happen. The two actions of a failed attempt are ways as well.
const (
	ViaIgnored  Via = "ignored"  // a line that proves nothing
	ViaWait     Via = "wait"     // a look at the clock
	ViaNoise    Via = "noise"    // an event that is no progress
	ViaProgress Via = "progress" // genuine progress
	ViaAttempt  Via = Via(AttemptFailed)
	ViaRetrying Via = Via(Retrying)
	ViaStderr   Via = "stderr" // a line that proves the end
	ViaGrace    Via = "grace"  // no progress in time after a failed attempt
	ViaResult   Via = "rpc_result"
	ViaError    Via = "rpc_error"
	ViaExit     Via = "process_exit"
	ViaSettled  Via = "already_settled" // too late to mean anything
)

// Decision is what one happening means for the prompt. Class is empty where
// none is meant, and ClassNone for a failure of no known class.
type Decision struct {
	Outcome Outcome
	Via     Via
	Class   rouse.Class
}

// Grace is the fold over all that happens to one prompt, from its start to its
// one end. Every happening comes with its time, which live is the clock's and
// in a replay the recorded one; times must not go back. It is for one
// goroutine.
//
//	failed attempt → deadline → the prompt failed
//	                ↘ progress → no deadline
type Grace struct {
	// Wait is the time from a failed attempt to the deadline; 0 is
	// DefaultGrace.
	Wait time.Duration
	// ByArrival counts it from when the line came. Otherwise it is counted from
	// the record's own time.
	ByArrival bool

	prompt   Prompt
	deadline time.Time
	said     Finding // the line that was judged last
	last     Finding // the last failed attempt, while it is pending
	end      Finding // the line or attempt that ended the prompt
}

// Deadline is when the prompt fails if nothing happens, zero if it never does.
// It passes whether or not somebody looks in time.
func (g *Grace) Deadline() time.Time { return g.deadline }

// Settled reports whether the prompt has its end.
func (g *Grace) Settled() bool { return g.prompt.Settled() }

// Pending is the last failed attempt without progress since, or a zero
// Finding. After a failure by ViaStderr or ViaGrace it is the one that
// decided.
func (g *Grace) Pending() Finding {
	if g.end.Action != "" {
		return g.end
	}
	return g.last
}

// Said is what the line that Line judged last means by itself: for an ignored
// one the reason.
func (g *Grace) Said() Finding { return g.said }

// Line judges a line that came at that time.
func (g *Grace) Line(at time.Time, r Record, c Context) Decision {
	if d, over := g.due(at); over {
		g.said = Finding{Action: Ignore, Reason: ReasonSettled}
		return d
	}
	f := g.prompt.Judge(r, c)
	g.said = f
	switch f.Action {
	case Terminal:
		g.end = f
		return g.settle(Failed, ViaStderr, f.Class)
	case AttemptFailed, Retrying:
		from := f.OccurredAt
		if g.ByArrival {
			from = at
		}
		g.deadline = from.Add(cmp.Or(g.Wait, DefaultGrace))
		g.last = f
		return Decision{Open, Via(f.Action), f.Class}
	}
	return Decision{Outcome: Open, Via: ViaIgnored}
}

// Progress notes genuine progress: the streak and its deadline are gone.
func (g *Grace) Progress(at time.Time) Decision {
	if d, over := g.due(at); over {
		return d
	}
	g.prompt.Progress()
	g.clear()
	return Decision{Outcome: Open, Via: ViaProgress}
}

// Noise notes an event that is no progress.
func (g *Grace) Noise(at time.Time) Decision {
	d, over := g.due(at)
	if !over {
		d = Decision{Outcome: Open, Via: ViaNoise}
	}
	return d
}

// Tick looks whether the deadline has come.
func (g *Grace) Tick(at time.Time) Decision {
	d, over := g.due(at)
	if !over {
		d = Decision{Outcome: Open, Via: ViaWait}
	}
	return d
}

// Result notes that the agent answered the prompt.
func (g *Grace) Result(at time.Time) Decision {
	if d, over := g.due(at); over {
		return d
	}
	return g.settle(Answered, ViaResult, "")
}

// Error notes that the agent answered with an error of that class.
func (g *Grace) Error(at time.Time, class rouse.Class) Decision {
	if d, over := g.due(at); over {
		return d
	}
	return g.settle(Failed, ViaError, cmp.Or(class, rouse.ClassNone))
}

// Exit notes that the agent's process ended; its class is the pending
// attempt's.
func (g *Grace) Exit(at time.Time) Decision {
	if d, over := g.due(at); over {
		return d
	}
	return g.settle(Failed, ViaExit, cmp.Or(g.last.Class, rouse.ClassNone))
}

// due says that what happens at that time comes after the prompt's end, or
// is the end because the deadline has passed unseen.
func (g *Grace) due(at time.Time) (Decision, bool) {
	switch {
	case g.prompt.Settled():
		return Decision{Outcome: Open, Via: ViaSettled}, true
	case !g.deadline.IsZero() && !at.Before(g.deadline):
		g.end = g.last
		return g.settle(Failed, ViaGrace, g.last.Class), true
	}
	return Decision{}, false
}

func (g *Grace) settle(o Outcome, via Via, class rouse.Class) Decision {
	g.prompt.Settle()
	g.clear()
	return Decision{o, via, class}
}

func (g *Grace) clear() { g.deadline, g.last = time.Time{}, Finding{} }
