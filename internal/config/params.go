package config

import (
	"encoding/json"
	"iter"
	"maps"
	"strconv"

	"charm.land/catwalk/pkg/catwalk"
)

type catalogueModel = catwalk.Model

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// fromCatalogue takes what the catalogue knows. Its "in cached" price is that
// of writing to the cache and its "out cached" that of reading (catwalk 0.52).
func (m *Model) fromCatalogue(c *catalogueModel) {
	m.Name = c.Name
	m.Limit = Limit{Context: c.ContextWindow, Output: c.DefaultMaxTokens}
	m.Cost = Cost{Input: c.CostPer1MIn, Output: c.CostPer1MOut, CacheWrite: c.CostPer1MInCached, CacheRead: c.CostPer1MOutCached}
	m.Reasoning, m.Attachment = c.CanReason, c.SupportsImages
	if c.CanReason && len(c.ReasoningLevels) > 0 {
		m.effortVariants(c.ReasoningLevels)
	}
}

// thinkingBudget is how many tokens a level of effort may think, for models
// on the Anthropic wire.
var thinkingBudget = map[string]int{"minimal": 1024, "low": 4000, "medium": 10000, "high": 16000, "xhigh": 24000, "max": 31999}

// effortVariants gives the model one variant for each level of effort.
func (m *Model) effortVariants(levels []string) {
	m.Variants = map[string]map[string]json.RawMessage{}
	for _, level := range levels {
		v := map[string]json.RawMessage{"reasoningEffort": json.RawMessage(strconv.Quote(level))}
		if m.Provider.Wire == WireAnthropic {
			budget, ok := thinkingBudget[level]
			if !ok {
				continue
			}
			v = map[string]json.RawMessage{"thinking": json.RawMessage(`{"type":"enabled","budgetTokens":` + strconv.Itoa(budget) + `}`)}
		}
		m.Variants[level] = v
	}
}

// optionNames translates the option names of OpenCode's configuration (those
// of the AI SDK) into the fields of the wires. What is not in the table is
// sent under its own name.
var optionNames = map[string]string{
	"reasoningEffort":     "reasoning_effort",
	"textVerbosity":       "verbosity",
	"parallelToolCalls":   "parallel_tool_calls",
	"serviceTier":         "service_tier",
	"maxTokens":           "max_tokens",
	"maxOutputTokens":     "max_tokens",
	"maxCompletionTokens": "max_completion_tokens",
	"topP":                "top_p",
	"topK":                "top_k",
	"frequencyPenalty":    "frequency_penalty",
	"presencePenalty":     "presence_penalty",
	"logitBias":           "logit_bias",
	"promptCacheKey":      "prompt_cache_key",
	"safetyIdentifier":    "safety_identifier",
	"budgetTokens":        "budget_tokens",
}

// clientOptions configure OpenCode's client, not the request.
var clientOptions = map[string]bool{
	"setCacheKey": true, "includeUsage": true, "name": true, "fetch": true, "compatibility": true,
	"organization": true, "project": true, "enterpriseUrl": true, "headerTimeout": true,
}

// Params gives the fields that the configuration adds to a request's body, by
// their names on the wire: the provider's options, then the model's, then the
// variant's. An unknown variant adds nothing; Resolve refuses it earlier.
func (m *Model) Params(variant string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, from := range []map[string]json.RawMessage{m.Provider.Extra, m.Options, m.Variants[variant]} {
		maps.Copy(out, onTheWire(from))
	}
	return out
}

// onTheWire gives options by their names on the wire; nil for none.
func onTheWire(options map[string]json.RawMessage) map[string]json.RawMessage {
	if len(options) == 0 {
		return nil
	}
	out := map[string]json.RawMessage{}
	for name, raw := range options {
		if clientOptions[name] {
			continue
		}
		if wire, ok := optionNames[name]; ok {
			name = wire
		}
		if name == "thinking" {
			raw = thinking(raw)
		}
		out[name] = raw
	}
	return out
}

// thinking renames what is inside Anthropic's thinking option.
func thinking(raw json.RawMessage) json.RawMessage {
	var v map[string]json.RawMessage
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	if n, ok := v["budgetTokens"]; ok {
		delete(v, "budgetTokens")
		v["budget_tokens"] = n
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
