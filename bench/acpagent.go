package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// acpAgentArg as the first argument makes this program an agent.
const acpAgentArg = "be-an-agent"

// tinyAgent answers every prompt with a word, in a few hundred KB.
const tinyAgent = `#!/bin/sh
while IFS= read -r l; do
	id=${l#*\"id\":}; id=${id%%,*}
	case $l in
	*'"method":"initialize"'*) r='{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"method":"session/new"'*) r='{"sessionId":"s"}' ;;
	*'"method":"session/prompt"'*)
		echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}'
		r='{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}' ;;
	*) continue ;;
	esac
	echo '{"jsonrpc":"2.0","id":'$id',"result":'$r'}'
done
`

// acpAgent is an agent that is as fast as a pipe: "fail" writes OpenCode's
// record of a failed turn and waits for the cancel, "text N", "tool N" and
// "both N" write so many updates. The time at which it began stands in the file
// stamp of its folder.
func acpAgent() {
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	dir := ""
	var open json.RawMessage
	answer := func(id json.RawMessage, result string) {
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
		_ = out.Flush()
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Cwd    string
				Prompt []struct{ Text string }
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			answer(m.ID, `{"protocolVersion":1,"agentCapabilities":{}}`)
		case "session/new":
			dir = m.Params.Cwd
			answer(m.ID, `{"sessionId":"ses_bench"}`)
		case "session/cancel":
			if open != nil {
				answer(open, `{"stopReason":"cancelled"}`)
				open = nil
			}
		case "session/prompt":
			kind, n, _ := strings.Cut(m.Params.Prompt[len(m.Params.Prompt)-1].Text, " ")
			count, _ := strconv.Atoi(n)
			_ = os.WriteFile(filepath.Join(dir, "stamp"), strconv.AppendInt(nil, time.Now().UnixNano(), 10), 0o600)
			if kind == "fail" {
				open = m.ID
				fmt.Fprintf(os.Stderr, "timestamp=%s level=ERROR message=process session.id=ses_bench error=\"it broke\"\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
				continue
			}
			updates(out, kind, count)
			answer(m.ID, `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}`)
		}
	}
}

// updates writes count of them: pieces of text, changes of one tool, or both by
// turns, which nothing can join.
func updates(out *bufio.Writer, kind string, count int) {
	const head = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"ses_bench","update":`
	var line bytes.Buffer
	for i := range count {
		line.Reset()
		line.WriteString(head)
		if kind == "text" || kind == "both" && i%2 == 0 {
			line.WriteString(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`)
			line.WriteString(strconv.Itoa(i))
			line.WriteString(` "}}}}`)
		} else {
			status := "in_progress"
			if i == count-1 {
				status = "completed"
			}
			line.WriteString(`{"sessionUpdate":"tool_call_update","toolCallId":"call","title":"Run","kind":"execute","status":"` + status +
				`","rawInput":{"command":"ls"},"content":[{"type":"content","content":{"type":"text","text":"line `)
			line.WriteString(strconv.Itoa(i))
			line.WriteString(`"}}]}}}`)
		}
		line.WriteByte('\n')
		_, _ = out.Write(line.Bytes())
	}
}
