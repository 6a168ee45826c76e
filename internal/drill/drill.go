// Package drill plays the other side: a simulated model provider whose models
// fail on command, in every way that real ones do. It is shipped with the
// product, as its first provider and for game days, and every test that needs
// a provider uses it.
//
// A model's name says what it does; see Models. A directive in the prompt
// changes the details:
//
//	[[drill tokens=500 rate=0 cmd="go test" delay=2s reset=10s tool=read input='{"filePath":"a"}']]
//	[[drill model=quota]] plays another model, for agents whose model a prompt cannot choose
package drill

// The models, by what they do.
const (
	Echo       = "echo"       // the prompt's text back at once
	Stream     = "stream"     // 200 tokens at 50 a second
	Hang       = "hang"       // two chunks, then silence
	Mute       = "mute"       // takes the request and never sends a byte
	Quota      = "quota"      // 429, the five-hour limit is used up
	Rate       = "rate"       // 429 with retry-after 1, twice, then an answer
	Auth       = "auth"       // 401
	Overflow   = "overflow"   // 400, the context is too long; summaries work
	Break      = "break"      // cut in the middle, once, then an answer
	EOF        = "eof"        // ends without a finish reason, always
	Tool       = "tool"       // one tool call, then text
	SlowTool   = "slowtool"   // a bash call that runs long
	Permission = "permission" // a bash call outside the directory
	Question   = "question"   // asks the person something
	Reason     = "reason"     // thinks, then answers
	Capacity   = "capacity"   // 529, always
	Stalled    = "stalled"    // as hang; to be used with an idle timeout
	Recall     = "recall"     // all that the person has said in the conversation
)

// Models lists the models in a stable order; the first is the default.
func Models() []string {
	return []string{Echo, Stream, Hang, Mute, Quota, Rate, Auth, Overflow, Break, EOF, Tool, SlowTool,
		Permission, Question, Reason, Capacity, Stalled, Recall}
}

// Headers by which Rouse's own engine tells the drill what a request is for
// (internal/provider names the same).
const (
	TurnHeader    = "X-Rouse-Turn"    // the turn's id: "once" and "twice" count per turn
	PurposeHeader = "X-Rouse-Purpose" // PurposeTitle, PurposeCompact or absent
)

// Purposes of a request.
const (
	PurposeTitle   = "title"
	PurposeCompact = "compact"
)
