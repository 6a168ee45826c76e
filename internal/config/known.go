package config

import (
	"slices"
	"strings"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// Known is a provider that needs nothing but a key.
type Known struct {
	ID   string
	Name string
	Env  []string // usual variables of its key, first one first
	// NPM, BaseURL as in Provider.
	NPM, BaseURL string
	// catalogue is the id under which catwalk lists its models.
	catalogue string
	models    []catwalk.Model
	large     string // the catalogue's choice of a default model
	small     string // and of a small one
}

const (
	npmCompatible = "@ai-sdk/openai-compatible"
	npmAnthropic  = "@ai-sdk/anthropic"
)

// knownProviders are connected as soon as a key is found. Names and variables
// are OpenCode's (opencode 1.18.33) where it knows the vendor; addresses are
// the vendors' own.
var knownProviders = []Known{
	{ID: "anthropic", Name: "Anthropic", Env: []string{"ANTHROPIC_API_KEY"}, NPM: npmAnthropic, BaseURL: "https://api.anthropic.com/v1"},
	{ID: "openai", Name: "OpenAI", Env: []string{"OPENAI_API_KEY"}, NPM: "@ai-sdk/openai", BaseURL: "https://api.openai.com/v1"},
	{ID: "openrouter", Name: "OpenRouter", Env: []string{"OPENROUTER_API_KEY"}, NPM: "@openrouter/ai-sdk-provider", BaseURL: "https://openrouter.ai/api/v1"},
	{ID: "google", Name: "Google Gemini", Env: []string{"GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"}, NPM: npmCompatible, BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", catalogue: "gemini"},
	{ID: "groq", Name: "Groq", Env: []string{"GROQ_API_KEY"}, NPM: "@ai-sdk/groq", BaseURL: "https://api.groq.com/openai/v1"},
	{ID: "deepseek", Name: "DeepSeek", Env: []string{"DEEPSEEK_API_KEY"}, NPM: npmCompatible, BaseURL: "https://api.deepseek.com/v1"},
	{ID: "xai", Name: "xAI", Env: []string{"XAI_API_KEY"}, NPM: "@ai-sdk/xai", BaseURL: "https://api.x.ai/v1"},
	{ID: "zai", Name: "Z.AI", Env: []string{"ZAI_API_KEY", "ZHIPU_API_KEY"}, NPM: npmCompatible, BaseURL: "https://api.z.ai/api/paas/v4"},
	{ID: "zai-coding-plan", Name: "Z.AI Coding Plan", Env: []string{"ZAI_CODING_API_KEY"}, NPM: npmCompatible, BaseURL: "https://api.z.ai/api/coding/paas/v4", catalogue: "zai"},
	{ID: "moonshotai", Name: "Moonshot AI", Env: []string{"MOONSHOT_API_KEY"}, NPM: npmCompatible, BaseURL: "https://api.moonshot.ai/v1", catalogue: "moonshot"},
	{ID: "cerebras", Name: "Cerebras", Env: []string{"CEREBRAS_API_KEY"}, NPM: "@ai-sdk/cerebras", BaseURL: "https://api.cerebras.ai/v1"},
	{ID: "minimax", Name: "MiniMax", Env: []string{"MINIMAX_API_KEY"}, NPM: npmAnthropic, BaseURL: "https://api.minimax.io/anthropic/v1"},
	{ID: "kimi-for-coding", Name: "Kimi For Coding", Env: []string{"KIMI_API_KEY", "KIMI_CODING_API_KEY"}, NPM: npmAnthropic, BaseURL: "https://api.kimi.com/coding/v1", catalogue: "kimi-coding"},
}

// KnownProviders lists the providers that need nothing but a key, without
// their models.
func KnownProviders() []Known {
	out := make([]Known, len(knownProviders))
	copy(out, knownProviders)
	return out
}

// catalogue looks up known providers. The embedded lists are decoded at the
// first look-up that needs models (tens of milliseconds, a few MB) and freed
// with the loader.
type catalogue struct{ all []catwalk.Provider }

func (c *catalogue) list(id string) (catwalk.Provider, bool) {
	if c.all == nil {
		c.all = embedded.GetAll()
	}
	for _, p := range c.all {
		if string(p.ID) == id {
			return p, true
		}
	}
	return catwalk.Provider{}, false
}

// find gives a known provider with its models: one of the table, else any of
// the catalogue whose wire is ours and whose address is fixed.
func (c *catalogue) find(id string) (Known, bool) {
	k, tabled := tableEntry(id)
	if !tabled && !slices.Contains(catwalk.KnownProviders(), catwalk.InferenceProvider(id)) {
		return Known{}, false // without decoding the lists
	}
	name := k.catalogue
	if name == "" {
		name = id
	}
	list, listed := c.list(name)
	if !listed {
		return k, tabled
	}
	if !tabled {
		var ok bool
		if k, ok = fromCatalogue(list); !ok {
			return Known{}, false
		}
	}
	k.models, k.large, k.small = list.Models, list.DefaultLargeModelID, list.DefaultSmallModelID
	return k, true
}

// tableEntry finds an entry of the table by its id or by the catalogue's.
func tableEntry(id string) (Known, bool) {
	for _, k := range knownProviders {
		if k.ID == id {
			return k, true
		}
	}
	for _, k := range knownProviders {
		if k.catalogue == id {
			k.ID = id
			return k, true
		}
	}
	return Known{}, false
}

func fromCatalogue(p catwalk.Provider) (Known, bool) {
	k := Known{ID: string(p.ID), Name: p.Name, BaseURL: strings.TrimRight(p.APIEndpoint, "/")}
	switch p.Type {
	case catwalk.TypeOpenAI, catwalk.TypeOpenAICompat, catwalk.TypeOpenRouter, catwalk.TypeVercel:
		k.NPM = npmCompatible
	case catwalk.TypeAnthropic:
		// The catalogue's address is meant for a client that adds /v1 itself.
		k.NPM, k.BaseURL = npmAnthropic, k.BaseURL+"/v1"
	default:
		return Known{}, false
	}
	if strings.Contains(k.BaseURL, "$") || k.BaseURL == "" {
		return Known{}, false
	}
	if name, ok := strings.CutPrefix(p.APIKey, "$"); ok {
		k.Env = []string{name}
	}
	return k, true
}
