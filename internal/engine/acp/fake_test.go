package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// fakeVariable makes the test's own binary an agent: its value says how it
// behaves from the start.
const fakeVariable = "ROUSE_FAKE_AGENT"

func TestMain(m *testing.M) {
	if how, ok := os.LookupEnv(fakeVariable); ok {
		(&fake{how: how, out: bufio.NewWriterSize(os.Stdout, 1<<16), sessions: map[string]bool{}, waiting: map[string]chan string{}}).serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// fake is an agent that does what the text of a prompt says.
type fake struct {
	how string
	out *bufio.Writer

	mu       sync.Mutex
	sessions map[string]bool
	cancel   chan struct{} // of the running prompt
	waiting  map[string]chan string
	asked    int
	opened   int
}

type fakeMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		ConfigID  string `json:"configId"`
		Value     string `json:"value"`
		Prompt    []struct {
			Text string `json:"text"`
		} `json:"prompt"`
	} `json:"params"`
	Result struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	} `json:"result"`
}

// is reports that a word is among how it behaves.
func (f *fake) is(word string) bool { return strings.Contains(" "+f.how+" ", " "+word+" ") }

func (f *fake) serve() {
	if f.is("slow") {
		<-time.After(2 * time.Second)
	}
	if f.is("stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	for _, arg := range os.Args[1:] {
		if arg == "--diagnose" && f.is("noflags") {
			fmt.Fprintln(os.Stderr, "unknown option --diagnose")
			os.Exit(2)
		}
	}
	switch {
	case f.is("dies"):
		fmt.Fprintln(os.Stderr, "ENOENT: cannot read /home/someone/.config with key sk-ant-api03-abcdefghijklmnop1234")
		os.Exit(1)
	case f.is("mute"):
		<-time.After(time.Hour)
	}
	deaf := false // from the prompt on that says so
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for !deaf && in.Scan() {
		var m fakeMessage
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		f.handle(m)
		deaf = len(m.Params.Prompt) > 0 && strings.HasPrefix(m.Params.Prompt[0].Text, "deaf")
	}
	if f.is("stays") || deaf {
		<-time.After(time.Hour)
	}
}

func (f *fake) write(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.out.WriteString(line + "\n")
	_ = f.out.Flush()
}

func (f *fake) answer(id json.RawMessage, result string) {
	f.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

func (f *fake) refuse(id json.RawMessage, code int, message, data string) {
	f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q,"data":%s}}`, id, code, message, data))
}

func (f *fake) update(session, body string) {
	f.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":` + body + `}}`)
}

