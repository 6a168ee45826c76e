package native

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"rouse"
	"rouse/internal/engine"
)

var questionTool = tool{
	name:        "question",
	description: `Asks the person something you need to know to go on. Give two to four options for each question; the person can also answer in own words. Do not ask for permission with it, and not for what you can find out.`,
	schema:      json.RawMessage(`{"type":"object","required":["questions"],"additionalProperties":false,"properties":{"questions":{"type":"array","minItems":1,"items":{"type":"object","required":["question","header","options"],"properties":{"question":{"type":"string","description":"The whole question"},"header":{"type":"string","description":"One or two words for it"},"multiple":{"type":"boolean","description":"More than one option may be chosen"},"options":{"type":"array","items":{"type":"object","required":["label","description"],"properties":{"label":{"type":"string"},"description":{"type":"string"}}}}}}}}}`),
	run:         runQuestion,
}

// maxQuestions bounds what one call may ask.
const maxQuestions = 10

func runQuestion(k *call) (result, error) {
	var in struct{ Questions []rouse.Question }
	if err := k.decode(&in); err != nil {
		return result{}, err
	}
	switch {
	case len(in.Questions) == 0:
		return result{}, k.missing("questions")
	case len(in.Questions) > maxQuestions:
		return result{}, toolError(fmt.Sprintf("At most %d questions can be asked at once.", maxQuestions))
	}
	for i := range in.Questions {
		q := &in.Questions[i]
		if q.Question == "" {
			return result{}, k.missing("question")
		}
		if q.Options == nil {
			q.Options = []rouse.Option{}
		}
	}
	if err := k.permit(wish{permission: "question", patterns: []string{"*"}, always: []string{"*"}}); err != nil {
		return result{}, err
	}
	t := k.t
	a := t.openAsk(rouse.Request{ID: rouse.NewID(rouse.QuestionPrefix, time.Now()), SessionID: t.p.SessionID, TurnID: t.p.TurnID, Generation: t.p.Generation,
		Kind: rouse.ForQuestion, CallID: k.id, Questions: in.Questions})
	t.send(engine.QuestionAsked{Request: a.req}, true, 0)
	k.running("", nil)
	r, err := t.wait(a)
	if err != nil {
		return result{}, err
	}
	switch {
	case r.Verb == rouse.ReplyAnswer:
		return answeredResult(in.Questions, r.Answers), nil
	case r.Verb == rouse.ReplyCancelled:
		k.t.c.interrupt(errCancelled) // the turn is being cancelled: nothing may run on
		return result{}, &errHalt{"The question was withdrawn."}
	case r.Message != "":
		return result{}, toolError("The question got no answer: " + rouse.Clip(r.Message, 4000))
	}
	t.rejectOthers()
	return result{}, &errHalt{"The user dismissed this question."}
}

// answeredResult tells the model what was chosen.
func answeredResult(questions []rouse.Question, answers [][]string) result {
	var parts []string
	for i, q := range questions {
		chosen := "no answer"
		if i < len(answers) && len(answers[i]) > 0 {
			chosen = strings.Join(answers[i], ", ")
		}
		parts = append(parts, fmt.Sprintf("%q: %q", q.Question, chosen))
	}
	noun := "questions"
	if len(questions) == 1 {
		noun = "question"
	}
	if answers == nil {
		answers = [][]string{}
	}
	return result{title: fmt.Sprintf("Asked %d %s", len(questions), noun), output: "The user answered. " + strings.Join(parts, "; "),
		metadata: map[string]any{"answers": answers, "truncated": false}}
}
