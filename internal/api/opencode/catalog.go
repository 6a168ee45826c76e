package opencode

import (
	"net/http"
	"time"

	"rouse"
	"rouse/internal/config"
)

type wireProvider struct {
	ID      string                      `json:"id"`
	Name    string                      `json:"name"`
	Source  string                      `json:"source"`
	Env     []string                    `json:"env"`
	Options fact                        `json:"options"`
	Models  map[string]wireCatalogEntry `json:"models"`
}

// wireCatalogEntry is a model as GET /provider lists it.
type wireCatalogEntry struct {
	ID           string           `json:"id"`
	ProviderID   string           `json:"providerID"`
	API          wireModelAPI     `json:"api"`
	Name         string           `json:"name"`
	Family       string           `json:"family"`
	Capabilities wireCapabilities `json:"capabilities"`
	Cost         wireCost         `json:"cost"`
	Limit        wireLimit        `json:"limit"`
	Status       string           `json:"status"`
	Options      fact             `json:"options"`
	Headers      fact             `json:"headers"`
	ReleaseDate  string           `json:"release_date"`
	Variants     map[string]fact  `json:"variants"`
}

type wireModelAPI struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	NPM string `json:"npm"`
}

type wireCapabilities struct {
	Temperature bool      `json:"temperature"`
	Reasoning   bool      `json:"reasoning"`
	Attachment  bool      `json:"attachment"`
	ToolCall    bool      `json:"toolcall"`
	Input       wireMedia `json:"input"`
	Output      wireMedia `json:"output"`
	Interleaved bool      `json:"interleaved"`
}

type wireMedia struct {
	Text  bool `json:"text"`
	Audio bool `json:"audio"`
	Image bool `json:"image"`
	Video bool `json:"video"`
	PDF   bool `json:"pdf"`
}

type wireCost struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	Cache  struct {
		Read  float64 `json:"read"`
		Write float64 `json:"write"`
	} `json:"cache"`
}

type wireLimit struct {
	Context int64 `json:"context"`
	Output  int64 `json:"output"`
}

// renderProvider never shows keys or headers: options holds the address only.
func renderProvider(p *config.Provider) wireProvider {
	w := wireProvider{ID: p.ID, Name: p.Name, Source: "config", Env: notNil(p.Env), Options: fact{}, Models: map[string]wireCatalogEntry{}}
	switch p.Source {
	case "env":
		w.Source = "env"
	case "account":
		w.Source = "api" // opencode 1.18.33's word for a key that was logged in
	}
	if p.BaseURL != "" {
		w.Options["baseURL"] = p.BaseURL
	}
	for _, m := range p.Models {
		w.Models[m.ID] = renderCatalogEntry(p, m)
	}
	return w
}

func renderCatalogEntry(p *config.Provider, m *config.Model) wireCatalogEntry {
	w := wireCatalogEntry{
		ID: m.ID, ProviderID: p.ID, Name: m.Name, Family: m.Family, Status: "active", ReleaseDate: m.Released,
		API: wireModelAPI{ID: m.APIID, NPM: p.NPM},
		Capabilities: wireCapabilities{Temperature: m.Temperature, Reasoning: m.Reasoning, Attachment: m.Attachment,
			ToolCall: m.ToolCall, Input: wireMedia{Text: true, Image: m.Attachment}, Output: wireMedia{Text: true}},
		Limit:   wireLimit{Context: m.Limit.Context, Output: m.Limit.Output},
		Options: fact{}, Headers: fact{}, Variants: map[string]fact{},
	}
	w.Cost.Input, w.Cost.Output, w.Cost.Cache.Read, w.Cost.Cache.Write = m.Cost.Input, m.Cost.Output, m.Cost.CacheRead, m.Cost.CacheWrite
	for _, name := range m.VariantNames() {
		w.Variants[name] = fact{}
	}
	return w
}

