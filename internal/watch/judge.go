package watch

import (
	"time"

	"rouse"
)

// Limits are the durations that judging rests on. They are parameters so that
// a drill can see five minutes pass in seconds.
type Limits struct {
	Notice       time.Duration // silence after which a person is told
	NeverStarted time.Duration // silence since dispatch after which a launch has failed
	Hung         time.Duration // silence without a tool after which a turn hangs
	Quiet        time.Duration // silence that is worth a word
	FrozenApart  time.Duration // how far apart two samples are at least
	RetryGrace   time.Duration // how long an overdue retry is believed in
	SampleEvery  time.Duration
	Tick         time.Duration // notices, never_started and hung are judged so often
	Peek         time.Duration // how often a session that shows a notice is looked at
}

// Default is what is used outside drills.
var Default = Limits{Notice: 5 * time.Minute, NeverStarted: 5 * time.Minute, Hung: 5 * time.Minute, Quiet: 60 * time.Second,
	FrozenApart: 30 * time.Second, RetryGrace: rouse.RetryGrace, SampleEvery: 15 * time.Second, Tick: 60 * time.Second, Peek: time.Second}

// Faster divides every duration by n, for drills; n up to 1 changes nothing.
func (l Limits) Faster(n float64) Limits {
	if n <= 1 {
		return l
	}
	for _, d := range []*time.Duration{&l.Notice, &l.NeverStarted, &l.Hung, &l.Quiet, &l.FrozenApart, &l.RetryGrace, &l.SampleEvery, &l.Tick, &l.Peek} {
		*d = max(5*time.Millisecond, time.Duration(float64(*d)/n))
	}
	return l
}

// Facts is all that a judgement may look at.
type Facts struct {
	// Running says that the session's row names a running turn. Live says that
	// the boot which dispatched it is alive.
	Running, Live bool
	// WaitingFor is the row's, used where there are no vitals.
	WaitingFor string
	// Outcome and Failure are the last turn's; Wall is the limit that it met
	// and that still stands (see Met), or nil.
	Outcome rouse.TurnState
	Ended   time.Time
	Failure *rouse.Failure
	Wall    *rouse.Wall
	// Vitals of the turn that runs here; nil when none does.
	Vitals *rouse.Vitals
	// Before is the newest sample that is far enough back; nil when none is.
	Before *rouse.Sample
	// Lost is the time since the last progress in which nobody watched.
	Lost time.Duration
	// Late forbids to say never_started or hung for the first time: the watch
	// itself comes late, or no tick is due.
	Late bool
	// Was is the code that was found last, for this turn.
	Was rouse.VerdictCode
}

// What may follow silence, once two samples show the same progress.
var nextFrozen = []string{rouse.NextWait, rouse.NextCancel, rouse.NextRescue}

// Judge says what a session does. The first code that fits wins. A session
// that never ran a turn, or whose turn another live server runs, gets no code.
func Judge(now time.Time, f *Facts, l *Limits) rouse.Verdict {
	switch {
	case !f.Running:
		return settled(f)
	case f.Vitals != nil:
		v := running(now, f, l)
		v.Facts.StoreDown = f.Vitals.StoreDown
		return v
	case !f.Live:
		return verdict(rouse.Orphaned, time.Time{})
	case f.WaitingFor == rouse.ForPermission:
		return verdict(rouse.WaitingPermission, time.Time{})
	case f.WaitingFor == rouse.ForQuestion:
		return verdict(rouse.WaitingQuestion, time.Time{})
	}
	return rouse.Verdict{}
}

func verdict(code rouse.VerdictCode, since time.Time) rouse.Verdict {
	k, _ := code.Kind()
	return rouse.Verdict{Code: code, Since: since, Confidence: rouse.Certain, Next: k.Next}
}

// settled is about a session in which nothing runs.
func settled(f *Facts) rouse.Verdict {
	code := rouse.SettledVerdict(f.Outcome)
	if code == "" {
		return rouse.Verdict{}
	}
	if f.Outcome != rouse.TurnFailed || f.Failure == nil {
		return verdict(code, f.Ended)
	}
	var until time.Time
	if f.Wall != nil {
		code, until = rouse.WaitingQuota, f.Wall.ResetAt
	}
	v := verdict(code, f.Ended)
	v.Until = until
	v.Facts = rouse.VerdictFacts{Class: f.Failure.Class, Provider: f.Failure.Provider, Limit: f.Failure.LimitName, Failure: f.Failure.Code}
	return v
}

