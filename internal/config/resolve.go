package config

import (
	"strings"

	"rouse"
)

// Resolve finds a model by its name in a session. An unknown or unusable one
// is an Invalid error (field "model") with the reason and the usable ones.
func (c *Config) Resolve(ref rouse.ModelRef) (*Model, error) {
	const op = "config: resolve model"
	refuse := func(reason string, usable []string) error {
		return rouse.FieldError(op, "model", "model %q: %s; %s", rouse.Clip(ref.String(), 200), reason, sentence(usable))
	}
	p, ok := c.Provider(ref.Provider)
	if !ok {
		return nil, refuse("no such provider is configured", c.Usable())
	}
	if p.Unusable != "" {
		return nil, refuse("the provider cannot be used: "+p.Unusable, c.Usable())
	}
	m, ok := p.Model(ref.Model)
	if !ok && p.Program != "" && ref.Model != "" {
		program, _ := c.Program(p.Program)
		return program.model(p, ref.Model), nil // the program knows its models; it says so if it does not
	}
	if !ok {
		return nil, refuse("the provider "+quote(p.ID)+" has no such model", modelNames(p))
	}
	if _, ok := m.Variants[ref.Variant]; ref.Variant != "" && ref.Variant != "default" && !ok {
		names := m.VariantNames()
		if len(names) == 0 {
			return nil, rouse.FieldError(op, "variant", "variant %q: the model %q has no variants", rouse.Clip(ref.Variant, 80), m.Ref())
		}
		return nil, rouse.FieldError(op, "variant", "variant %q: the model %q has %s", rouse.Clip(ref.Variant, 80), m.Ref(), strings.Join(names, ", "))
	}
	return m, nil
}

// Default is the configured model, as it is (a prompt that names none is
// accepted and fails visibly in its turn if that one cannot be used), else the
// first model of the first usable provider. No model at all is an Invalid
// error that says how to get one.
func (c *Config) Default() (rouse.ModelRef, error) {
	if !c.Model.IsZero() {
		return c.Model, nil
	}
	for _, p := range c.Providers {
		if p.Unusable == "" {
			return p.Models[0].Ref(), nil
		}
	}
	reason := "no provider is configured"
	if len(c.Providers) > 0 {
		p := c.Providers[0]
		reason = "the provider " + quote(p.ID) + " cannot be used: " + p.Unusable
	}
	return rouse.ModelRef{}, rouse.FieldError("config: default model", "model",
		"no model can be used: %s; run `rouse auth login PROVIDER`, set a key such as ANTHROPIC_API_KEY, or name a provider in rouse.jsonc", reason)
}

// Small is the model for titles and the like beside ref: the configured small
// one if it can be used, else the provider's own, else ref itself.
func (c *Config) Small(ref rouse.ModelRef) rouse.ModelRef {
	if !c.SmallModel.IsZero() {
		if m, err := c.Resolve(c.SmallModel); err == nil {
			return m.Ref()
		}
	}
	if p, ok := c.Provider(ref.Provider); ok && p.SmallModel != "" {
		if m, ok := p.Model(p.SmallModel); ok {
			return m.Ref()
		}
	}
	ref.Variant = ""
	return ref
}

// Provider finds a provider by its id, usable or not.
func (c *Config) Provider(id string) (*Provider, bool) {
	for _, p := range c.Providers {
		if p.ID == id {
			return p, true
		}
	}
	return nil, false
}

// Usable lists the models that can take work, as "provider/model".
func (c *Config) Usable() []string {
	var out []string
	for _, p := range c.Providers {
		if p.Unusable == "" {
			out = append(out, modelNames(p)...)
		}
	}
	return out
}

func modelNames(p *Provider) []string {
	out := make([]string, len(p.Models))
	for i, m := range p.Models {
		out[i] = m.Ref().String()
	}
	return out
}

// sentence lists names for a message, at most twenty of them.
func sentence(names []string) string {
	const most = 20
	switch {
	case len(names) == 0:
		return "no model can be used now"
	case len(names) > most:
		return "usable: " + strings.Join(names[:most], ", ") + " and " + itoa(len(names)-most) + " more"
	}
	return "usable: " + strings.Join(names, ", ")
}
