package drill

import (
	"testing"

	"rouse"
	"rouse/internal/engine"
	"rouse/internal/engine/enginetest"
)

// TestEngineSuite holds the drill's engine to what lanes rely on.
func TestEngineSuite(t *testing.T) {
	modes := map[enginetest.Behaviour]string{enginetest.Echo: "echo", enginetest.Long: "hang", enginetest.Burst: "burst", enginetest.Tool: "tool",
		enginetest.Permission: "permission", enginetest.Question: "question", enginetest.Fail: "fail"}
	enginetest.Run(t, func(t *testing.T) enginetest.Fixture {
		return enginetest.Fixture{Engine: Engine{}, Spec: engine.Spec{Directory: t.TempDir()}, Prompt: func(b enginetest.Behaviour, g uint64) (rouse.Prompt, bool) {
			mode, ok := modes[b]
			return rouse.Prompt{Generation: g, Model: rouse.ModelRef{Provider: "drill", Model: mode}, Parts: []rouse.Part{{Kind: rouse.TextPart, Text: "hello"}}}, ok
		}}
	})
}
