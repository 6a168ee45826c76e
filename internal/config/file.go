package config

import "encoding/json"

// file is the shape of a configuration file. All files are decoded into one
// value, one after the other, so that what is not named in a later file keeps
// what an earlier one said.
type file struct {
	Schema    string                `json:"$schema"`
	Server    Server                `json:"server"`
	Provider  ordered[providerFile] `json:"provider"`
	Enabled   []string              `json:"enabled_providers"`
	Disabled  []string              `json:"disabled_providers"`
	Model     string                `json:"model"`
	Small     string                `json:"small_model"`
	Agent     ordered[agentFile]    `json:"agent"`
	Rules     rules                 `json:"permission"`
	ACP       ordered[programFile]  `json:"acp"`
	Limits    Limits                `json:"limits"`
	Retention Retention             `json:"retention"`
	Log       Log                   `json:"log"`
}

// openCodeFile is what is read from an OpenCode configuration (opencode
// 1.18.33); everything else in it is OpenCode's own business.
type openCodeFile struct {
	Provider *ordered[providerFile] `json:"provider"`
	Enabled  *[]string              `json:"enabled_providers"`
	Disabled *[]string              `json:"disabled_providers"`
	Model    *string                `json:"model"`
	Small    *string                `json:"small_model"`
	Agent    *ordered[agentFile]    `json:"agent"`
	Rules    *rules                 `json:"permission"`
}

// view gives the part of f that an OpenCode file may write to.
func (f *file) view() *openCodeFile {
	return &openCodeFile{&f.Provider, &f.Enabled, &f.Disabled, &f.Model, &f.Small, &f.Agent, &f.Rules}
}

// providerFile is OpenCode's shape of a provider, read as it is.
type providerFile struct {
	ID        string             `json:"id"`
	Name      string             `json:"name"`
	NPM       string             `json:"npm"`
	API       string             `json:"api"`
	Env       []string           `json:"env"`
	Options   providerOptions    `json:"options"`
	Models    ordered[modelFile] `json:"models"`
	Whitelist []string           `json:"whitelist"`
	Blacklist []string           `json:"blacklist"`
}

type providerOptions struct {
	BaseURL string            `json:"baseURL"`
	APIKey  string            `json:"apiKey"`
	Headers map[string]string `json:"headers"`
	Timeout millis            `json:"timeout"`
	Idle    millis            `json:"stream_idle_timeout_ms"`
	Chunk   millis            `json:"chunkTimeout"` // OpenCode's name for the same
	// Rest is sent to the provider with each request.
	Rest map[string]json.RawMessage `config:"rest"`
}

type modelFile struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Family      string   `json:"family"`
	ReleaseDate string   `json:"release_date"`
	Status      string   `json:"status"`
	Attachment  *bool    `json:"attachment"`
	Reasoning   *bool    `json:"reasoning"`
	Temperature *bool    `json:"temperature"`
	ToolCall    *bool    `json:"tool_call"`
	Limit       limits   `json:"limit"`
	Cost        costFile `json:"cost"`

	Options  map[string]json.RawMessage `json:"options"`
	Headers  map[string]string          `json:"headers"`
	Variants map[string]json.RawMessage `json:"variants"`

	Modalities   json.RawMessage `json:"modalities"`
	Interleaved  json.RawMessage `json:"interleaved"`
	Experimental json.RawMessage `json:"experimental"`
	Provider     struct {
		NPM string `json:"npm"`
		API string `json:"api"`
	} `json:"provider"`
}

type limits struct {
	Context *int64 `json:"context"`
	Input   *int64 `json:"input"`
	Output  *int64 `json:"output"`
}

type costFile struct {
	Input      *float64        `json:"input"`
	Output     *float64        `json:"output"`
	CacheRead  *float64        `json:"cache_read"`
	CacheWrite *float64        `json:"cache_write"`
	Over200K   json.RawMessage `json:"context_over_200k"`
	Tiers      json.RawMessage `json:"tiers"`
}

type agentFile struct {
	Model       string                     `json:"model"`
	Variant     string                     `json:"variant"`
	Description string                     `json:"description"`
	Mode        string                     `json:"mode"`
	Prompt      string                     `json:"prompt"`
	Temperature *float64                   `json:"temperature"`
	TopP        *float64                   `json:"top_p"`
	Steps       *int                       `json:"steps"`
	MaxSteps    *int                       `json:"maxSteps"` // OpenCode's older name
	Tools       map[string]bool            `json:"tools"`
	Rules       rules                      `json:"permission"`
	Options     map[string]json.RawMessage `json:"options"`
	Hidden      *bool                      `json:"hidden"`
	Disable     *bool                      `json:"disable"`
	Color       string                     `json:"color"`
}
