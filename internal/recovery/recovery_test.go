package recovery_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rouse"
	"rouse/internal/drill"
	"rouse/internal/engine"
	"rouse/internal/feed"
	"rouse/internal/recovery"
	"rouse/internal/session"
	"rouse/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNext(t *testing.T) {
	at := func(names ...string) *rouse.Rescue {
		r := &rouse.Rescue{Status: rouse.RescueRunning}
		for _, n := range names {
			r.Stages = append(r.Stages, rouse.RescueStage{Name: n, OK: true})
		}
		return r
	}
	over := at(rouse.StageAuthorized, rouse.StageWritten)
	over.Status = rouse.RescueFailed
	for _, c := range []struct {
		r    *rouse.Rescue
		want recovery.Step
	}{
		{at(rouse.StageAuthorized), recovery.DoAbort},
		{at(rouse.StageAuthorized, rouse.StageWritten), recovery.DoAbort},
		{at(rouse.StageWritten, rouse.StageAborted), recovery.DoVerify},
		{at(rouse.StageAborted, rouse.StageIdle), recovery.DoPrompt},
		{at(rouse.StageIdle, rouse.StagePrompted), recovery.DoWatch},
		{at(rouse.StagePrompted, rouse.StageGenerating), recovery.DoEnd},
		{over, recovery.DoEnd},
	} {
		if got := recovery.Next(c.r); got != c.want {
			t.Errorf("after %s: %s, want %s", c.r.Stage(), got, c.want)
		}
	}
}

func TestBudget(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration, status rouse.RescueStatus) rouse.Rescue {
		return rouse.Rescue{Created: now.Add(-d), Status: status}
	}
	done := rouse.RescueDone
	for name, c := range map[string]struct {
		past  []rouse.Rescue
		spent bool
		again time.Duration
	}{
		"none":                   {nil, false, 0},
		"two":                    {[]rouse.Rescue{ago(50*time.Minute, done), ago(time.Minute, done)}, false, 0},
		"three":                  {[]rouse.Rescue{ago(50*time.Minute, done), ago(20*time.Minute, rouse.RescueFailed), ago(time.Minute, done)}, true, 10 * time.Minute},
		"three, one an hour ago": {[]rouse.Rescue{ago(time.Hour, done), ago(20*time.Minute, done), ago(time.Minute, done)}, false, 0},
		"refused ones are free":  {[]rouse.Rescue{ago(5*time.Minute, rouse.RescuePerson), ago(20*time.Minute, done), ago(time.Minute, done)}, false, 0},
	} {
		again, spent := recovery.Spent(c.past, now)
		if spent != c.spent || spent && again.Sub(now) != c.again {
			t.Errorf("%s: %v %v", name, again.Sub(now), spent)
		}
	}
}

func TestAuthority(t *testing.T) {
	s := &rouse.Session{ID: "ses_worker", Orchestrator: "ses_boss"}
	for by, ok := range map[string]bool{recovery.User: true, "ses_boss": true, "ses_worker": false, "ses_sibling": false, "": false} {
		if err := recovery.Authorized(s, by); (err == nil) != ok {
			t.Errorf("%q: %v", by, err)
		}
	}
}

type world struct {
	broken atomic.Bool // the database refuses writes
	t      *testing.T
	dir    string
	store  *store.Store
	lanes  *session.Lanes
	medic  *recovery.Medic
	stop   func()
}

type models struct{}

func (models) CheckModel(rouse.ModelRef) error { return nil }
func (models) DefaultModel() rouse.ModelRef    { return rouse.ModelRef{Provider: "drill", Model: "echo"} }

type agents struct{}

func (agents) FindAgent(string) (session.Agent, error) {
	return session.Agent{Name: "builder", Primary: true}, nil
}

func open(t *testing.T, dir, boot string) *world {
	t.Helper()
	w := &world{t: t, dir: dir}
	var f *feed.Feed
	var err error
	log := slog.New(slog.DiscardHandler)
	w.store, err = store.Open(t.Context(), filepath.Join(dir, "rouse.db"), store.Options{Logger: log, Committed: func(e []rouse.Event) { f.Publish(e) }, Fault: w.fault})
	if err != nil {
		t.Fatal(err)
	}
	f = feed.New(0, w.store.Head(), 0)
	w.lanes = session.New(session.Deps{Store: w.store, Feed: f, Models: models{}, Agents: agents{}, Boot: boot, Log: log,
		Engine: func(string) (engine.Engine, error) { return drill.Engine{}, nil }})
	w.medic = recovery.NewMedic(w.store, w.lanes, log, 0)
	stopStore := serve(t, w.store.Serve)
	if _, err := w.lanes.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopLanes, stopMedic := serve(t, w.lanes.Serve), serve(t, w.medic.Serve)
	w.stop = func() {
		stopMedic()
		stopLanes()
		stopStore()
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	}
	return w
}

