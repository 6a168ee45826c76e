package opencode

import (
	"encoding/json"
	"strings"
	"testing"

	"rouse"
)

// Every fault of a prompt is refused with the field's name and what is
// accepted there.
func TestPromptFaults(t *testing.T) {
	for _, c := range []struct{ body, field, says string }{
		{``, "parts", "missing"},
		{`{}`, "parts", "missing"},
		{`{"parts":null}`, "parts", "missing"},
		{`{oops`, "", "not valid JSON"},
		{`{"parts":[]`, "", "not valid JSON"},
		{`{"parts":[]} x`, "", "not valid JSON"},
		{`[]`, "", "expected a JSON object"},
		{`"x"`, "", "expected a JSON object"},
		{`{"parts":"x"}`, "parts", "expected an array"},
		{`{"parts":[5]}`, "parts[0]", "expected an object"},
		{`{"parts":[{}]}`, "parts[0].type", "missing"},
		{`{"parts":[{"type":"bogus"}]}`, "parts[0].type", `"text", "file", "agent" or "subtask"`},
		{`{"parts":[{"type":"text"}]}`, "parts[0].text", "missing"},
		{`{"parts":[{"type":"text","text":5}]}`, "parts[0].text", "expected a string, got 5"},
		{`{"parts":[{"type":"text","text":"a"},{"type":"file","url":"data:,"}]}`, "parts[1].mime", "missing"},
		{`{"parts":[{"type":"agent"}]}`, "parts[0].name", "missing"},
		{`{"parts":[{"type":"subtask","prompt":"p","description":"d"}]}`, "parts[0].agent", "missing"},
		{`{"parts":[{"type":"text","text":"a","id":"nope"}]}`, "parts[0].id", `"prt"`},
		{"{\"parts\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"caf\xe9\"}]}", "parts[1].text", "not valid UTF-8"},
		{"{\"parts\":[],\"model\":{\"providerID\":\"\xff\",\"modelID\":\"m\"}}", "model.providerID", "not valid UTF-8"},
		{"{\"parts\":[{\"type\":\"text\",\"text\":\"cut \xf0\x9f\x98\"}]}", "parts[0].text", "not valid UTF-8"},
		{"{\"parts\":[],\"caf\xe9\":1}", "", "the body: it is not valid UTF-8"},
		{`{"parts":[],"messageID":"nope"}`, "messageID", `"msg"`},
		{`{"parts":[],"model":"gpt"}`, "model", `"provider/model"`},
		{`{"parts":[],"model":"gpt"}`, "model", `{"providerID":…,"modelID":…}`},
		{`{"parts":[],"model":"/x"}`, "model", `"provider/model"`},
		{`{"parts":[],"model":7}`, "model", `"provider/model"`},
		{`{"parts":[],"model":[]}`, "model", `"provider/model"`},
		{`{"parts":[],"model":{"modelID":"m"}}`, "model.providerID", "missing"},
		{`{"parts":[],"model":{"providerID":"p"}}`, "model.modelID", "missing"},
		{`{"parts":[],"model":{"providerID":1,"modelID":"m"}}`, "model.providerID", "expected a string"},
		{`{"parts":[],"agent":1}`, "agent", "expected a string"},
		{`{"parts":[],"noReply":"yes"}`, "noReply", "true or false"},
		{`{"parts":[],"tools":{"bash":1}}`, "tools", "true and false"},
		{`{"parts":[],"format":"json"}`, "format", "expected an object"},
		{`{"parts":[],"format":{"type":"xml"}}`, "format.type", "json_schema"},
		{`{"parts":[],"format":{"type":"json_schema"}}`, "format.schema", "missing"},
		{`{"parts":[],"delay_sec":-1}`, "delay_sec", "0 to 86400"},
		{`{"parts":[],"delay_sec":86401}`, "delay_sec", "0 to 86400"},
		{`{"parts":[],"delay_sec":1.5}`, "delay_sec", "integer"},
		{`{"parts":[],"delay_sec":"5"}`, "delay_sec", "integer"},
		{`{"parts":[],"delay_sec":true}`, "delay_sec", "integer"},
		{`{"parts":[],"delay_sec":1e99}`, "delay_sec", "integer"},
	} {
		_, err := parsePrompt([]byte(c.body))
		if rouse.KindOf(err) != rouse.Invalid || err == nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		if got := rouse.FieldOf(err); got != c.field {
			t.Errorf("%s: names %q, want %q", c.body, got, c.field)
		}
		if msg := rouse.SafeMessage(err); !strings.Contains(msg, c.says) {
			t.Errorf("%s: says %q, want %q in it", c.body, msg, c.says)
		}
	}
}

func TestPromptAccepted(t *testing.T) {
	p, err := parsePrompt([]byte(`{"messageID":"msg_1","model":"a/b/c","agent":"build","system":"s","tools":{"bash":false},"delay_sec":0,"unknown":1,
		"format":{"type":"json_schema","schema":{"type":"object"}},
		"parts":[{"type":"text","text":"hi","synthetic":true},{"type":"file","mime":"text/plain","url":"data:,x","filename":"f","source":{"a":1}},
		{"type":"agent","name":"worker"},{"type":"subtask","id":"prt_9","prompt":"p","description":"d","agent":"worker"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Model != (rouse.ModelRef{Provider: "a", Model: "b/c"}) || p.Agent != "build" || p.MessageID != "msg_1" || p.Tools["bash"] || len(p.Parts) != 4 {
		t.Errorf("%+v", p)
	}
	if p.Parts[0].Text != "hi" || !p.Parts[0].Synthetic || p.Parts[1].File.Filename != "f" || string(p.Parts[2].Extra) != `{"name":"worker"}` {
		t.Errorf("%+v", p.Parts)
	}
	if p.Parts[3].ID != "prt_9" || strings.Contains(string(p.Parts[3].Extra), "prt_9") {
		t.Errorf("%+v", p.Parts[3])
	}
	for _, body := range []string{`{"parts":[],"model":{"providerID":"a","id":"b","variant":"default"}}`, `{"parts":[],"model":null}`, `{"parts":[],"delay_sec":86400}`, `{"parts":[],"format":{"type":"text"}}`} {
		if _, err := parsePrompt([]byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// No body makes the parser fail in another way than Invalid, and what it
// accepts can be rendered again.
func FuzzPrompt(f *testing.F) {
	f.Add(`{"parts":[{"type":"text","text":"hi"}],"model":"a/b","delay_sec":5}`)
	f.Add(`{"parts":[{"type":"subtask","prompt":"p","description":"d","agent":"a","model":{"providerID":"x","modelID":"y"}}]}`)
	f.Add(`{"format":{"type":"json_schema","schema":{}},"parts":[{"type":"file","mime":"a","url":"b","source":{}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		p, err := parsePrompt([]byte(body))
		if err != nil {
			if rouse.KindOf(err) != rouse.Invalid || rouse.SafeMessage(err) == "" {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		for i := range p.Parts {
			if _, err := json.Marshal(renderPart(&p.Parts[i])); err != nil {
				t.Fatalf("%q: %v", body, err)
			}
		}
		if _, err := parseSession([]byte(body)); err != nil && rouse.KindOf(err) != rouse.Invalid {
			t.Fatal(err)
		}
	})
}
