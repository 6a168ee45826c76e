package sim

import (
	"encoding/json"
	"fmt"

	"rouse"
)

// followVerdict checks that what is told of a session at rest is about its last
// end, and that the last thing told is, once everything has come to rest.
func followVerdict(e *rouse.Event, ends map[string]rouse.TurnState, told map[string]rouse.VerdictCode) string {
	switch e.Type {
	case rouse.TurnSettledEvent:
		var f rouse.SettledFact
		if err := json.Unmarshal(e.Data, &f); err != nil {
			return err.Error()
		}
		ends[e.SessionID] = f.State
	case rouse.VerdictChanged:
		var v rouse.Verdict
		if err := json.Unmarshal(e.Data, &v); err != nil {
			return err.Error()
		}
		told[e.SessionID] = v.Code
		if v.Code.Over() && !about(v.Code, ends[e.SessionID]) {
			return fmt.Sprintf("verdict %s of session %s, whose last turn is %s", v.Code, e.SessionID, ends[e.SessionID])
		}
	}
	return ""
}

// about says that a verdict can be one on a session whose last turn ended so.
func about(code rouse.VerdictCode, end rouse.TurnState) bool {
	return code == rouse.SettledVerdict(end) || code == rouse.WaitingQuota && end == rouse.TurnFailed
}

// checkVerdicts holds the last verdict of each session against its last end.
func (s *sim) checkVerdicts(ends map[string]rouse.TurnState, told map[string]rouse.VerdictCode) string {
	for id, end := range ends {
		if !s.gone[id] && !about(told[id], end) {
			return fmt.Sprintf("session %s was last told of as %q, its last turn is %s", id, told[id], end)
		}
	}
	return ""
}