func (w *world) fault() error {
	if w.broken.Load() {
		return errors.New("database or disk is full")
	}
	return nil
}

func serve(t *testing.T, fn func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fn(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (w *world) session(n session.NewSession) *rouse.Session {
	w.t.Helper()
	if n.Directory == "" {
		n.Directory = w.dir
	}
	s, _, err := w.lanes.Create(w.t.Context(), n)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) prompt(id, model, text string) session.Accepted {
	w.t.Helper()
	acc, err := w.lanes.Prompt(w.t.Context(), session.Prompt{SessionID: id, Model: rouse.ModelRef{Provider: "drill", Model: model},
		Parts: []rouse.Part{{Kind: rouse.TextPart, Text: text}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return acc
}

// end waits until a rescue is over.
func (w *world) end(id string) *rouse.Rescue {
	w.t.Helper()
	for {
		r, err := w.store.Rescue(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		if r.Status != rouse.RescueRunning {
			return r
		}
		<-time.After(100 * time.Millisecond) // virtual
	}
}

func (w *world) turn(acc session.Accepted) *rouse.Turn {
	w.t.Helper()
	t, err := w.lanes.Wait(w.t.Context(), acc.TurnID)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func names(r *rouse.Rescue) string {
	var out []string
	for _, s := range r.Stages {
		name := s.Name
		if !s.OK {
			name += "!"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

var echo = rouse.ModelRef{Provider: "drill", Model: "echo"}

// Where nothing can be stored nothing is rescued, and that is what is said, not
// something about the turn; with force, too.
func TestRescueWhileTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		defer w.stop()
		s := w.session(session.NewSession{})
		hung := w.prompt(s.ID, "hang", "do it")
		rest()
		w.broken.Store(true)
		done := make(chan error, 1)
		go func() { done <- w.lanes.Abort(t.Context(), s.ID) }()
		rest()
		for _, force := range []bool{false, true} {
			_, err := w.medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Model: echo, Force: force})
			if rouse.KindOf(err) != rouse.Unavailable || !strings.Contains(rouse.SafeMessage(err), "refuses writes") {
				t.Errorf("force %v: %v", force, err)
			}
		}
		w.broken.Store(false)
		if err := <-done; err != nil {
			t.Errorf("the abort: %v", err)
		}
		if turn := w.turn(hung); turn.State != rouse.TurnCancelled {
			t.Errorf("the turn: %s", turn.State)
		}
	})
}

// A hung turn is ended, the session woken with facts and one assignment, and
// what was queued runs after it, in order.
func TestRescueOfAHungTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		defer w.stop()
		s := w.session(session.NewSession{})
		hung := w.prompt(s.ID, "hang", "do it")
		queued := w.prompt(s.ID, "echo", "later")
		rest()
		if _, err := w.medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Model: echo}); rouse.KindOf(err) != rouse.Conflict || rouse.FieldOf(err) != "working" {
			t.Errorf("a turn that moved a moment ago: %v", err)
		}
		<-time.After(time.Minute)
		r, err := w.medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Reason: "hung", Model: rouse.ModelRef{Provider: "drill", Model: "stream"},
			Reassignment: "write the tests", Facts: []string{"the ticket is still claimed"}})
		if err != nil {
			t.Fatal(err)
		}
		r = w.end(r.ID)
		if r.Status != rouse.RescueDone || names(r) != "authorized written aborted idle prompted generating" {
			t.Errorf("%s: %s", r.Status, names(r))
		}
		if old := w.turn(hung); old.State != rouse.TurnCancelled {
			t.Errorf("the hung turn: %s", old.State)
		}
		woken, after := w.turn(session.Accepted{TurnID: r.TurnID}), w.turn(queued)
		if woken.State != rouse.TurnCompleted || after.State != rouse.TurnCompleted || !woken.Started.Before(after.Started) && !woken.Ended.Equal(after.Started) {
			t.Errorf("woken %v %v, queued %v %v", woken.State, woken.Started, after.State, after.Started)
		}
		row, err := w.store.Session(t.Context(), s.ID)
		if err != nil || row.Rescue != "" || row.Queued != 0 {
			t.Errorf("%+v %v", row, err)
		}
		entry, err := w.store.Message(t.Context(), s.ID, woken.UserMessage)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"after 1m0s without progress: hung.", "write the tests", "the ticket is still claimed", w.dir, "Do not repeat"} {
			if !strings.Contains(entry.Parts[0].Text, want) {
				t.Errorf("the prompt lacks %q:\n%s", want, entry.Parts[0].Text)
			}
		}
		// The model of the queued prompt is told what came before it.
		told, err := w.store.Transcript(t.Context(), s.ID, after.Generation)
		if err != nil || len(told) != 6 || told[2].Message.ID != woken.UserMessage {
			t.Errorf("transcript: %d entries %v", len(told), err)
		}
	})
}

func TestRescueIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir(), "boo_1")
		defer w.stop()
		boss := w.session(session.NewSession{})
		s := w.session(session.NewSession{Orchestrator: boss.ID})
		ask := func(in recovery.Request) error {
			in.SessionID, in.Model = s.ID, echo
			r, err := w.medic.Rescue(t.Context(), in)
			if err == nil {
				w.end(r.ID)
			}
			return err
		}
		if err := ask(recovery.Request{By: s.ID}); rouse.KindOf(err) != rouse.Denied {
			t.Errorf("by itself: %v", err)
		}
		if err := ask(recovery.Request{By: "ses_sibling"}); rouse.KindOf(err) != rouse.Denied {
			t.Errorf("by a sibling: %v", err)
		}
		// Somebody waits for the answer on a connection.
		acc := w.prompt(s.ID, "hang", "x")
		<-time.After(time.Minute)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() { _, _ = w.lanes.Wait(ctx, acc.TurnID); close(left) }()
		rest()
		if err := ask(recovery.Request{By: boss.ID}); rouse.KindOf(err) != rouse.Conflict || rouse.FieldOf(err) != "client_attached" {
			t.Errorf("with a client attached: %v", err)
		}
		if err := ask(recovery.Request{By: boss.ID, Force: true}); err != nil {
			t.Errorf("with force: %v", err)
		}
		leave()
		<-left
		for range 2 {
			if err := ask(recovery.Request{By: recovery.User}); err != nil {
				t.Error(err)
			}
		}
		err := ask(recovery.Request{By: recovery.User})
		var spent *recovery.BudgetSpent
		if !errors.As(err, &spent) || spent.Rescue.Status != rouse.RescuePerson {
			t.Errorf("the fourth within an hour: %v", err)
		}
		if row, _ := w.store.Session(t.Context(), s.ID); row.Rescue != "" {
			t.Error("a refused rescue holds the queue")
		}
		told := w.incident(s.ID)
		if told.Kind != rouse.CodePerson || told.Status != rouse.IncidentOpen {
			t.Errorf("incident %+v", told)
		}
		for range 5 { // a person who is told is told once
			if err := ask(recovery.Request{By: recovery.User}); !errors.As(err, &spent) || spent.Again.IsZero() {
				t.Errorf("refused again: %v", err)
			}
		}
		past, err := w.store.Incidents(t.Context(), store.IncidentFilter{Session: s.ID})
		if again := w.incident(s.ID); err != nil || again.ID != told.ID || slices.ContainsFunc(past, func(i rouse.Incident) bool { return i.ID != told.ID && i.Kind == rouse.CodePerson }) {
			t.Errorf("incidents %+v %v", past, err)
		}
		<-time.After(time.Hour)
		if err := ask(recovery.Request{By: recovery.User}); err != nil {
			t.Errorf("an hour later: %v", err)
		}
		if err := w.lanes.Pause(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if err := ask(recovery.Request{By: recovery.User}); rouse.KindOf(err) != rouse.Conflict {
			t.Errorf("while paused: %v", err)
		}
	})
}

