package config

// DrillProvider describes the simulated provider as it listens at baseURL,
// with the given models in order. It needs no key and costs a made-up price,
// so that costs can be seen.
func DrillProvider(baseURL string, models []string) *Provider {
	p := &Provider{
		ID: "drill", Name: "Drill (simulated)", Source: "drill",
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