// configProviders lists the providers that can take work.
func (h *Handler) configProviders(w http.ResponseWriter, r *http.Request) {
	listed, err := h.listed(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	list, defaults := []wireProvider{}, map[string]string{}
	for _, p := range listed {
		if p.Unusable == "" {
			list = append(list, renderProvider(p))
			defaults[p.ID] = p.Models[0].ID
		}
	}
	h.ok(w, fact{"providers": list, "default": defaults})
}

// wireQuota marks a provider, or one model or family of it, that stands behind
// a usage limit.
type wireQuota struct {
	ProviderID string      `json:"providerID"`
	ModelID    *string     `json:"modelID"` // null: the whole account
	Limit      *string     `json:"limit"`
	ResetAt    *int64      `json:"resetAt"` // ms; null when the provider does not say
	Confidence *string     `json:"confidence"`
	Class      rouse.Class `json:"class"`
	State      string      `json:"state"` // open, half_open
}

func renderQuota(walls []rouse.Wall) []wireQuota {
	out := []wireQuota{}
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	for i := range walls {
		w := &walls[i]
		q := wireQuota{ProviderID: w.Provider, ModelID: text(w.Model), Limit: text(w.LimitName), Confidence: text(w.Confidence), Class: w.Class, State: w.StateAt(time.Now())}
		if at := millis(w.ResetAt); at != 0 {
			q.ResetAt = &at
		}
		out = append(out, q)
	}
	return out
}

// providers lists the configured providers and, without their models, those
// that need nothing but a key. unusable says why one takes no work.
// quota marks what stands behind a usage limit.
func (h *Handler) providers(w http.ResponseWriter, r *http.Request) {
	walls, err := h.deps.Store.Walls(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	listed, err := h.listed(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	all, defaults, connected, unusable := []wireProvider{}, map[string]string{}, []string{}, map[string]string{}
	seen := map[string]bool{}
	for _, p := range listed {
		seen[p.ID] = true
		all = append(all, renderProvider(p))
		if len(p.Models) > 0 {
			defaults[p.ID] = p.Models[0].ID
		}
		if p.Unusable == "" {
			connected = append(connected, p.ID)
		} else {
			unusable[p.ID] = p.Unusable
		}
	}
	for _, k := range config.KnownProviders() {
		if !seen[k.ID] {
			all = append(all, wireProvider{ID: k.ID, Name: k.Name, Source: "custom", Env: notNil(k.Env), Options: fact{}, Models: map[string]wireCatalogEntry{}})
		}
	}
	h.ok(w, fact{"all": all, "default": defaults, "connected": connected, "unusable": unusable, "quota": renderQuota(walls)})
}

type wireAgent struct {
	Name        string                 `json:"name"`
	Description string                 `json:"description,omitempty"`
	Mode        string                 `json:"mode"`
	Native      bool                   `json:"native"`
	Hidden      bool                   `json:"hidden,omitempty"`
	Prompt      string                 `json:"prompt,omitempty"`
	Model       *wireModel             `json:"model,omitempty"`
	Temperature *float64               `json:"temperature,omitempty"`
	TopP        *float64               `json:"topP,omitempty"`
	Steps       int                    `json:"steps,omitempty"`
	Color       string                 `json:"color,omitempty"`
	Permission  []rouse.PermissionRule `json:"permission"`
	Options     fact                   `json:"options"`
}

func (h *Handler) agents(w http.ResponseWriter, _ *http.Request) {
	list := []wireAgent{}
	for _, a := range h.deps.Config().Agents {
		out := wireAgent{Name: a.Name, Description: a.Description, Mode: a.Mode, Native: a.Native, Hidden: a.Hidden, Prompt: a.Prompt,
			Temperature: a.Temperature, TopP: a.TopP, Steps: a.Steps, Color: a.Color, Permission: notNil(a.Rules), Options: fact{}}
		if !a.Model.IsZero() {
			out.Model = &wireModel{ProviderID: a.Model.Provider, ModelID: a.Model.Model, Variant: a.Model.Variant}
		}
		list = append(list, out)
	}
	h.ok(w, list)
}

// config shows the configuration as far as OpenCode's clients read it, without
// keys and headers.
func (h *Handler) config(w http.ResponseWriter, _ *http.Request) {
	c := h.deps.Config()
	provider := map[string]fact{}
	for _, p := range c.Providers {
		models := map[string]fact{}
		for _, m := range p.Models {
			models[m.ID] = fact{"name": m.Name, "reasoning": m.Reasoning, "tool_call": m.ToolCall,
				"cost":  fact{"input": m.Cost.Input, "output": m.Cost.Output},
				"limit": fact{"context": m.Limit.Context, "output": m.Limit.Output}}
		}
		provider[p.ID] = fact{"name": p.Name, "npm": p.NPM, "options": fact{"baseURL": p.BaseURL}, "models": models}
	}
	out := fact{"$schema": "https://opencode.ai/config.json", "share": "disabled", "autoupdate": false, "username": "user",
		"command": fact{}, "plugin": []any{}, "mode": fact{}, "agent": fact{}, "provider": provider}
	if ref, err := c.Default(); err == nil {
		out["model"] = ref.String()
	}
	if !c.SmallModel.IsZero() {
		out["small_model"] = c.SmallModel.String()
	}
	h.ok(w, out)
}