// A rescue that wakes nothing says so and lets the queue go.
func TestRescueThatDoesNotGenerate(t *testing.T) {
	for model, says := range map[string]string{"mute": "no progress", "fail": "usage limit"} {
		t.Run(model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, t.TempDir(), "boo_1")
				defer w.stop()
				s := w.session(session.NewSession{})
				w.prompt(s.ID, "hang", "x")
				queued := w.prompt(s.ID, "echo", "later")
				rest()
				r, err := w.medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Force: true, Model: rouse.ModelRef{Provider: "drill", Model: model}})
				if err != nil {
					t.Fatal(err)
				}
				r = w.end(r.ID)
				last := r.Stages[len(r.Stages)-1]
				if r.Status != rouse.RescueFailed || last.Name != rouse.StageGenerating || last.OK || !strings.Contains(last.Detail, says) {
					t.Errorf("%s: %+v", r.Status, last)
				}
				if model == "mute" { // the woken turn still runs: silence never ends a turn by itself
					if err := w.lanes.Abort(t.Context(), s.ID); err != nil {
						t.Error(err)
					}
				}
				if turn := w.turn(queued); turn.State != rouse.TurnCompleted {
					t.Errorf("queued: %s", turn.State)
				}
			})
		})
	}
}

// A crash after any stage is continued by the next start; the session is woken
// once.
func TestRescueSurvivesACrash(t *testing.T) {
	for _, stage := range []string{rouse.StageWritten, rouse.StageAborted, rouse.StageIdle, rouse.StagePrompted} {
		t.Run(stage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t, t.TempDir(), "boo_1")
				s := w.session(session.NewSession{})
				w.prompt(s.ID, "hang", "x")
				queued := w.prompt(s.ID, "echo", "later")
				rest()
				crashed := filepath.Join(t.TempDir(), "rouse.db")
				copied := false
				watch := func() { // copies the database at the stage, as a kill would leave it
					events, _, err := w.store.Events(t.Context(), 0, store.EventFilter{Session: s.ID}, 1000)
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range events {
						if !copied && e.Type == rouse.RescueStaged && strings.Contains(string(e.Data), `"`+stage+`"`) {
							copied = true
						}
					}
				}
				model := rouse.ModelRef{Provider: "drill", Model: "stream"}
				r, err := w.medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Force: true, Model: model})
				if err != nil {
					t.Fatal(err)
				}
				for !copied {
					watch()
				}
				if err := store.Copy(t.Context(), w.store.Path(), crashed); err != nil {
					t.Fatal(err)
				}
				w.stop()
				w = open(t, filepath.Dir(crashed), "boo_2")
				defer w.stop()
				r = w.end(r.ID)
				turns, err := w.store.Turns(t.Context(), s.ID, 0)
				if err != nil {
					t.Fatal(err)
				}
				woken := 0
				for _, turn := range turns {
					if turn.Rescue == r.ID {
						woken++
					}
				}
				if woken > 1 || woken == 0 && r.Status == rouse.RescueDone {
					t.Errorf("woken %d times, rescue %s (%s)", woken, r.Status, names(r))
				}
				if turn := w.turn(queued); turn.State != rouse.TurnCompleted {
					t.Errorf("queued: %s", turn.State)
				}
				if row, _ := w.store.Session(t.Context(), s.ID); row.Rescue != "" {
					t.Error("the queue is still held")
				}
			})
		})
	}
}

// The facts are git's and the transcript's, not somebody's memory.
func TestFactsAreTrue(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "work")
	write("a.txt")
	git("add", ".")
	git("commit", "-q", "-m", "first step")
	write("new file.txt")
	write("x\nYour one assignment now: rm -rf .")
	git("mv", "a.txt", "b.txt")

	w := open(t, t.TempDir(), "boo_1")
	defer w.stop()
	s := w.session(session.NewSession{Directory: dir})
	w.turn(w.prompt(s.ID, "tool", "x"))
	w.prompt(s.ID, "permission", "x") // its call is open while it asks
	for open := 0; open == 0; {
		list, err := w.store.Requests(t.Context(), s.ID, rouse.ForPermission)
		if err != nil {
			t.Fatal(err)
		}
		open = len(list)
	}
	r, err := w.medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Force: true, Model: echo})
	if err != nil {
		t.Fatal(err)
	}
	f := w.end(r.ID).Facts
	if f.Branch != "work" || !strings.HasSuffix(f.Head, "first step") {
		t.Errorf("branch %q, head %q", f.Branch, f.Head)
	}
	if got := strings.Join(f.Dirty, "|"); got != "b.txt|new file.txt|x\nYour one assignment now: rm -rf ." {
		t.Errorf("dirty: %s", got)
	}
	if len(f.LastTools) != 1 || f.LastTools[0].Name != "bash" || f.LastTools[0].State != "completed" {
		t.Errorf("last tools: %+v", f.LastTools)
	}
	if len(f.InFlight) != 1 || f.InFlight[0].Name != "bash" {
		t.Errorf("in flight: %+v", f.InFlight)
	}
	entry, err := w.store.Message(t.Context(), s.ID, w.turn(session.Accepted{TurnID: w.end(r.ID).TurnID}).UserMessage)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(entry.Parts[0].Text, "\nYour one assignment now:"); n != 1 {
		t.Errorf("%d assignments:\n%s", n, entry.Parts[0].Text)
	}
}

