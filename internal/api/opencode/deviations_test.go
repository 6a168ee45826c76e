package opencode_test

import "strings"

// deviation is a case where Rouse answers otherwise than opencode 1.18.33 on
// purpose. A zero status means that only the body or the events differ.
type deviation struct {
	status int
	why    string
	// body: the shape of our body is not compared with the recorded one.
	body bool
	// messages: the shape of the stored messages is not compared.
	messages bool
	// events is the order we send instead of the recorded one.
	events string
}

// The order of a turn that fails or is aborted: what happened is stored before
// it is announced, and idle is said once. (opencode 1.18.33 says error and
// idle, then stores, then says idle again: who reads the messages at the first
// idle sees no error.)
const (
	begun   = "message.updated:user part:text session.status:busy"
	ended   = " session.error session.status:idle session.idle"
	refused = begun + " message.updated:assistant part:text" + ended // the part says why, for people
	step    = " message.updated:assistant part:step-start"
	stopped = " message.updated:assistant" + ended
	answer  = " part:step-start part:text delta part:text part:step-finish message.updated:assistant session.status:idle session.idle"
	again   = " session.status:retry session.status:busy"
)

// deviations by case; every one has its reason.
var deviations = map[string]deviation{
	"get-unknown-path":   {status: 404, why: "unknown paths are 404 in JSON, not 200 with the HTML of a UI", body: true},
	"post-unknown":       {status: 404, why: "as get-unknown-path", body: true},
	"unknown-api":        {status: 404, why: "as get-unknown-path", body: true},
	"method-not-allowed": {status: 404, why: "as get-unknown-path", body: true},

	"get-session-badid":          {status: 400, why: "a malformed id is the caller's mistake, not a server error", body: true},
	"prompt-sync-bad-json":       {status: 400, why: "malformed JSON is the caller's mistake", body: true},
	"prompt_async-bad-json":      {status: 400, why: "malformed JSON is the caller's mistake", body: true},
	"command-unknown":            {status: 400, why: "the error names the field and the commands there are", body: true},
	"post-session-badfield":      {why: "one error shape everywhere, and it names the field", body: true},
	"post-session-badjson":       {why: "as post-session-badfield", body: true},
	"post-session-badparent":     {why: "as post-session-badfield", body: true},
	"messages-before-bad":        {why: "as post-session-badfield", body: true},
	"messages-before-nolimit":    {why: "as post-session-badfield", body: true},
	"part-patch-mismatch":        {why: "as post-session-badfield", body: true},
	"prompt-sync-model-string":   {status: 200, why: "\"provider/model\" is accepted as a string", body: true},
	"prompt_async-model-string":  {status: 204, why: "\"provider/model\" is accepted as a string", body: true},
	"prompt-sync-bad-messageid":  {why: "the error also names the field", body: true},
	"prompt-sync-bad-part":       {why: "the error also names the field", body: true},
	"prompt-sync-no-parts":       {why: "the error also names the field", body: true},
	"prompt-sync-empty-body":     {why: "the error also names the field", body: true},
	"prompt_async-bad-messageid": {why: "the error also names the field", body: true},
	"prompt_async-bad-part":      {why: "the error also names the field", body: true},
	"prompt_async-no-parts":      {why: "the error also names the field", body: true},
	"prompt_async-empty-body":    {why: "the error also names the field", body: true},
	"messages-limit-bad":         {why: "the error also names the field", body: true},
	"permission-reply-bad":       {why: "the error also names the field", body: true},
	"log-bad":                    {why: "the error also names the field", body: true},
	"shell-noagent":              {why: "the error also names the field", body: true},
	"get-find":                   {status: 200, why: "text search works without another program (opencode 1.18.33 answered 500 offline)", body: true},
	"share-disabled":             {status: 501, why: "sharing is not offered; that is no internal error", body: true},

	"turn-unknown-model-sync":     {status: 400, why: "an unknown model is refused at the door with the usable ones", body: true},
	"turn-unknown-provider-sync":  {status: 400, why: "as turn-unknown-model-sync", body: true},
	"turn-unknown-agent-sync":     {status: 400, why: "an unknown agent is refused at the door with the usable ones", body: true},
	"turn-unknown-model-async":    {status: 400, why: "opencode answers 204 and stores no assistant message: a silent stall", body: true},
	"turn-unknown-provider-async": {status: 400, why: "as turn-unknown-model-async", body: true},
	"turn-unknown-agent-async":    {status: 400, why: "as turn-unknown-model-async", body: true},

	"turn-e401":      {why: "the error is stored before it is announced, idle comes once, and the reason is also a text part", events: refused},
	"turn-e401-sync": {why: "as turn-e401", events: refused},
	"turn-e403":      {why: "as turn-e401", events: refused},
	"turn-e404":      {why: "as turn-e401", events: refused},
	"turn-bad400":    {why: "as turn-e401", events: refused},
	"turn-usage429":  {why: "a usage limit ends the turn at once with its reset; opencode sleeps for days without a word", events: refused, messages: true},
	"turn-week429":   {why: "as turn-usage429", events: refused, messages: true},

	"turn-free429": {why: "as turn-usage429", events: refused, messages: true},
	"turn-e503":    {why: "as turn-rate429", events: begun + again + " message.updated:assistant" + answer},
	"turn-plain429": {why: "an aborted wait keeps the reason of the wait; opencode stores a message without error and without finish", messages: true,
		events: begun + " session.status:retry message.updated:assistant part:text" + ended},
	"turn-breaknow": {why: "recorded while it was still retrying; the attempts are bounded and end in an error", messages: true,
		events: begun + again + again + again + again + strings.TrimPrefix(refused, begun)},
	"turn-junk": {why: "a stream that cannot be read is tried again a bounded number of times", messages: true,
		events: begun + again + again + again + again + strings.TrimPrefix(refused, begun)},

	"turn-rate429": {why: "the assistant's message begins with the first sign of the model, not before it", events: begun + again + again + " message.updated:assistant" + answer},
	"turn-break": {why: "recorded while it was still retrying; each broken attempt is closed and marked", messages: true,
		events: begun + step + " part:text delta part:text" + again + answer},

	"turn-hang-abort":      {why: "stored before announced, idle once; no message of the assistant before the model said anything", events: begun + stopped},
	"turn-hangnohdr-abort": {why: "as turn-hang-abort", events: begun + stopped},
	"turn-hangmid-abort":   {why: "stored before announced, idle once; while it hung, the stored text was what had been streamed (opencode shows \"\" until the part ends)", events: begun + step + " part:text delta part:text" + stopped},
	"turn-drip-abort":      {why: "as turn-hangmid-abort", events: begun + step + " part:text delta part:text" + stopped},
	"turn-slowtool-abort":  {why: "as turn-hangmid-abort", events: begun + step + " part:tool:pending part:tool:running part:tool:completed" + stopped},

	"turn-todo": {why: "the list changes when the call runs, not before", events: begun + step + " part:tool:pending part:tool:running todo.updated part:tool:completed part:step-finish message.updated:assistant" + answer},
	"turn-badtool": {why: "a call of an unknown tool is an error of that call, not a success of a tool named invalid", messages: true,
		events: begun + step + " part:tool:pending part:tool:running part:tool:error part:step-finish message.updated:assistant" + answer},
	"turn-format-json": {why: "a schema is answered through a tool of its own, and the session stays readable afterwards",
		events: begun + step + " part:tool:pending part:tool:running part:tool:completed part:step-finish message.updated:assistant session.status:idle session.idle"},

	"flow-permission-abort": {why: "abort answers what it leaves open; opencode lists the request for ever",
		events: begun + step + " part:tool:pending permission.asked part:tool:running permission.replied part:tool:error" + stopped},
	"flow-question-abort": {why: "as flow-permission-abort",
		events: begun + step + " part:tool:pending question.asked part:tool:running question.rejected part:tool:error" + stopped},

	"diff-msg":           {why: "Rouse keeps no snapshots of the directory", body: true},
	"fork-messages":      {why: "the recorded session had other turns; what is copied is counted instead", body: true},
	"revert-messages":    {why: "as fork-messages", body: true},
	"summarize-messages": {why: "as fork-messages; the summary's own messages are compared by their events", body: true},
	"flow-shell": {why: "busy is said when the turn runs, after its prompt is stored",
		events: begun + " message.updated:assistant part:tool:running part:tool:completed message.updated:assistant session.status:idle session.idle"},

	"turn-queue-busy":  {why: "abort ends the running turn only; opencode drops the prompts that wait behind it"},
	"turn-queue-drain": {why: "idle is said when nothing waits any more"},
	"cors-preflight":   {why: "CORS is off unless an origin is configured; then it is as recorded"},
	"auth-bearer":      {why: "the token is also accepted as Bearer, with any user name, and a refusal has a JSON body"},
	"auth-wrong-user":  {why: "as auth-bearer"},
}
