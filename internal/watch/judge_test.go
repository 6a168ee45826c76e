package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is a moment after the dispatch.
func at(d time.Duration) time.Time { return epoch.Add(d) }

// vitals of a turn that was dispatched at the epoch, with progress at the
// given time (0: none).
func vitals(progress time.Duration, change ...func(*rouse.Vitals)) *rouse.Vitals {
	v := &rouse.Vitals{TurnID: "trn_1", Generation: 1, Epoch: 1, Started: epoch, Clock: epoch}
	if progress > 0 {
		v.LastGenuine, v.Clock = at(progress), at(progress)
		v.Counters = rouse.Counters{Events: 3, Genuine: 2, TextBytes: 8, OutputTokens: 5}
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func tool(v *rouse.Vitals) {
	v.OpenTool = &rouse.OpenTool{ID: "c", Name: "bash", Title: "Run all tests"}
}

func sampleWith(change func(*rouse.Counters)) *rouse.Sample {
	c := vitals(time.Second).Counters
	if change != nil {
		change(&c)
	}
	return &rouse.Sample{At: epoch, Counters: c}
}

func TestJudgeRunning(t *testing.T) {
	frozen := sampleWith(nil)
	s := time.Second
	m := time.Minute
	retry := func(next time.Duration) func(*rouse.Vitals) {
		return func(v *rouse.Vitals) {
			v.Retry, v.RetrySince = &rouse.RetryFact{Attempt: 2, Next: at(next), Class: rouse.ClassRate}, at(time.Second)
		}
	}
	waits := func(what string, since time.Duration) func(*rouse.Vitals) {
		return func(v *rouse.Vitals) { v.Waiting = &rouse.WaitFact{For: what, ID: "per_1", Since: at(since)} }
	}
	probe := func(asked, answered time.Duration) func(*rouse.Vitals) {
		return func(v *rouse.Vitals) {
			v.Probe = &rouse.ProbeFact{Asked: at(asked)}
			if answered > 0 {
				v.Probe.Answered = at(answered)
			}
		}
	}
	for _, c := range []struct {
		name   string
		now    time.Duration
		v      *rouse.Vitals
		before *rouse.Sample
		change func(*Facts)
		want   rouse.VerdictCode
	}{
		{"just dispatched", 0, vitals(0), nil, nil, rouse.Working},
		{"no word for 59.9 s", 59900 * time.Millisecond, vitals(0), nil, nil, rouse.Working},
		{"no word for 60 s", 60 * s, vitals(0), nil, nil, rouse.Quiet},
		{"no word for just under 5 min", 5*m - 1, vitals(0), nil, nil, rouse.Quiet},
		{"no word for 5 min", 5 * m, vitals(0), nil, nil, rouse.NeverStarted},
		{"no word for 5 min, but late", 5 * m, vitals(0), nil, func(f *Facts) { f.Late = true }, rouse.Quiet},
		{"no word, said before the lateness", 6 * m, vitals(0), nil, func(f *Facts) { f.Late, f.Was = true, rouse.NeverStarted }, rouse.NeverStarted},
		{"no word for 8 min of which 4 were lost", 8 * m, vitals(0), nil, func(f *Facts) { f.Lost = 4 * m }, rouse.Quiet},
		{"progress 59 s ago", 60 * s, vitals(s), frozen, nil, rouse.Working},
		{"progress 60 s ago", 61 * s, vitals(s), frozen, nil, rouse.Quiet},
		{"silent for just under 5 min", 5*m + s - 1, vitals(s), frozen, nil, rouse.Quiet},
		{"silent for 5 min, frozen", 5*m + s, vitals(s), frozen, nil, rouse.Hung},
		{"silent for 5 min, one sample only", 5*m + s, vitals(s), nil, nil, rouse.Quiet},
		{"silent for 5 min, late", 5*m + s, vitals(s), frozen, func(f *Facts) { f.Late = true }, rouse.Quiet},
		{"silent for 5 min, found before", 5*m + s, vitals(s), frozen, func(f *Facts) { f.Late, f.Was = true, rouse.Hung }, rouse.Hung},
		{"text grew between the samples", 5*m + s, vitals(s), sampleWith(func(c *rouse.Counters) { c.TextBytes-- }), nil, rouse.Quiet},
		{"tokens grew between the samples", 5*m + s, vitals(s), sampleWith(func(c *rouse.Counters) { c.OutputTokens-- }), nil, rouse.Quiet},
		{"events grew between the samples: noise", 5*m + s, vitals(s), sampleWith(func(c *rouse.Counters) { c.Events-- }), nil, rouse.Hung},
		{"parts grew between the samples: shown only", 5*m + s, vitals(s), sampleWith(func(c *rouse.Counters) { c.Parts--; c.Messages-- }), nil, rouse.Hung},
		{"tool, 59 s", 60 * s, vitals(s, tool), frozen, nil, rouse.Working},
		{"tool, 60 s", 61 * s, vitals(s, tool), frozen, nil, rouse.QuietTool},
		{"tool, an hour", time.Hour, vitals(s, tool), frozen, nil, rouse.QuietTool},
		{"permission for a day", 24 * time.Hour, vitals(s, waits(rouse.ForPermission, s)), frozen, nil, rouse.WaitingPermission},
		{"question for a day", 24 * time.Hour, vitals(s, tool, waits(rouse.ForQuestion, s)), frozen, nil, rouse.WaitingQuestion},
		{"a person masks a retry", 10 * s, vitals(s, retry(m), waits(rouse.ForQuestion, s)), nil, nil, rouse.WaitingQuestion},
		{"retry before its time", 9 * m, vitals(0, retry(10*m)), nil, nil, rouse.Retrying},
		{"retry 60 s after its time", 11 * m, vitals(0, retry(10*m)), nil, nil, rouse.Retrying},
		{"retry more than 60 s after its time: the clock goes on from there", 11*m + 59*s, vitals(0, retry(10*m)), nil, nil, rouse.Quiet},
		{"retry overdue by 5 min and the grace", 16 * m, vitals(0, retry(10*m)), nil, nil, rouse.NeverStarted},
		{"retry masks an unanswered probe", 10 * s, vitals(s, retry(m), probe(2*s, 0)), nil, nil, rouse.Retrying},
		{"probe unanswered", 2 * m, vitals(s, probe(m, 0)), frozen, nil, rouse.Unresponsive},
		{"probe unanswered masks hung", 10 * m, vitals(s, probe(m, 0)), frozen, nil, rouse.Unresponsive},
		{"probe answered", 10 * m, vitals(s, probe(m, m+s)), frozen, nil, rouse.Hung},
		{"progress after the probe", 10 * m, vitals(2*m, probe(m, 0)), frozen, nil, rouse.Hung},
	} {
		f := Facts{Running: true, Live: true, Vitals: c.v, Before: c.before}
		if c.change != nil {
			c.change(&f)
		}
		got := Judge(at(c.now), &f, &Default)
		if got.Code != c.want {
			t.Errorf("%s: %s, want %s (%s)", c.name, got.Code, c.want, got.Why())
		}
		down := *c.v
		down.StoreDown = true
		f.Vitals = &down
		if refused := Judge(at(c.now), &f, &Default); refused.Code != got.Code || !strings.Contains(refused.Why(), "refuses writes") {
			t.Errorf("%s, and the store is down: %s %s", c.name, refused.Code, refused.Why())
		}
		if got.Why() == "" || got.Confidence == "" || len(got.Next) == 0 {
			t.Errorf("%s: a verdict without sentence, confidence or what may follow: %+v", c.name, got)
		}
	}
}

func TestJudgeSettled(t *testing.T) {
	quota := &rouse.Failure{Class: rouse.ClassQuota, Code: rouse.CodeQuota, Provider: "p", LimitName: "5 hour", ResetAt: at(time.Hour)}
	for _, c := range []struct {
		name  string
		f     Facts
		want  rouse.VerdictCode
		until time.Time
	}{
		{"never ran", Facts{}, "", time.Time{}},
		{"completed", Facts{Outcome: rouse.TurnCompleted}, rouse.SettledCompleted, time.Time{}},
		{"cancelled", Facts{Outcome: rouse.TurnCancelled}, rouse.SettledCancelled, time.Time{}},
		{"interrupted", Facts{Outcome: rouse.TurnInterrupted}, rouse.SettledInterrupted, time.Time{}},
		{"failed", Facts{Outcome: rouse.TurnFailed, Failure: &rouse.Failure{Class: rouse.ClassAuth, Code: rouse.CodeAuth}}, rouse.SettledFailed, time.Time{}},
		{"failed, nothing known", Facts{Outcome: rouse.TurnFailed}, rouse.SettledFailed, time.Time{}},
		{"quota, its wall stands", Facts{Outcome: rouse.TurnFailed, Failure: quota, Wall: &rouse.Wall{State: "open", ResetAt: at(time.Hour)}}, rouse.WaitingQuota, at(time.Hour)},
		{"quota, reset unknown", Facts{Outcome: rouse.TurnFailed, Failure: quota, Wall: &rouse.Wall{State: "open"}}, rouse.WaitingQuota, time.Time{}},
		{"quota, no wall any more", Facts{Outcome: rouse.TurnFailed, Failure: quota}, rouse.SettledFailed, time.Time{}},
		{"cancelled on a wall", Facts{Outcome: rouse.TurnCancelled, Failure: quota}, rouse.SettledCancelled, time.Time{}},
		{"orphaned", Facts{Running: true}, rouse.Orphaned, time.Time{}},
		{"orphaned while waiting", Facts{Running: true, WaitingFor: rouse.ForQuestion}, rouse.Orphaned, time.Time{}},
		{"runs elsewhere", Facts{Running: true, Live: true}, "", time.Time{}},
		{"waits elsewhere", Facts{Running: true, Live: true, WaitingFor: rouse.ForPermission}, rouse.WaitingPermission, time.Time{}},
	} {
		got := Judge(epoch, &c.f, &Default)
		if got.Code != c.want || !got.Until.Equal(c.until) {
			t.Errorf("%s: %s until %v, want %s until %v", c.name, got.Code, got.Until, c.want, c.until)
		}
		if got.Code != "" && got.Why() == "" {
			t.Errorf("%s: no sentence", c.name)
		}
	}
}

func TestMet(t *testing.T) {
	turn := func(f rouse.Failure) *rouse.Turn {
		return &rouse.Turn{State: rouse.TurnFailed, Ended: epoch, Model: rouse.ModelRef{Provider: "p", Model: "m"}, Failure: &f}
	}
	open := []rouse.Wall{{Provider: "other", State: rouse.WallIsOpen}, {ID: "w", Provider: "p", State: rouse.WallIsOpen, ResetAt: at(time.Hour), ProbeAt: at(time.Hour)}}
	for _, c := range []struct {
		name  string
		t     *rouse.Turn
		now   time.Duration
		walls []rouse.Wall
		want  bool
	}{
		{"quota", turn(rouse.Failure{Class: rouse.ClassQuota}), 0, open, true},
		{"refused by the wall itself", turn(rouse.Failure{Class: rouse.ClassQuota, Source: rouse.SourceWall}), 0, open, true},
		{"rate with a far reset", turn(rouse.Failure{Class: rouse.ClassRate, ResetAt: at(time.Hour)}), 0, open, true},
		{"at the reset it is to be tried", turn(rouse.Failure{Class: rouse.ClassQuota}), time.Hour, open, false},
		{"another failure", turn(rouse.Failure{Class: rouse.ClassAuth}), 0, open, false},
		{"closed", turn(rouse.Failure{Class: rouse.ClassQuota}), 0, nil, false},
		{"another provider's", turn(rouse.Failure{Class: rouse.ClassQuota}), 0, open[:1], false},
		{"no turn", nil, 0, open, false},
		{"completed", &rouse.Turn{State: rouse.TurnCompleted}, 0, open, false},
	} {
		if got := Met(at(c.now), c.t, c.walls); (got != nil) != c.want || got != nil && got.ID != "w" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// Every code of the table can be found, has its own row, and says by Since when
// it began.
func TestTable(t *testing.T) {
	var seen []rouse.VerdictCode
	for _, k := range rouse.VerdictKinds {
		if slices.Contains(seen, k.Code) || k.Sentence == "" || k.Severity == "" {
			t.Errorf("row %+v", k)
		}
		seen = append(seen, k.Code)
		v := rouse.Verdict{Code: k.Code}
		if v.Why() == "" {
			t.Errorf("%s has no sentence", k.Code)
		}
		if k.Code.Over() != (k.Next == nil || k.Code == rouse.WaitingQuota) {
			t.Errorf("%s: over %v", k.Code, k.Code.Over())
		}
	}
	v := Judge(at(10*time.Minute), &Facts{Running: true, Vitals: vitals(time.Minute, tool)}, &Default)
	if !v.Since.Equal(at(2*time.Minute)) || v.Facts.Tool != "Run all tests" || v.Facts.SilenceMS != 540_000 {
		t.Errorf("%+v", v)
	}
}

// A person may rescue from the second frozen sample on, and not before.
func TestRescueFromTheSecondFrozenSample(t *testing.T) {
	for _, before := range []*rouse.Sample{nil, sampleWith(func(c *rouse.Counters) { c.Genuine-- }), sampleWith(nil)} {
		v := Judge(at(2*time.Minute), &Facts{Running: true, Vitals: vitals(time.Second), Before: before}, &Default)
		want := before != nil && before.Counters.Genuine == 2
		if v.Code != rouse.Quiet || slices.Contains(v.Next, rouse.NextRescue) != want || v.Facts.Frozen != want {
			t.Errorf("before %+v: %+v", before, v)
		}
	}
}

// The clock stands while a person or a known retry is waited for, and goes on
// where it stood.
func TestSilenceStands(t *testing.T) {
	v := vitals(0)
	v.Stand(at(time.Minute), at(time.Hour)) // asked after a minute, answered after an hour
	if got := v.Silence(at(time.Hour+time.Minute), time.Minute); got != 2*time.Minute {
		t.Errorf("after an answer: %v", got)
	}
	v = vitals(0)
	v.Retry, v.RetrySince = &rouse.RetryFact{Next: at(10 * time.Minute)}, at(2*time.Minute)
	for now, want := range map[time.Duration]time.Duration{5 * time.Minute: 2 * time.Minute, 11 * time.Minute: 2 * time.Minute, 13 * time.Minute: 4 * time.Minute} {
		if got := v.Silence(at(now), time.Minute); got != want {
			t.Errorf("retry at %v: %v, want %v", now, got, want)
		}
	}
	v.StandRetry(at(10*time.Minute), time.Minute)
	v.Retry = nil
	if got := v.Silence(at(12*time.Minute), time.Minute); got != 4*time.Minute {
		t.Errorf("after the retry: %v", got)
	}
	v = vitals(30 * time.Minute) // progress while a second request is open
	v.Waiting = &rouse.WaitFact{Since: at(time.Minute)}
	if got := v.Silence(at(time.Hour), time.Minute); got != 0 {
		t.Errorf("waiting since before the progress: %v", got)
	}
}

func TestNoticeDue(t *testing.T) {
	m := time.Minute
	for _, c := range []struct {
		name string
		now  time.Duration
		v    *rouse.Vitals
		told time.Time
		want bool
	}{
		{"just under 5 min", 5*m + time.Second - 1, vitals(time.Second), time.Time{}, false},
		{"5 min", 5*m + time.Second, vitals(time.Second), time.Time{}, true},
		{"with a tool", 5*m + time.Second, vitals(time.Second, tool), time.Time{}, true},
		{"told already", 9 * m, vitals(time.Second), at(5 * m), false},
		{"progress since it was told", 12 * m, vitals(6 * m), at(5 * m), true},
		{"never began: it fails instead", 6 * m, vitals(0), time.Time{}, false},
		{"a person is waited for", time.Hour, vitals(time.Second, func(v *rouse.Vitals) { v.Waiting = &rouse.WaitFact{Since: at(time.Second)} }), time.Time{}, false},
	} {
		verdict := Judge(at(c.now), &Facts{Running: true, Vitals: c.v, Before: sampleWith(nil)}, &Default)
		if got := noticeDue(c.v, &verdict, &Default, c.told); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestGaps(t *testing.T) {
	r := func(mono, wall time.Duration) Reading { return Reading{mono, epoch.Add(wall)} }
	for _, c := range []struct {
		name       string
		mono, wall time.Duration
		late       bool
		lost       time.Duration
	}{
		{"in time", 15 * time.Second, 15 * time.Second, false, 0},
		{"two ticks late", 135 * time.Second, 135 * time.Second, false, 0},
		{"more than two ticks late", 136 * time.Second, 136 * time.Second, true, 121 * time.Second},
		{"suspended: one clock stood", 15 * time.Second, time.Hour, true, 0},
		{"suspended and starved", 10 * time.Minute, time.Hour, true, 585 * time.Second},
		{"wall clock set back", 15 * time.Second, -time.Hour, false, 0},
	} {
		var g gaps
		g.woke(r(0, 0), epoch, 15*time.Second, time.Minute)
		now := epoch.Add(c.mono)
		if got := g.woke(r(c.mono, c.wall), now, 15*time.Second, time.Minute); got != c.late || g.total != c.lost {
			t.Errorf("%s: late %v, lost %v", c.name, got, g.total)
		}
		if c.lost > 0 && (g.before(epoch) != 0 || g.before(now) != c.lost) {
			t.Errorf("%s: before %v, after %v", c.name, g.before(epoch), g.before(now))
		}
	}
}

func TestRing(t *testing.T) {
	var s watched
	v := vitals(time.Second)
	if s.before(epoch, 0) != nil || s.oldest() != nil {
		t.Error("samples out of nothing")
	}
	for i := range 40 {
		v.Counters.Events = int64(i)
		s.sample(at(time.Duration(i)*15*time.Second), v, 15*time.Second)
		s.sample(at(time.Duration(i)*15*time.Second+time.Second), v, 15*time.Second) // too soon: not kept
	}
	now := at(39 * 15 * time.Second)
	if got := s.before(now, 30*time.Second); got.Counters.Events != 37 {
		t.Errorf("30 s before: %+v", got)
	}
	if got := s.oldest(); got.Counters.Events != 24 {
		t.Errorf("oldest of 16: %+v", got)
	}
	if got := s.before(now, time.Hour); got != nil {
		t.Errorf("an hour before: %+v", got)
	}
	s.take(&rouse.Vitals{TurnID: "trn_2", Generation: 2}, &gaps{})
	if s.n != 0 {
		t.Error("another turn's samples")
	}
}

func TestFaster(t *testing.T) {
	if got := Default.Faster(60); got.Hung != 5*time.Second || got.Tick != time.Second || got.SampleEvery != 250*time.Millisecond {
		t.Errorf("%+v", got)
	}
	if Default.Faster(0) != Default || Default.Faster(1) != Default {
		t.Error("not faster is not the same")
	}
}

// fleet is n running turns in all conditions.
type fleet struct {
	Lanes
	ids []string
	v   []rouse.Vitals
}

func (f *fleet) Each(fn func(string, *rouse.Vitals)) {
	var v rouse.Vitals
	for i := range f.v {
		v = f.v[i]
		fn(f.ids[i], &v)
	}
}

// A tick over 10,000 running turns: sampling and judging, no writes, since no
// code changes.
func BenchmarkTick(b *testing.B) {
	f := &fleet{}
	now := time.Now()
	for i := range 10_000 {
		v := vitals(time.Second)
		v.TurnID, v.Clock = fmt.Sprintf("trn_%d", i), now.Add(-time.Duration(i%400)*time.Second)
		v.LastGenuine = v.Clock
		if i%3 == 0 {
			tool(v)
		}
		v.NoProbe = true
		f.ids, f.v = append(f.ids, fmt.Sprintf("ses_%d", i)), append(f.v, *v)
	}
	w := New(Config{Lanes: f})
	list, _ := w.judge(now, true)
	for i := range list {
		w.turns[list[i].session].code, w.turns[list[i].session].told = list[i].verdict.Code, now
	}
	for b.Loop() {
		w.judge(now, true)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/tick")
}