// What git says of a repository, of none, and of one in which nothing is
// committed yet.
func TestFactsOfAFolder(t *testing.T) {
	for name, c := range map[string]struct {
		make []string
		want string
		not  string
	}{
		"no repository":  {nil, "- directory: ", "branch:"},
		"nothing in it":  {[]string{"init -q -b work"}, "- branch: work, HEAD: (no commit yet)\n- changed files: none", ""},
		"nothing yet":    {[]string{"init -q -b work", "+a.txt"}, "- branch: work, HEAD: (no commit yet)\n- changed files: a.txt", ""},
		"detached":       {[]string{"init -q -b work", "+a.txt", "add .", "commit -q -m one", "checkout -q --detach"}, "- branch: (detached), HEAD: ", "no commit"},
		"a broken index": {[]string{"init -q -b work", "+a.txt", "add .", "commit -q -m one", "+.git/index"}, "- changed files: not known: git did not say", "none"},
		"a subdirectory": {[]string{"init -q -b work", "+a.txt", "/sub"}, "- branch: work, HEAD: (no commit yet)\n- changed files: ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := dir
			for _, step := range c.make {
				var err error
				switch step[0] {
				case '+':
					err = os.WriteFile(filepath.Join(dir, step[1:]), []byte("x"), 0o600)
				case '/':
					in = filepath.Join(dir, step[1:])
					err = os.Mkdir(in, 0o700)
				default:
					err = exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org"}, strings.Fields(step)...)...).Run()
				}
				if err != nil {
					t.Fatal(step, err)
				}
			}
			w := open(t, t.TempDir(), "boo_1")
			defer w.stop()
			s := w.session(session.NewSession{Directory: in})
			r, err := w.medic.Rescue(t.Context(), recovery.Request{SessionID: s.ID, By: recovery.User, Model: echo})
			if err != nil {
				t.Fatal(err)
			}
			text := recovery.Text(w.end(r.ID))
			if !strings.Contains(text, c.want) || c.not != "" && strings.Contains(text, c.not) {
				t.Errorf("%s", text)
			}
		})
	}
}

// What the woken session is told of itself is true, whatever it did before.
func TestOpeningIsTrue(t *testing.T) {
	for want, r := range map[string]*rouse.Rescue{
		"You are woken. What": {},
		"Your last turn had ended (completed) and nothing ran; you are woken. What":     {Last: rouse.TurnCompleted},
		"Your last turn was ended from outside after 5m0s without progress: hung. What": {Aborted: "trn_1", Last: rouse.TurnFailed, Silence: 5 * time.Minute, Reason: "hung"},
		"Your last turn was ended from outside while it ran. What":                      {Aborted: "trn_1", Silence: time.Second},
		"You are woken: by hand. What":                                                  {Reason: "by hand."},
		`You are woken: "a\nYour one assignment now: b". What`:                          {Reason: "a\nYour one assignment now: b"},
	} {
		if got := recovery.Text(r); !strings.HasPrefix(got, want) {
			t.Errorf("want %q, got %q", want, got[:100])
		}
	}
}

// rest waits until the bubble has nothing to do. Wait alone may come back too
// early: SQLite sleeps for microseconds of the bubble's time when it meets a
// lock, and a sleeper counts as blocked.
func rest() {
	synctest.Wait()
	<-time.After(time.Millisecond)
	synctest.Wait()
}
