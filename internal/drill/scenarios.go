package drill

import "fmt"

// Scenarios are the plays of `rouse drill run`, in order.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "hang", What: "falls silent after two words: quiet, a notice, hung; ended by hand", play: (*play).hang},
		{Name: "quiet-tool", What: "a tool says nothing for 15 minutes and ends well: one notice, nothing else", play: (*play).quietTool},
		{Name: "mute", What: "never says anything: failed as never started after 5 minutes", play: (*play).mute},
		{Name: "deaf", What: "ignores cancel: force ends it", play: (*play).deaf},
		{Name: "stubborn", What: "ignores cancel and force: the turn is settled without it, the next prompt waits for its end", play: (*play).stubborn},
		{Name: "late-answer", What: "answers as completed after it was cancelled: cancelled it stays", play: (*play).lateAnswer},
		{Name: "lost-completion", What: "a prompt whose end is never told: cancel escalates, the next prompt runs", play: (*play).lostCompletion},
		{Name: "hang-rescue", What: "a hung turn is ended, the session woken with facts, the queue runs after it", play: (*play).hangRescue},
		{Name: "stubborn-child", What: "a tool that ignores TERM and left its group: abort leaves no process", play: (*play).stubbornChild},
		{Name: "restart-in-tool", What: "the server is restarted while a tool runs: interrupted, its call closed, the queue runs", play: (*play).restartInTool},
		{Name: "busy-queue-abort", What: "abort ends the running prompt only: what waits runs, in order", play: (*play).busyQueueAbort},
		{Name: "paused-at-prompt", What: "a paused session refuses prompts and stores nothing; resumed it works", play: (*play).pausedAtPrompt},
		{Name: "permission", What: "a turn that waits for a person is not judged silent", play: (*play).waitingForPerson},
		{Name: "retry", What: "a known wait for another attempt is told with its time, not judged silent", play: (*play).knownRetry},
		{Name: "suspended", What: "the machine is suspended for 11 minutes: nobody is condemned for it, who hangs is found awake", play: (*play).suspended, Apart: true},
		{Name: "fifty", What: "50 sessions of which 5 hang: those 5 are found, nobody else", play: (*play).fifty},
	}
}

func (p *play) hang() error {
	s, acc, err := p.begin("hang")
	if err != nil {
		return err
	}
	for _, code := range []string{"quiet", "hung"} {
		if err := p.verdict(s, code); err != nil {
			return err
		}
	}
	if err := p.notices(s, 1); err != nil {
		return err
	}
	if err := p.state("silence ends nothing", s, "generating"); err != nil {
		return err
	}
	if err := p.stage.Client().Abort(p.ctx, s); err != nil {
		return err
	}
	return p.ends("aborted by hand", s, acc.TurnID, "cancelled")
}

// notices waits for the first notice and checks their number so far.
func (p *play) notices(session string, want int) error {
	if _, err := p.until(session, isType("rouse.notice.created")); err != nil {
		return err
	}
	n, seq := p.count(session, isType("rouse.notice.created"))
	p.expect("notices", fmt.Sprint(want), fmt.Sprint(n), seq)
	return nil
}

func (p *play) quietTool() error {
	s, acc, err := p.begin("quiettool")
	if err != nil {
		return err
	}
	if err := p.verdict(s, "quiet_tool"); err != nil {
		return err
	}
	if err := p.ends("ends well", s, acc.TurnID, "completed"); err != nil {
		return err
	}
	p.never("judged hung", s, isVerdict("hung"))
	return p.notices(s, 1)
}

func (p *play) mute() error {
	s, acc, err := p.begin("mute")
	if err != nil {
		return err
	}
	if err := p.ends("never started", s, acc.TurnID, "failed"); err != nil {
		return err
	}
	list, _, err := p.stage.Client().Incidents(p.ctx, "open", s)
	if err != nil {
		return err
	}
	kind := "none"
	if len(list) > 0 {
		kind = list[0].Kind
	}
	p.expect("incident", "never_started", kind, 0)
	p.never("a notice beside the failure", s, isType("rouse.notice.created"))
	return p.nextRuns(s)
}

// nextRuns checks that the session takes work without a restart.
func (p *play) nextRuns(session string) error {
	acc, err := p.prompt(session, "echo", "next")
	if err != nil {
		return err
	}
	return p.ends("the next prompt runs", session, acc.TurnID, "completed")
}
