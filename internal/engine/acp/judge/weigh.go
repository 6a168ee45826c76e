package judge

import "rouse/internal/engine/acp/wire"

// Weight is what a message of the agent is to a turn.
type Weight int

// The weights.
const (
	// Foreign is not of this turn: another session's message, an answer, or
	// anything after the end.
	Foreign Weight = iota
	// Noise shows that a pipe lives, not that the turn moves.
	Noise
	// Genuine is progress of the turn itself.
	Genuine
)

// Weigh says whether a request or notification of the agent is progress, if it
// belongs to the turn's session. It costs next to nothing: it looks at a text's
// ends only.
func Weigh(m *wire.Message) Weight {
	switch {
	case m.Permission != nil:
		return Genuine
	case m.Update == nil:
		return Noise
	}
	switch m.Update.Kind {
	case wire.KindTool, wire.KindToolUpdate, wire.KindPlan, wire.KindPlanUpdate:
		return Genuine
	case wire.KindMessage, wire.KindThought:
		if m.Update.Content.Other || kindOf(m.Update.Content.Text) == speech {
			return Genuine
		}
	}
	return Noise
}
