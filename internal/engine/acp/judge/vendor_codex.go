package judge

import (
	"encoding/json"

	"rouse/internal/engine/acp/wire"
)

// isSystemError reports whether codex-acp 2 says that its thread broke. It
// says so before it answers, with an end_turn that looks like any other; the
// status alone is not decisive, since the thread may go on.
func isSystemError(meta json.RawMessage) bool {
	return wire.Text(wire.At(meta, "codex", "threadStatus", "type")) == "systemError"
}
