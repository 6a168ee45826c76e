package drill

import (
	"fmt"
	"time"

	"rouse"
	"rouse/internal/client"
)

// Sleeper is a stage whose server can be made to stand still, as a machine that
// is suspended makes it: a process of its own.
type Sleeper interface {
	Stage
	Suspend()
	Continue()
	// Logged says how many lines with a message the server has logged.
	Logged(message string) int
}

// How the suspended machine is played, in scaled time. The slow turn is silent
// for three minutes of which the server was awake, and for fourteen of the
// clock: both sides of what condemns a turn.
const (
	awakeBefore = time.Minute
	suspendedAt = 11 * time.Minute // longer than every threshold of the watch
	awakeAfter  = 2 * time.Minute
	awakeHang   = 5*time.Minute - 30*time.Second // hung is said after five, on samples 15 s apart
)

// suspended stops the server for longer than any silence is excused: nobody is
// condemned for it, and who hangs is found by the time in which it was watched.
func (p *play) suspended() error {
	stage, ok := p.stage.(Sleeper)
	if !ok {
		return rouse.Errorf(rouse.Internal, "drill", "this stage's server cannot be suspended")
	}
	pace := time.Duration(stage.Speed())
	slow, slowTurn, err := p.beginWith("slowstart", fmt.Sprintf("[[drill delay=%s]] hello", (awakeBefore+suspendedAt+awakeAfter)/pace))
	if err != nil {
		return err
	}
	hung, hungTurn, err := p.beginWith("hang", "drill")
	if err != nil {
		return err
	}
	if _, err := p.turn(slow, slowTurn.TurnID, "rouse.turn.running"); err != nil {
		return err
	}
	silent, err := p.turn(hung, hungTurn.TurnID, "rouse.turn.running") // its two words come at once
	if err != nil {
		return err
	}
	if err := p.wait(awakeBefore); err != nil {
		return err
	}

	stage.Suspend()
	began := time.Now()
	err = p.wait(suspendedAt)
	asleep := time.Since(began)
	stage.Continue()
	if err != nil {
		return err
	}

	if err := p.ends("the slow turn ends well", slow, slowTurn.TurnID, "completed"); err != nil {
		return err
	}
	if err := p.hungAwake(hung, silent.At.Add(asleep), pace); err != nil {
		return err
	}
	if err := p.wait(2 * time.Minute); err != nil { // two more ticks, for a second notice
		return err
	}
	for _, s := range []struct{ who, id string }{{"slow", slow}, {"hung", hung}} {
		p.never("the "+s.who+" turn judged never started", s.id, isVerdict("never_started"))
	}
	p.never("the slow turn judged hung", slow, isVerdict("hung"))
	p.never("notices of the slow turn", slow, isType("rouse.notice.created"))
	if err := p.notices(hung, 1); err != nil {
		return err
	}
	late := "yes"
	if stage.Logged("watch.late") == 0 {
		late = "no"
	}
	p.expect("the watch says that it came late", "yes", late, 0)
	if err := p.stage.Client().Abort(p.ctx, hung); err != nil {
		return err
	}
	return p.ends("the hung turn is aborted by hand", hung, hungTurn.TurnID, "cancelled")
}

// beginWith makes a session and sends it a text.
func (p *play) beginWith(model, text string) (session string, acc client.Accepted, err error) {
	if session, err = p.session(); err == nil {
		acc, err = p.prompt(session, model, text)
	}
	return session, acc, err
}

// hungAwake waits until a turn is found hung and checks that it was silent for
// long enough while the server ran; since is when its silence began, moved by
// the time in which it did not.
func (p *play) hungAwake(session string, since time.Time, pace time.Duration) error {
	found, err := p.until(session, isVerdict("hung"))
	if err != nil {
		return err
	}
	got := "yes"
	if awake := found.At.Sub(since); awake < awakeHang/pace {
		got = "no, after " + (awake * pace).Round(time.Second).String()
	}
	p.expect("hung only after five minutes awake", "yes", got, found.Seq)
	return nil
}