func (f *fake) say(session, text string) {
	f.update(session, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":`+strconv.Quote(text)+`}}`)
}

const fakeOptions = `"configOptions":[{"id":"model","name":"Model","category":"model","type":"select","currentValue":"%s","options":[{"value":"small","name":"Small"},{"value":"large","name":"Large"}]}]`

const fakeCommands = `{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"compact"}]}`

func (f *fake) handle(m fakeMessage) {
	switch m.Method {
	case "":
		f.mu.Lock()
		wait := f.waiting[string(m.ID)]
		delete(f.waiting, string(m.ID))
		f.mu.Unlock()
		if wait != nil {
			wait <- m.Result.Outcome.Outcome + m.Result.Outcome.OptionID
		}
	case "initialize":
		if f.is("refuses") {
			f.refuse(m.ID, 1001, "Codex process has exited with code 1", "null")
			return
		}
		caps := `"loadSession":true,"sessionCapabilities":{"list":{},"close":{},"resume":{}}`
		if f.is("loads") {
			caps = `"loadSession":true`
		} else if f.is("forgetful") {
			caps = `"loadSession":false`
		}
		version := 1
		if f.is("newer") {
			version = 99
		}
		f.answer(m.ID, fmt.Sprintf(`{"protocolVersion":%d,`, version)+`"agentCapabilities":{`+caps+`},"agentInfo":{"name":"fake","version":"1"},"authMethods":[]}`)
	case "session/new":
		if f.is("locked") {
			f.refuse(m.ID, -32000, "Authentication required", "null")
			return
		}
		f.opened++
		id := fmt.Sprintf("ses_fake-%d-%d", os.Getpid(), f.opened)
		f.sessions[id] = true
		f.answer(m.ID, `{"sessionId":"`+id+`",`+fmt.Sprintf(fakeOptions, "small")+`}`)
		f.update(id, fakeCommands)
	case "session/resume":
		if f.is("unknown") {
			f.refuse(m.ID, -32002, "Resource not found", "null")
			return
		}
		f.answer(m.ID, `{`+fmt.Sprintf(fakeOptions, "small")+`}`)
	case "session/load":
		go f.load(m)
	case "session/list":
		f.answer(m.ID, `{"sessions":[]}`)
	case "session/close", "session/set_mode":
		f.answer(m.ID, `{}`)
	case "session/set_config_option":
		if m.Params.Value == "nosuch" {
			f.refuse(m.ID, -32602, "Invalid params", "null")
			return
		}
		f.answer(m.ID, `{`+fmt.Sprintf(fakeOptions, m.Params.Value)+`}`)
	case "session/cancel":
		f.mu.Lock()
		if f.cancel != nil && !f.is("deaf") {
			close(f.cancel)
			f.cancel = nil
		}
		f.mu.Unlock()
	case "session/prompt":
		f.mu.Lock()
		cancel := make(chan struct{})
		f.cancel = cancel
		f.mu.Unlock()
		go f.play(m, cancel)
	default:
		if m.ID != nil {
			f.refuse(m.ID, -32601, "Method not found", "null")
		}
	}
}

// load replays a session; one that is eager wants a permission first.
func (f *fake) load(m fakeMessage) {
	if f.is("eager") {
		f.ask(m.Params.SessionID, "early")
	}
	for i := range 20_000 {
		f.say(m.Params.SessionID, fmt.Sprintf("old %d ", i))
	}
	f.answer(m.ID, `{}`)
	f.update(m.Params.SessionID, fakeCommands)
}

// play answers one prompt: each word of its last text is a deed.
func (f *fake) play(m fakeMessage, cancel chan struct{}) {
	session := m.Params.SessionID
	stop := "end_turn"
	text := m.Params.Prompt[len(m.Params.Prompt)-1].Text
	for deed := range strings.FieldsSeq(text) {
		what, arg, _ := strings.Cut(deed, "=")
		n, _ := strconv.Atoi(arg)
		switch what {
		case "say":
			f.say(session, arg+" ")
		case "seen":
			f.say(session, fmt.Sprintf("blocks=%d first=%s", len(m.Params.Prompt), m.Params.Prompt[0].Text))
		case "burst":
			for i := range n {
				f.say(session, strconv.Itoa(i)+" ")
			}
		case "tool":
			f.tool(session, arg)
		case "slowtool":
			f.update(session, `{"sessionUpdate":"tool_call","toolCallId":"slow","title":"Slow","kind":"execute","status":"in_progress","rawInput":{"command":"sleep 1000"}}`)
		case "ask":
			if got := f.ask(session, arg); got == "cancelled" {
				stop = "cancelled"
			} else {
				f.say(session, "answer: "+got)
			}
		case "quota":
			f.refuse(m.ID, -32603, "Internal error", `{"message":"You've hit your usage limit. Try again in 2 hours.","action_url":"https://opencode.ai/workspace/wrk_1/go"}`)
			return
		case "short":
			f.refuse(m.ID, -32603, "Internal error", "null")
			if arg != "" {
				<-time.After(100 * time.Millisecond) // the answer is read before the record comes
				record(session, arg)
			}
			return
		case "stderr":
			record(session, arg)
		case "junk":
			for i := range n {
				fmt.Fprintf(os.Stderr, "line %d \x00 \xff %s\n", i, strings.Repeat("x", 1000))
			}
		case "kill":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "fence": // until stderr and stdout were read
			<-time.After(50 * time.Millisecond)
		case "hang":
			<-cancel
			stop = "cancelled"
		case "raw":
			f.write(strings.ReplaceAll(arg, "SESSION", session))
		case "requests":
			for i := range n {
				f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r%d","method":"terminal/create","params":null}`, i))
			}
		case "closeout":
			_ = os.Stdout.Close()
			<-time.After(time.Hour)
		case "flood":
			f.mu.Lock()
			for range n {
				_, _ = f.out.WriteString(strings.Repeat("x", 1<<20))
			}
			f.mu.Unlock()
			f.write("")
		case "twice":
			f.answer(m.ID, `{"stopReason":"refusal"}`)
			f.answer(json.RawMessage(`"`+string(m.ID)+`"`), `{"stopReason":"end_turn"}`)
			f.answer(json.RawMessage("99"), `{"stopReason":"end_turn"}`)
		case "exit": // once it has answered
			f.answer(m.ID, `{"stopReason":"end_turn","usage":{"outputTokens":5}}`)
			os.Exit(0)
		}
	}
	usage := `,"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}`
	if strings.Contains(text, "nothing") {
		usage = ""
	}
	f.answer(m.ID, `{"stopReason":"`+stop+`"`+usage+`}`)
}

// record writes what OpenCode writes when an attempt fails.
func record(session, text string) {
	fmt.Fprintf(os.Stderr, "timestamp=%s level=ERROR run=1 message=\"stream error\" providerID=mock modelID=mock-default session.id=%s small=false agent=build error.error=%q\n",
		time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), session, "AI_APICallError: "+strings.ReplaceAll(text, "_", " "))
}

func (f *fake) tool(session, id string) {
	f.update(session, `{"sessionUpdate":"tool_call","toolCallId":"`+id+`","title":"List","kind":"execute","status":"pending"}`)
	f.update(session, `{"sessionUpdate":"tool_call_update","toolCallId":"`+id+`","status":"in_progress","rawInput":{"command":"ls"}}`)
	f.update(session, `{"sessionUpdate":"tool_call_update","toolCallId":"`+id+`","status":"completed","content":[{"type":"content","content":{"type":"text","text":"one\ntwo"}}]}`)
}

func (f *fake) ask(session, id string) string {
	f.mu.Lock()
	f.asked++
	rpc := strconv.Itoa(f.asked)
	wait := make(chan string, 1)
	f.waiting[rpc] = wait
	f.mu.Unlock()
	f.write(`{"jsonrpc":"2.0","id":` + rpc + `,"method":"session/request_permission","params":{"sessionId":"` + session +
		`","toolCall":{"toolCallId":"` + id + `","title":"Remove","kind":"execute","status":"pending","rawInput":{"command":"rm -r ` + id + `"}},` +
		`"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"ever","name":"Ever","kind":"allow_always"},{"optionId":"no","name":"No","kind":"reject_once"}]}}`)
	return <-wait
}