// Met is the wall that stands in the way of a failed turn's model and that it
// ran into; nil when it ran into none or that one is not open any more.
func Met(now time.Time, t *rouse.Turn, walls []rouse.Wall) *rouse.Wall {
	if t == nil || t.State != rouse.TurnFailed || t.Failure == nil {
		return nil
	}
	if _, ran := rouse.WallOf(t, t.Ended); !ran && t.Failure.Source != rouse.SourceWall {
		return nil
	}
	for i := range walls {
		if walls[i].StateAt(now) == rouse.WallIsOpen && walls[i].Covers(t.Model) {
			return &walls[i]
		}
	}
	return nil
}

// running is about a turn that a lane of this server holds.
func running(now time.Time, f *Facts, l *Limits) rouse.Verdict {
	v := f.Vitals
	if w := v.Waiting; w != nil {
		code := rouse.WaitingQuestion
		if w.For == rouse.ForPermission {
			code = rouse.WaitingPermission
		}
		return verdict(code, w.Since)
	}
	if r := v.Retry; r != nil && !now.After(r.Next.Add(l.RetryGrace)) {
		out := verdict(rouse.Retrying, v.RetrySince)
		out.Until, out.Facts = r.Next, rouse.VerdictFacts{Attempt: r.Attempt, Class: r.Class}
		return out
	}
	silence := max(0, v.Silence(now, l.RetryGrace)-f.Lost)
	out := silent(now, f, l, silence)
	out.Facts.SilenceMS, out.Facts.Nothing = silence.Milliseconds(), v.Counters.Genuine == 0
	return out
}

// silent judges a turn in which nobody is waited for by its silence.
func silent(now time.Time, f *Facts, l *Limits, silence time.Duration) rouse.Verdict {
	v := f.Vitals
	frozen := f.Before != nil && f.Before.Frozen(&v.Counters)
	after := func(d time.Duration) time.Time { return now.Add(d - silence) }
	switch {
	case v.Probe != nil && v.Probe.Answered.IsZero() && v.Probe.Asked.After(v.LastGenuine):
		return verdict(rouse.Unresponsive, v.Probe.Asked)
	case v.LastGenuine.IsZero() && silence >= l.NeverStarted && (!f.Late || f.Was == rouse.NeverStarted):
		return verdict(rouse.NeverStarted, after(l.NeverStarted))
	case !v.LastGenuine.IsZero() && v.OpenTool == nil && silence >= l.Hung && frozen && (!f.Late || f.Was == rouse.Hung):
		out := verdict(rouse.Hung, after(l.Hung))
		out.Confidence, out.Facts.Frozen = rouse.Likely, true
		return out
	case silence >= l.Quiet:
		code := rouse.Quiet
		if v.OpenTool != nil {
			code = rouse.QuietTool
		}
		out := verdict(code, after(l.Quiet))
		out.Confidence, out.Facts.Frozen = rouse.Likely, frozen
		out.Facts.Tool = toolName(v)
		if frozen {
			out.Next = nextFrozen
		}
		return out
	}
	return verdict(rouse.Working, v.Clock)
}

// neverBegan says that the turn is to be ended, as one that never began. A dead
// protocol says more than never_started and masks it, but it is no sign of life.
func neverBegan(now time.Time, f *Facts, found *rouse.Verdict, l *Limits) bool {
	if found.Code != rouse.Unresponsive {
		return found.Code == rouse.NeverStarted
	}
	alive := *f.Vitals
	alive.Probe = nil
	without := *f
	without.Vitals = &alive
	return Judge(now, &without, l).Code == rouse.NeverStarted
}

// toolName is how the tool that runs is called in front of people: its title
// or its name, never its arguments.
func toolName(v *rouse.Vitals) string {
	switch {
	case v.OpenTool == nil:
		return ""
	case v.OpenTool.Title != "":
		return rouse.Clip(v.OpenTool.Title, 120)
	}
	return rouse.Clip(v.OpenTool.Name, 120)
}

// noticeDue says whether a person has to be told of the turn's silence, or
// told again. A turn that never began is not waited for: it fails.
func noticeDue(v *rouse.Vitals, found *rouse.Verdict, l *Limits, told time.Time) bool {
	k, ok := found.Code.Kind()
	if !ok || k.ClockStands || v.LastGenuine.IsZero() {
		return false
	}
	if time.Duration(found.Facts.SilenceMS)*time.Millisecond < l.Notice {
		return false
	}
	return told.IsZero() || v.LastGenuine.After(told)
}
