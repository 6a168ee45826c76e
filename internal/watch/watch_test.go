package watch_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rouse"
	"rouse/internal/session"
	"rouse/internal/store"
	"rouse/internal/watch"
)

// GIVEN a running prompt whose top-level tool runs, WHEN nothing is heard for
// five minutes, THEN one notice names the tool by its title and the session
// stays running; and when the tool ends well, nothing else has happened.
func TestNoticeNamesTheTool(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, acc := w.start("quiettool", "[[drill delay=15m3s]]")
		pass(4*time.Minute + 55*time.Second)
		if n := w.shown(id, 1); n != nil {
			t.Errorf("a notice before five minutes: %+v", n)
		}
		pass(65 * time.Second)
		n := w.shown(id, 1)
		if n == nil || n.Tool != "Run all tests" || n.Code != rouse.StillWaiting || n.TurnID != acc.TurnID {
			t.Fatalf("notice %+v", n)
		}
		if got := w.state(id); got != rouse.Generating {
			t.Errorf("the session is %s", got)
		}
		turn := w.wait(acc)
		if turn.State != rouse.TurnCompleted || turn.Ended.Sub(turn.Started) < 15*time.Minute {
			t.Errorf("turn %+v", turn)
		}
		pass(time.Minute)
		w.expect(id, `
g1 working
g1 quiet_tool
g1 notice.created Run all tests
g1 notice.hidden Run all tests
g1 settled completed
g1 settled:completed
`)
		if n := w.shown(id, 1); n != nil {
			t.Errorf("shown after the end: %+v", n)
		}
	})
}

// GIVEN a running prompt without a known tool, WHEN nothing is heard for five
// minutes, THEN one generic notice; GIVEN it exists, WHEN later checks see the
// same stall, THEN neither another notice nor another log line.
func TestNoticeOnceWithoutATool(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, _ := w.start("hang", "x")
		pass(3 * time.Hour)
		n := w.shown(id, 1)
		if n == nil || n.Tool != "" {
			t.Errorf("notice %+v", n)
		}
		if got := w.state(id); got != rouse.Generating {
			t.Errorf("the session is %s: silence proves nothing", got)
		}
		w.expect(id, `
g1 working
g1 quiet
g1 hung
g1 notice.created
`)
		if n := w.said.count("watch.silent"); n != 1 {
			t.Errorf("%d log lines", n)
		}
	})
}

// Metadata on the pipe is no progress: the notice comes all the same.
func TestNoiseResetsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, _ := w.start("chatter", "x")
		pass(6*time.Minute + time.Second)
		if w.shown(id, 1) == nil {
			t.Error("no notice")
		}
		if v := w.look(id); v.Verdict.Code != rouse.Hung || v.Vitals.Counters.Events < 300 {
			t.Errorf("%+v", v)
		}
	})
}

// GIVEN a notice of an earlier generation, WHEN a later prompt runs, THEN the
// earlier one is not shown and a delayed stall of it makes no new one.
func TestNoticeOfAnEarlierGeneration(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, first := w.start("hang", "x")
		pass(6 * time.Minute)
		late := rouse.Notice{SessionID: id, TurnID: first.TurnID, Generation: 1, Code: rouse.StillWaiting, At: time.Now()}
		w.prompt(id, "hang", "y")
		if err := w.lanes.Abort(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		rest()
		if w.shown(id, 1) != nil || w.shown(id, 2) != nil {
			t.Error("a notice is shown while the later prompt is fresh")
		}
		before := w.told(id)
		var kept bool
		if err := w.store.Write(t.Context(), store.Lazy, func(tx *store.Tx) (err error) {
			kept, _, err = tx.PutNotice(&late)
			return err
		}); err != nil || kept {
			t.Errorf("a delayed stall: kept %v, %v", kept, err)
		}
		if after := w.told(id); after != before {
			t.Errorf("a delayed stall says\n%s", strings.TrimPrefix(after, before))
		}
	})
}

