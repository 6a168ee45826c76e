package diagnostics

import (
	"testing"

	"rouse"
)

const oldStart = "ERROR 2026-11-30T12:47:29 +5ms service=llm providerID=mock sessionID=ses_1 "

// Old versions quote nothing in front of the error: what has no key belongs to
// the value before it.
func TestOldHeaders(t *testing.T) {
	const start, failed = "ERROR 2026-11-30T12:47:29 +5ms ", ` error={"error":{"name":"x"}} stream error`
	for header, want := range map[string]Reason{
		`service=llm sessionID=ses_1 agent=code reviewer mode=primary`: ReasonTransient,
		`service=llm sessionID=ses_1 agent=title maker`:                ReasonTransient,
		`service=llm sessionID=ses_1 agent=title small=tr ue`:          ReasonTitle,
		`service=llm sessionID=ses_1 mode= opts={"a":"b c"} m=a=b`:     ReasonTransient,
		`small=true sessionID=ses_1  service=llm`:                      ReasonSmall,
		`service=llm sessionID=ses_1 x`:                                ReasonMalformed,
		`service=llm sessionID=ses_1 agent=x sessionID=ses_1`:          ReasonDuplicate,
		`service=llm x sessionID=ses_1`:                                ReasonOther,
		`llm service=llm sessionID=ses_1`:                              ReasonOther,
		`service=llm agent=a b`:                                        ReasonMissing,
	} {
		if got := judged(start+header+failed, mine); got.Reason != want {
			t.Errorf("%s: %s, want %s", header, got.Reason, want)
		}
	}
	r := Parse(Line{Text: []byte(start + `service=llm sessionID=ses_1 agent=code  reviewer of all mode=x` + failed)})
	if r.agent != "code  reviewer of all" {
		t.Errorf("agent %q", r.agent)
	}
}

func TestOldTexts(t *testing.T) {
	for call, want := range map[string]string{
		`"data":{"error":{"message":"one"}},"responseBody":"{\"message\":\"two\"}","message":"three"`: "one",
		`"responseBody":"{\"error\":{\"message\":\"two\"}}","message":"three"`:                        "two",
		`"responseBody":"{\"error\":\"two\"}","message":"three"`:                                      "two",
		`"responseBody":"{\"message\":\"two\",\"error\":null}","message":"three"`:                     "two",
		`"responseBody":"<html>","message":"three"`:                                                   "three",
		`"data":"odd","responseBody":7,"message":"three"`:                                             "three",
		`"data":{"error":{"message":{"a":1}}},"name":"four"`:                                          "four",
		// Names in JSON have one case.
		`"message":"three","Message":"odd","Data":{"error":{"message":"odd"}}`:       "three",
		`"responseBody":"{\"Message\":\"odd\",\"ERROR\":\"odd\"}","message":"three"`: "three",
	} {
		if got := judged(oldStart+`error={"error":{`+call+`}} stream error`, mine); got.Message != want {
			t.Errorf("%s: %q, want %q", call, got.Message, want)
		}
	}
	for call, want := range map[string]rouse.Class{
		`"name":"x","statusCode":402`: rouse.ClassBilling, `"name":"x","statusCode":401`: rouse.ClassAuth, `"name":"x","statusCode":403`: rouse.ClassAuth,
		`"name":"x","statusCode":429`: rouse.ClassRate, `"name":"x","statusCode":520`: rouse.ClassCapacity, `"name":"x","statusCode":404`: rouse.ClassNone,
		`"message":"overloaded","statusCode":429`:                                          rouse.ClassCapacity,
		`"message":"x","data":{"error":{"type":"server_error","code":"429"}}`:              rouse.ClassRate,
		`"message":"x","data":{"error":{"code":429}}`:                                      rouse.ClassRate,
		`"responseBody":"{\"error\":{\"message\":\"x\",\"type\":\"insufficient_quota\"}}"`: rouse.ClassQuota,
	} {
		if got := judged(oldStart+`error={"error":{`+call+`}} stream error`, mine); got.Class != want {
			t.Errorf("%s: %s, want %s", call, got.Class, want)
		}
	}
}

// However a provider's wire carries the system text, the request for a title
// is known; a user who writes the same words is not.
func TestTitleRequests(t *testing.T) {
	words := `"You are a title generator. You output"`
	for request, want := range map[string]Reason{
		`"messages":[{"role":"system","content":` + words + `}]`:                          ReasonTitle,
		`"messages":[{"role":"system","content":[{"type":"text","text":` + words + `}]}]`: ReasonTitle,
		`"input":[{"role":"developer","content":` + words + `}]`:                          ReasonTitle,
		`"system":[{"type":"text","text":"You are X"},{"text":` + words + `}]`:            ReasonTitle,
		`"system":` + words:       ReasonTitle,
		`"instructions":` + words: ReasonTitle,
		`"systemInstruction":{"parts":[{"text":` + words + `}]}`: ReasonTitle,
		`"messages":[{"role":"user","content":` + words + `}]`:   ReasonTransient,
		`"messages":"odd","input":` + words:                      ReasonTransient,
	} {
		if got := judged(oldStart+`error={"error":{"name":"x","requestBodyValues":{`+request+`}}} stream error`, mine); got.Reason != want {
			t.Errorf("%s: %s, want %s", request, got.Reason, want)
		}
	}
}
