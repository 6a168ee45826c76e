package session_test

import (
	"testing"

	"rouse"
	"rouse/internal/session"
)

// programAgent is an agent program whose own choice of a model is "default".
type programAgent struct{}

func (programAgent) FindAgent(name string) (session.Agent, error) {
	return session.Agent{Name: name, Primary: true, Program: true, Model: rouse.ModelRef{Provider: "acp:mine", Model: "default"}}, nil
}

// The door asks the walls about the model that the launched session will use.
func TestModelOfAProgram(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.lanes.Agents = programAgent{}
		for named, want := range map[rouse.ModelRef]rouse.ModelRef{
			{}:                                       {Provider: "acp:mine", Model: "default"},
			{Provider: "acp:mine", Model: "big/one"}: {Provider: "acp:mine", Model: "big/one"},
			{Provider: "drill", Model: "echo"}:       {Provider: "acp:mine", Model: "drill/echo"},
		} {
			if got := w.lanes.ModelOf("mine", named); got != want {
				t.Errorf("%s: %s, want %s", named, got, want)
			}
		}
	})
}
