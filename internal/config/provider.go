package config

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"rouse"
)

// The wires that Rouse speaks to model providers.
const (
	WireOpenAI    = "openai"    // chat completions
	WireAnthropic = "anthropic" // messages
)

// Provider is a source of models, ready to be called.
type Provider struct {
	ID   string
	Name string // for people; the id where none was given
	// Source says where it comes from: "config", "env" (a key in its usual
	// variable), "account" (a key from `rouse auth login`), "drill", or "acp":
	// an agent program.
	Source string
	// Env names the variables that usually hold its key.
	Env []string
	// NPM is the package name by which OpenCode's configuration chooses a wire.
	NPM string
	// Wire is WireOpenAI or WireAnthropic; empty where neither fits, and then
	// Unusable says so.
	Wire string
	// BaseURL is what the wire's path is appended to ("/chat/completions",
	// "/messages"); it has no slash at its end.
	BaseURL string
	Headers map[string]string
	// StreamIdleTimeout ends an attempt after this long without a byte; 0 is
	// none (the default): silence is the watch's to judge.
	StreamIdleTimeout time.Duration
	// Extra holds the provider options that Rouse does not know by name, as
	// configured; see Model.Params.
	Extra map[string]json.RawMessage
	// Models in order; the first is the provider's default.
	Models []*Model
	// SmallModel is the provider's own choice for titles; may be empty.
	SmallModel string
	// Drill marks the simulated provider.
	Drill bool
	// Program is the agent program that stands behind it; it takes models that
	// are not listed, too. "" for a provider of models.
	Program string
	// Unusable says in a sentence why it cannot take work; empty when it can.
	Unusable string
	// NoKey: Unusable, and only for want of a key.
	NoKey bool

	key func(context.Context) (string, error)
}

// Key gives the credential for a call: the configured one, else that of the
// account store, else that of the usual variable. "" means that the provider
// is called without one. It is read at each call, so that a new login counts.
func (p *Provider) Key(ctx context.Context) (string, error) {
	if p.key == nil {
		return "", nil
	}
	return p.key(ctx)
}

// Model gives a model of the provider by its id.
func (p *Provider) Model(id string) (*Model, bool) {
	i := slices.IndexFunc(p.Models, func(m *Model) bool { return m.ID == id })
	if i < 0 {
		return nil, false
	}
	return p.Models[i], true
}

// Model is one model of one provider.
type Model struct {
	Provider *Provider
	ID       string // as sessions name it
	// APIID is what the provider is asked for; usually the same as ID.
	APIID  string
	Name   string
	Family string
	// Released is "2026-08-27" or empty.
	Released string
	Limit    Limit
	Cost     Cost
	// Reasoning, ToolCall, Attachment, Temperature say what the model can do.
	// Defaults: tool calls and temperature yes, the others no.
	Reasoning, ToolCall, Attachment, Temperature bool
	Headers                                      map[string]string
	// Options and Variants are as configured; see Params.
	Options  map[string]json.RawMessage
	Variants map[string]map[string]json.RawMessage
}

// Limit is in tokens; 0 is unknown.
type Limit struct{ Context, Output int64 }

// Cost is in US dollars for a million tokens; 0 is free or unknown.
type Cost struct{ Input, Output, CacheRead, CacheWrite float64 }

// Ref is the model's name in a session.
func (m *Model) Ref() rouse.ModelRef { return rouse.ModelRef{Provider: m.Provider.ID, Model: m.ID} }

// VariantNames lists the variants, sorted.
func (m *Model) VariantNames() []string {
	names := make([]string, 0, len(m.Variants))
	for name := range m.Variants {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// wireOf chooses the wire of an OpenCode package name. ok is false where no
// wire of ours speaks to that vendor.
func wireOf(npm string) (wire string, ok bool) {
	switch {
	case npm == "@ai-sdk/anthropic":
		return WireAnthropic, true
	case strings.HasPrefix(npm, "@openrouter/"):
		return WireOpenAI, true
	}
	switch strings.TrimPrefix(npm, "@ai-sdk/") {
	case "openai-compatible", "openai", "groq", "xai", "deepseek", "mistral", "togetherai", "cerebras",
		"perplexity", "deepinfra", "fireworks", "alibaba", "moonshotai", "huggingface", "baseten":
		return WireOpenAI, true
	}
	return "", false
}