// GIVEN a notice is visible, WHEN the turn is cancelled, THEN it settles, the
// notice goes, and the session takes new input without a restart. The same
// holds for a prompt whose completion never comes and an engine that ignores
// everything (the ladder is bounded).
func TestCancelBehindANotice(t *testing.T) {
	for mode, rungs := range map[string]string{
		"hang":     "g1 cancel requested\n",
		"deaf":     "g1 cancel requested\ng1 cancel forced\n",
		"stubborn": "g1 cancel requested\ng1 cancel forced\n",
		// GIVEN a dispatch-only prompt that never reports completion, WHEN cancel
		// escalates, THEN a later prompt is dispatched without a restart.
		"never-answers": "g1 cancel requested\ng1 cancel forced\n",
	} {
		t.Run(mode, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				id, acc := w.start(mode, "x")
				pass(6*time.Minute + time.Second)
				if w.shown(id, 1) == nil {
					t.Fatal("no notice")
				}
				if _, _, err := w.lanes.Cancel(t.Context(), id, 7); rouse.KindOf(err) != rouse.Conflict {
					t.Errorf("another generation: %v", err)
				}
				began := time.Now()
				if v, running, err := w.lanes.Cancel(t.Context(), id, 1); err != nil || !running || v.TurnID != acc.TurnID {
					t.Fatal(v, running, err)
				}
				if turn := w.wait(acc); turn.State != rouse.TurnCancelled {
					t.Errorf("turn %+v", turn)
				}
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("cancel took %v", took)
				}
				if w.shown(id, 1) != nil {
					t.Error("shown after the cancel")
				}
				if next := w.wait(w.prompt(id, "echo", "again")); next.State != rouse.TurnCompleted {
					t.Errorf("next %+v", next)
				}
				w.expect(id, "g1 working\ng1 quiet\ng1 hung\ng1 notice.created\n"+rungs+"g1 notice.hidden\ng1 settled cancelled\ng1 settled:cancelled\ng2 settled completed\ng2 settled:completed\n")
				if _, running, err := w.lanes.Cancel(t.Context(), id, 0); err != nil || running {
					t.Errorf("nothing runs: %v %v", running, err)
				}
			})
		})
	}
}

// GIVEN no genuine event since dispatch, WHEN the five-minute tick is handled,
// THEN the turn fails with a stored error, without a notice; its waiter is
// free, its engine is stopped, and the queue goes on.
func TestNeverStarted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, acc := w.start("mute", "x")
		queued := w.prompt(id, "echo", "next")
		began := time.Now()
		turn := w.wait(acc)
		if took := time.Since(began); took < 5*time.Minute || took > 6*time.Minute {
			t.Errorf("after %v", took)
		}
		f := turn.Failure
		if turn.State != rouse.TurnFailed || f == nil || f.Code != rouse.CodeNever || f.Source != "watch" || f.Message == "" {
			t.Fatalf("turn %+v, failure %+v", turn, f)
		}
		if next := w.wait(queued); next.State != rouse.TurnCompleted {
			t.Errorf("queued %+v", next)
		}
		if n := w.opens.Load(); n != 2 {
			t.Errorf("%d conversations: the one that never spoke has to go", n)
		}
		w.expect(id, `
g1 working
g1 quiet
g1 never_started
g1 settled failed
g1 settled:failed
g1 cancel requested
g2 settled completed
g2 settled:completed
`)
		page, err := w.store.Messages(t.Context(), store.MessageQuery{SessionID: id, Limit: 4})
		if err != nil || len(page.Entries) < 2 {
			t.Fatal(page, err)
		}
		var errored bool
		for _, e := range page.Entries {
			errored = errored || e.Message.Error != nil && e.Message.Error.Failure.Code == rouse.CodeNever
		}
		if !errored {
			t.Error("no message carries the error")
		}
	})
}

// A first event that races with the claim wins by its epoch.
func TestNeverStartedRacesWithTheFirstEvent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		// Right before, at, and right after the tick that would condemn it.
		for _, off := range []time.Duration{-time.Millisecond, 0, 0, 0, time.Millisecond} {
			due := w.began.Add(time.Since(w.began).Truncate(time.Minute) + 6*time.Minute)
			delay := (time.Until(due) - 50*time.Millisecond + off).String()
			id, acc := w.start("slowstart", "[[drill delay="+delay+"]] late")
			v, ok := w.lanes.Vitals(id)
			if !ok {
				t.Fatal("no vitals")
			}
			turn := w.wait(acc)
			failed := turn.State == rouse.TurnFailed && turn.Failure.Code == rouse.CodeNever
			if turn.State != rouse.TurnCompleted && !failed {
				t.Errorf("%s: %+v", delay, turn)
			}
			if n := strings.Count(w.told(id), " settled "); n != 1 {
				t.Errorf("%s: %d ends", delay, n)
			}
			if err := w.lanes.Claim(t.Context(), id, v.Generation, v.Epoch, rouse.Failure{Code: rouse.CodeNever}); rouse.KindOf(err) != rouse.Conflict {
				t.Errorf("%s: a claim about a settled turn: %v", delay, err)
			}
		}
		id, acc := w.start("hang", "x") // its events came after the dispatch
		v, _ := w.lanes.Vitals(id)
		for _, late := range []struct{ generation, epoch uint64 }{{1, 1}, {1, v.Epoch - 1}, {2, v.Epoch}} {
			if err := w.lanes.Claim(t.Context(), id, late.generation, late.epoch, rouse.Failure{Code: rouse.CodeNever}); rouse.KindOf(err) != rouse.Conflict {
				t.Errorf("claim %+v: %v", late, err)
			}
		}
		if w.state(id) != rouse.Generating {
			t.Error("a late claim ended the turn")
		}
		if err := w.lanes.Abort(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		w.wait(acc)
	})
}

