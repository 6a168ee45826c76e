package config

// DrillProvider describes the simulated provider as it listens at baseURL,
// with the given models in order. It needs no key and costs a made-up price,
// so that costs can be seen.
func DrillProvider(baseURL string, models []string) *Provider {
	return drillProvider("drill", "Drill (simulated)", baseURL, models)
}

// DrillEngine is the provider id whose models are the modes of the drill
// engine: they choose the engine, not a provider's model.
const DrillEngine = "drill-engine"

// DrillEngineProvider describes the drill engine's modes as models, so that a
// prompt can name one.
func DrillEngineProvider(baseURL string, modes []string) *Provider {
	return drillProvider(DrillEngine, "Drill engine (simulated agent)", baseURL, modes)
}

func drillProvider(id, name, baseURL string, models []string) *Provider {
	p := &Provider{
		ID: id, Name: name, Source: "drill",
		NPM: npmCompatible, Wire: WireOpenAI, BaseURL: baseURL, Drill: true,
	}
	for _, id := range models {
		p.Models = append(p.Models, &Model{
			Provider: p, ID: id, APIID: id, Name: "Drill " + id, ToolCall: true, Temperature: true,
			Reasoning: id == "reason",
			Limit:     Limit{Context: 128_000, Output: 8192},
			Cost:      Cost{Input: 1, Output: 2},
		})
	}
	return p
}
