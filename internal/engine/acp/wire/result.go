package wire

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Initialize is the answer to initialize.
type Initialize struct {
	ProtocolVersion int             `json:"protocolVersion"`
	Agent           AgentInfo       `json:"agentInfo"`
	Capabilities    Capabilities    `json:"agentCapabilities"`
	AuthMethods     []AuthMethod    `json:"authMethods"`
	Meta            json.RawMessage `json:"_meta"`
}

// AgentInfo is who answers.
type AgentInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

// Capabilities is what an agent can do.
type Capabilities struct {
	LoadSession bool                `json:"loadSession"`
	Session     SessionCapabilities `json:"sessionCapabilities"`
	Prompt      PromptCapabilities  `json:"promptCapabilities"`
	Meta        json.RawMessage     `json:"_meta"`
}

// SessionCapabilities names the session methods beyond new and prompt that are
// offered.
type SessionCapabilities struct {
	List   Offered `json:"list"`
	Resume Offered `json:"resume"`
	Close  Offered `json:"close"`
	Delete Offered `json:"delete"`
	Fork   Offered `json:"fork"`
}

// PromptCapabilities is what a prompt may hold beside text and resource links.
type PromptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// Offered is true for a capability that is there: an object or true.
type Offered bool

// UnmarshalJSON takes any value.
func (o *Offered) UnmarshalJSON(b []byte) error {
	*o = Offered(!bytes.Equal(b, []byte("null")) && !bytes.Equal(b, []byte("false")))
	return nil
}

// AuthMethod is one way to log in.
type AuthMethod struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Session is the answer to session/new, load or resume (without a SessionID
// for the last two), and to whatever else answers with options.
type Session struct {
	SessionID     string          `json:"sessionId"`
	Models        *Models         `json:"models"` // nil: the agent has no set_model
	Modes         *Modes          `json:"modes"`  // nil: the agent has no modes
	ConfigOptions []ConfigOption  `json:"configOptions"`
	Meta          json.RawMessage `json:"_meta"`
}

// Models is what session/set_model may choose.
type Models struct {
	Current   string  `json:"currentModelId"`
	Available []Model `json:"availableModels"`
}

// Model is one of them.
type Model struct {
	ID          string `json:"modelId"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Modes is what session/set_mode may choose.
type Modes struct {
	Current   string `json:"currentModeId"`
	Available []Mode `json:"availableModes"`
}

// Mode is one of them.
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// ConfigOption is a setting of a session. The model is the one of category
// "model" in agents that have no set_model.
type ConfigOption struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Category string          `json:"category"` // mode, model, thought_level or an agent's own
	Type     string          `json:"type"`     // select, boolean
	Current  json.RawMessage `json:"currentValue"`
	Options  []OptionValue   `json:"options"`
}

// OptionValue is one value of a select. A group has Group and Options, and no
// Value.
type OptionValue struct {
	Value       string        `json:"value"`
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Group       string        `json:"group"`
	Options     []OptionValue `json:"options"`
}

// PromptResult is the answer to session/prompt.
type PromptResult struct {
	StopReason string          `json:"stopReason"` // end_turn, max_tokens, max_turn_requests, refusal, cancelled
	Usage      json.RawMessage `json:"usage"`
	Meta       json.RawMessage `json:"_meta"`
}

// Usage is the usual shape of PromptResult.Usage; for some agents of the
// session so far.
type Usage struct {
	Input       int64 `json:"inputTokens"`
	Output      int64 `json:"outputTokens"`
	Total       int64 `json:"totalTokens"`
	Thought     int64 `json:"thoughtTokens"`
	CachedRead  int64 `json:"cachedReadTokens"`
	CachedWrite int64 `json:"cachedWriteTokens"`
}

// Tokens reads the usage of an answer: usage, else _meta.quota.token_count
// (Gemini), in either spelling. ok is false when there is neither.
func (p PromptResult) Tokens() (u Usage, ok bool) {
	if raw := present(p.Usage); raw != nil {
		lenient(raw, &u)
		return u, true
	}
	raw := present(At(p.Meta, "quota", "token_count"))
	if raw == nil {
		return Usage{}, false
	}
	lenient(raw, &u)
	if u == (Usage{}) {
		var snake struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		}
		lenient(raw, &snake)
		u = Usage{Input: snake.Input, Output: snake.Output, Total: snake.Input + snake.Output}
	}
	return u, true
}

// Decode reads a result into one of this package's types. Fields of another
// type than the schema's stay zero; only text that is not JSON is an error.
func Decode[T Initialize | Session | PromptResult](raw json.RawMessage) (T, error) {
	var v T
	return v, lenient(raw, &v)
}

// lenient unmarshals what fits: encoding/json skips a value of the wrong type
// and goes on.
func lenient(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	err := json.Unmarshal(raw, v)
	if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
		return nil
	}
	return err
}