// An agent that falls silent twice in one prompt gets the same notice again,
// with its new time; in between it is hidden within a second.
func TestSecondSilence(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, acc := w.start("pauses", "[[drill delay=7m3s]]")
		pass(6*time.Minute + time.Second)
		first := w.shown(id, 1)
		if first == nil {
			t.Fatal("no notice")
		}
		pass(time.Minute + 4*time.Second)
		if w.shown(id, 1) != nil {
			t.Error("shown although the agent moves")
		}
		pass(6 * time.Minute)
		second := w.shown(id, 1)
		if second == nil || !second.At.After(first.At) || !second.Created.Equal(first.Created) {
			t.Errorf("first %+v, second %+v", first, second)
		}
		w.wait(acc)
		pass(time.Minute)
		w.expect(id, `
g1 working
g1 quiet
g1 hung
g1 notice.created
g1 notice.hidden
g1 working
g1 quiet
g1 hung
g1 notice.updated
g1 notice.hidden
g1 settled completed
g1 settled:completed
`)
		if n := w.said.count("watch.silent"); n != 1 {
			t.Errorf("%d log lines", n)
		}
	})
}

// If the notice cannot be stored the session is untouched, and the attempt
// does not spend it.
func TestRejectedNoticeIsNotSpent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, _ := w.start("hang", "x")
		w.behind(`CREATE TRIGGER refuse BEFORE INSERT ON notices BEGIN SELECT RAISE(ABORT, 'refused'); END`)
		pass(20 * time.Minute)
		if got := w.told(id); strings.Contains(got, "notice") || w.state(id) != rouse.Generating {
			t.Errorf("refused, and yet\n%s", got)
		}
		if n := w.said.count("watch.store"); n == 0 {
			t.Error("the failure is not logged")
		}
		w.behind(`DROP TRIGGER refuse`)
		pass(2 * time.Minute)
		if got := w.told(id); strings.Count(got, "notice.created") != 1 {
			t.Errorf("after the refusals:\n%s", got)
		}
	})
}

// While a person is waited for the clock stands, and it begins anew with the
// answer: no notice, no end.
func TestClockStandsForAPerson(t *testing.T) {
	for mode, kind := range map[string]string{"permission": rouse.ForPermission, "question": rouse.ForQuestion} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				id, acc := w.start(mode, "x")
				pass(26 * time.Hour)
				w.expect(id, "g1 waiting_"+kind+"\n")
				if v := w.look(id).Verdict; v.Code != rouse.VerdictCode("waiting_"+kind) || !slices.Contains(v.Next, rouse.NextAnswer) {
					t.Errorf("%+v", v)
				}
				open, err := w.store.Requests(t.Context(), id, kind)
				if err != nil || len(open) != 1 {
					t.Fatal(open, err)
				}
				if err := w.lanes.Answer(t.Context(), open[0].ID, kind, rouse.Reply{Verb: rouse.ReplyOnce}); err != nil {
					t.Fatal(err)
				}
				if turn := w.wait(acc); turn.State != rouse.TurnCompleted {
					t.Errorf("%+v", turn)
				}
				if strings.Contains(w.told(id), "notice") {
					t.Error(w.told(id))
				}
			})
		})
	}
}

// A retry that is known stops the clock until its time and a minute more; it
// says when the next attempt comes.
func TestClockStandsForARetry(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, acc := w.start("longretry", "x")
		pass(9 * time.Minute)
		v := w.look(id).Verdict
		if v.Code != rouse.Retrying || v.Facts.Attempt != 1 || v.Until.Sub(w.began.Add(10*time.Minute)).Abs() > time.Second {
			t.Errorf("%+v", v)
		}
		if turn := w.wait(acc); turn.State != rouse.TurnCompleted {
			t.Errorf("%+v", turn)
		}
		w.expect(id, "g1 retrying\ng1 settled completed\ng1 settled:completed\n")
	})
}

