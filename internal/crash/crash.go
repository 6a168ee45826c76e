// Package crash kills the process at a named point, so that what a kill -9
// leaves behind can be tried at every step of a route instead of by luck.
// ROUSE_CRASH_AT=<point>[:n] in the environment arms one point, at its n-th
// passing (default 1); unarmed points cost one comparison.
package crash

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// The points. "before" is before the transaction is handed to the store,
// "after" when it is committed and nothing has been done about it yet.
const (
	PromptBefore  = "prompt.before" // intake
	PromptAfter   = "prompt.after"
	BeginBefore   = "begin.before" // queued → running
	BeginAfter    = "begin.after"
	FoldBefore    = "fold.before" // parts of a running turn
	FoldAfter     = "fold.after"
	AnswerBefore  = "answer.before" // a reply to a permission or question
	AnswerAfter   = "answer.after"
	CancelBefore  = "cancel.before" // the first rung of the ladder
	CancelAfter   = "cancel.after"
	SettleBefore  = "settle.before"
	SettleAfter   = "settle.after"
	RescueBefore  = "rescue.before" // each stage of a rescue
	RescueAfter   = "rescue.after"
	RecoverBefore = "recover.before" // the start after a crash
	RecoverAfter  = "recover.after"
)

// Points lists all points, in the order of a prompt's route.
func Points() []string {
	return []string{PromptBefore, PromptAfter, BeginBefore, BeginAfter, FoldBefore, FoldAfter, AnswerBefore, AnswerAfter,
		CancelBefore, CancelAfter, SettleBefore, SettleAfter, RescueBefore, RescueAfter, RecoverBefore, RecoverAfter}
}

var (
	armed string
	left  atomic.Int64
)

func init() {
	point, n, counted := strings.Cut(os.Getenv("ROUSE_CRASH_AT"), ":")
	times := int64(1)
	if v, err := strconv.ParseInt(n, 10, 64); counted && err == nil && v > 0 {
		times = v
	}
	if slices.Contains(Points(), point) {
		armed = point
		left.Store(times)
	}
}

// At is passed at a point; it does not return at the armed passing.
func At(point string) {
	if armed != point || left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