// A machine that slept condemns nobody in the tick that notices it.
func TestSuspendedMachine(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, acc := w.start("mute", "x")
		pass(5*time.Minute + 30*time.Second)
		w.slept.Store(int64(time.Hour))
		pass(time.Minute) // over the tick at 6 min, which would have condemned it
		if got := w.told(id); strings.Contains(got, "never") || strings.Contains(got, "settled") {
			t.Errorf("condemned by a suspension:\n%s", got)
		}
		if n := w.said.count("watch.late"); n != 1 {
			t.Errorf("%d lines about it", n)
		}
		if turn := w.wait(acc); turn.Failure == nil || turn.Failure.Code != rouse.CodeNever {
			t.Errorf("the next tick: %+v", turn)
		}
	})
}

// stalling is lanes behind a watch that stands still once.
type stalling struct {
	watch.Lanes
	stall chan struct{}
}

func (s *stalling) Each(fn func(string, *rouse.Vitals)) {
	if s.stall != nil {
		<-s.stall
		s.stall = nil
	}
	s.Lanes.Each(fn)
}

// A watch that did not run for a while (starved, stopped) does not count the
// time that nobody watched.
func TestStarvedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lanes := &stalling{stall: make(chan struct{})}
		w := open(t, t.TempDir(), "boo_1", func(l watch.Lanes) watch.Lanes { lanes.Lanes = l; return lanes })
		defer w.stop()
		mute, acc := w.start("mute", "x")
		hang, _ := w.start("hang", "x")
		pass(20 * time.Minute) // its first pass does not end
		close(lanes.stall)
		pass(4 * time.Minute)
		for _, id := range []string{mute, hang} {
			if got := w.told(id); strings.Contains(got, "never") || strings.Contains(got, "hung") || strings.Contains(got, "notice") || strings.Contains(got, "settled") {
				t.Errorf("condemned for the watch's own sleep:\n%s", got)
			}
		}
		if turn := w.wait(acc); turn.Failure == nil || turn.Failure.Code != rouse.CodeNever {
			t.Errorf("later: %+v", turn)
		}
		if took := time.Since(w.began); took < 24*time.Minute || took > 27*time.Minute {
			t.Errorf("after %v", took)
		}
	})
}

// An engine whose protocol is dead is called so, and hung no more.
func TestUnresponsive(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, _ := w.start("freeze", "x")
		pass(3 * time.Minute)
		first := w.look(id).Verdict
		if first.Code != rouse.Unresponsive || !slices.Contains(first.Next, rouse.NextRescue) {
			t.Errorf("%+v", first)
		}
		pass(10 * time.Minute)
		if later := w.look(id).Verdict; later.Code != rouse.Unresponsive || !later.Since.Equal(first.Since) {
			t.Errorf("since %v, later since %v (%s)", first.Since, later.Since, later.Code)
		}
		if n := w.shown(id, 1); n == nil {
			t.Error("a dead protocol hides the silence")
		}
	})
}

// A dead protocol is no sign of life: a turn that never began fails as one.
func TestNeverStartedBehindADeadProtocol(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, acc := w.start("dead", "x")
		pass(4*time.Minute + 50*time.Second)
		if v := w.look(id).Verdict; v.Code != rouse.Unresponsive {
			t.Errorf("%+v", v)
		}
		turn := w.wait(acc)
		if turn.Failure == nil || turn.Failure.Code != rouse.CodeNever || turn.Ended.Sub(turn.Started) > 6*time.Minute+time.Second {
			t.Errorf("%+v, %+v", turn, turn.Failure)
		}
		if n := w.shown(id, 1); n != nil {
			t.Errorf("a notice beside the failure: %+v", n)
		}
	})
}

// Look shows two samples at least 30 s apart.
func TestSamplesSideBySide(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, _ := w.start("hang", "x")
		if l := w.look(id); l.Verdict.Code != rouse.Working || len(l.Samples) != 1 {
			t.Errorf("at once: %+v", l)
		}
		pass(2 * time.Minute)
		l := w.look(id)
		if l.Verdict.Code != rouse.Quiet || len(l.Samples) != 2 || !l.Verdict.Facts.Frozen || !slices.Contains(l.Verdict.Next, rouse.NextRescue) {
			t.Fatalf("%+v", l)
		}
		a, b := l.Samples[0], l.Samples[1]
		if d := b.At.Sub(a.At); d < 30*time.Second || d > 60*time.Second || a.Counters != b.Counters || a.State != rouse.Generating {
			t.Errorf("%v apart: %+v %+v", d, a, b)
		}
	})
}

// A turn of a server that is gone is orphaned, interrupted, and its queue runs.
func TestOrphan(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := w.session()
		now := time.Now()
		turn := &rouse.Turn{ID: rouse.NewID(rouse.TurnPrefix, now), SessionID: s.ID, Generation: 1, State: rouse.TurnRunning, Boot: "boo_gone", Started: now}
		if err := w.store.Write(t.Context(), store.Lazy, func(tx *store.Tx) error {
			row, err := tx.Session(s.ID)
			if err != nil {
				return err
			}
			row.Running, row.RunningBoot, row.Generation = turn.ID, turn.Boot, 1
			if err := tx.KeepSession(row); err != nil {
				return err
			}
			return tx.InsertTurn(turn)
		}); err != nil {
			t.Fatal(err)
		}
		queued := w.prompt(s.ID, "echo", "next")
		if v := w.look(s.ID).Verdict; v.Code != rouse.Orphaned {
			t.Errorf("%+v", v)
		}
		pass(61 * time.Second)
		if next := w.wait(queued); next.State != rouse.TurnCompleted {
			t.Errorf("the queue: %+v", next)
		}
		w.expect(s.ID, "g1 orphaned\ng1 settled interrupted\ng1 settled:interrupted\ng2 settled completed\ng2 settled:completed\n")
	})
}

// After a restart the notice of the turn that ended with the server is gone,
// and what is re-driven is watched.
func TestWatchedAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1", nil)
		id, _ := w.start("hang", "x")
		w.prompt(id, "hang", "again")
		pass(6*time.Minute + time.Second)
		crashed := filepath.Join(t.TempDir(), "rouse.db")
		if err := store.Copy(t.Context(), w.store.Path(), crashed); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w = open(t, filepath.Dir(crashed), "boo_2", nil)
		defer w.stop()
		pass(7 * time.Minute)
		if w.shown(id, 1) != nil || w.shown(id, 2) == nil {
			t.Error("notices after the restart")
		}
		w.expect(id, `
g1 working
g1 quiet
g1 hung
g1 notice.created
g1 notice.hidden
g1 settled interrupted
g1 settled:interrupted
g2 working
g2 quiet
g2 hung
g2 notice.created
`)
	})
}

// Whatever comes between, a generation gets at most one notice and one end.
func TestOneNoticePerGeneration(t *testing.T) {
	for seed := range uint64(4) {
		bubble(t, func(t *testing.T, w *world) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			modes := []string{"hang", "mute", "pauses", "quiettool", "deaf", "slowstart", "longretry", "echo", "permission", "exit"}
			var ids []string
			for range 8 {
				s := w.session()
				ids = append(ids, s.ID)
				for range 3 {
					w.prompt(s.ID, modes[rnd.IntN(len(modes))], "x")
				}
			}
			for range 40 {
				pass(time.Duration(rnd.IntN(300)) * time.Second)
				id := ids[rnd.IntN(len(ids))]
				switch rnd.IntN(4) {
				case 0:
					if err := w.lanes.Abort(t.Context(), id); err != nil {
						t.Error(err)
					}
				case 1:
					if _, err := w.lanes.Prompt(t.Context(), session.Prompt{SessionID: id, Model: rouse.ModelRef{Provider: "drill", Model: modes[rnd.IntN(len(modes))]},
						Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "x"}}}); err != nil {
						t.Error(err)
					}
				}
			}
			for _, id := range ids {
				told := strings.Split(w.told(id), "\n")
				seen := map[string]int{}
				for _, line := range told {
					g, what, _ := strings.Cut(line, " ")
					kind, _, _ := strings.Cut(what, " ")
					if kind == "notice.created" || kind == "settled" {
						seen[g+" "+kind]++
					}
				}
				for what, n := range seen {
					if n > 1 {
						t.Errorf("seed %d: %s %d times", seed, what, n)
					}
				}
			}
		})
	}
}

// Nothing waits for a watch that is told to stop.
func TestStops(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.watch.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
}
