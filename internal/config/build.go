package config

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"rouse"
)

// builder turns what the files say into providers.
type builder struct {
	file     *file
	where    map[string]string
	getenv   func(string) string
	accounts *Accounts
	// stored are the providers that have an account.
	stored    map[string]bool
	catalogue catalogue
	warnings  []string
}

// warn records a finding about a key, with its place where one is known.
func (b *builder) warn(path, text string) {
	if at := b.where[path]; at != "" {
		text = at + ": " + text
	}
	b.warnings = append(b.warnings, text)
}

// providers gives the configured ones and then the known ones that have a key.
func (b *builder) providers() []*Provider {
	var out []*Provider
	for id, pf := range b.file.Provider.all() {
		if b.wanted(id) {
			out = append(out, b.provider(id, pf, "config"))
		}
	}
	add := func(id, source string) {
		if b.wanted(id) && !slices.ContainsFunc(out, func(p *Provider) bool { return p.ID == id }) {
			out = append(out, b.provider(id, &providerFile{}, source))
		}
	}
	for _, id := range slices.Sorted(keysOf(b.stored)) {
		add(id, "account")
	}
	for _, k := range knownProviders {
		if slices.ContainsFunc(k.Env, func(name string) bool { return b.getenv(name) != "" }) {
			add(k.ID, "env")
		}
	}
	return out
}

// wanted applies enabled_providers and disabled_providers.
func (b *builder) wanted(id string) bool {
	if slices.Contains(b.file.Disabled, id) {
		return false
	}
	return len(b.file.Enabled) == 0 || slices.Contains(b.file.Enabled, id)
}

func (b *builder) provider(id string, pf *providerFile, source string) *Provider {
	k, _ := b.catalogue.find(id)
	p := &Provider{
		ID: id, Source: source,
		Name:    cmp.Or(pf.Name, k.Name, id),
		Env:     slices.Concat(pf.Env, k.Env),
		NPM:     cmp.Or(pf.NPM, k.NPM, npmCompatible),
		BaseURL: strings.TrimRight(cmp.Or(pf.Options.BaseURL, pf.API, k.BaseURL), "/"),
		Headers: pf.Options.Headers, Extra: pf.Options.Rest,
		SmallModel:        k.small,
		StreamIdleTimeout: cmp.Or(pf.Options.Idle.d, pf.Options.Chunk.d),
	}
	wire, ok := wireOf(p.NPM)
	p.Wire = wire
	p.key = b.key(p, pf.Options.APIKey)
	b.models(p, pf, k)
	path := join("provider", id)
	if pf.Options.Timeout.d > 0 {
		b.warn(path+".options.timeout", "options.timeout bounds a whole answer, however well it comes, and is not applied; stream_idle_timeout_ms bounds silence")
	}
	switch {
	case !ok:
		p.Unusable = "no wire for the package " + quote(p.NPM) + "; use \"@ai-sdk/openai-compatible\" or \"@ai-sdk/anthropic\" with a baseURL"
		b.warn(join(path, "npm"), "the provider "+quote(id)+" cannot be used: "+p.Unusable)
	case p.BaseURL == "":
		p.Unusable = "it has no address: set options.baseURL"
		b.warn(path, "the provider "+quote(id)+" cannot be used: "+p.Unusable)
	case !isHTTP(p.BaseURL):
		p.Unusable = "its baseURL is not an http or https address"
		b.warn(path+".options.baseURL", "the provider "+quote(id)+" cannot be used: "+p.Unusable)
	case !b.hasKey(p, pf) && (k.BaseURL == p.BaseURL || b.declared(path+".options.apiKey")):
		p.NoKey = true
		p.Unusable = "no key was found: run `rouse auth login " + id + "`"
		if len(p.Env) > 0 {
			p.Unusable += " or set " + p.Env[0]
		}
	case len(p.Models) == 0:
		p.Unusable = "it has no models: name them under provider." + id + ".models"
		b.warn(path, "the provider "+quote(id)+" cannot be used: "+p.Unusable)
	}
	return p
}

func (b *builder) declared(path string) bool { return b.where[path] != "" }

func (b *builder) hasKey(p *Provider, pf *providerFile) bool {
	if pf.Options.APIKey != "" || b.stored[p.ID] {
		return true
	}
	for name := range p.Headers {
		if strings.EqualFold(name, "authorization") || strings.EqualFold(name, "x-api-key") {
			return true
		}
	}
	return slices.ContainsFunc(p.Env, func(name string) bool { return b.getenv(name) != "" })
}

// key closes over the credential, so that no formatting of a Provider can
// ever show it.
func (b *builder) key(p *Provider, configured string) func(context.Context) (string, error) {
	id, env, getenv, accounts := p.ID, p.Env, b.getenv, b.accounts
	return func(ctx context.Context) (string, error) {
		if configured != "" {
			return configured, nil
		}
		if accounts != nil {
			if key, err := accounts.Get(ctx, id); err == nil || rouse.KindOf(err) != rouse.NotFound {
				return key, err
			}
		}
		for _, name := range env {
			if val := getenv(name); val != "" {
				return val, nil
			}
		}
		return "", nil
	}
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// models lists the configured models, then those of the catalogue, its own
// default first.
func (b *builder) models(p *Provider, pf *providerFile, k Known) {
	keep := func(id string) bool {
		return (len(pf.Whitelist) == 0 || slices.Contains(pf.Whitelist, id)) && !slices.Contains(pf.Blacklist, id)
	}
	for id, mf := range pf.Models.all() {
		if keep(id) {
			p.Models = append(p.Models, b.model(p, id, mf, k))
		}
	}
	listed := slices.Clone(k.models)
	if i := slices.IndexFunc(listed, func(m catalogueModel) bool { return m.ID == k.large }); i > 0 {
		first := listed[i]
		listed = slices.Insert(slices.Delete(listed, i, i+1), 0, first)
	}
	for _, m := range listed {
		if _, named := pf.Models.vals[m.ID]; !named && keep(m.ID) {
			p.Models = append(p.Models, b.model(p, m.ID, &modelFile{}, k))
		}
	}
}

func (b *builder) model(p *Provider, id string, mf *modelFile, k Known) *Model {
	m := &Model{Provider: p, ID: id, APIID: cmp.Or(mf.ID, id), ToolCall: true, Temperature: true}
	apiID := m.APIID
	if i := slices.IndexFunc(k.models, func(c catalogueModel) bool { return c.ID == apiID }); i >= 0 {
		m.fromCatalogue(&k.models[i])
	}
	m.Name = cmp.Or(mf.Name, m.Name, id)
	m.Family, m.Released = mf.Family, mf.ReleaseDate
	set(&m.Reasoning, mf.Reasoning)
	set(&m.ToolCall, mf.ToolCall)
	set(&m.Attachment, mf.Attachment)
	set(&m.Temperature, mf.Temperature)
	set(&m.Limit.Context, mf.Limit.Context)
	set(&m.Limit.Output, mf.Limit.Output)
	set(&m.Cost.Input, mf.Cost.Input)
	set(&m.Cost.Output, mf.Cost.Output)
	set(&m.Cost.CacheRead, mf.Cost.CacheRead)
	set(&m.Cost.CacheWrite, mf.Cost.CacheWrite)
	m.Headers, m.Options = mf.Headers, mf.Options
	m.variants(mf.Variants)
	return m
}

func set[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

// variants takes the configured ones on top of the usual ones of a model that
// reasons; {"disabled": true} removes one, as in OpenCode.
func (m *Model) variants(configured map[string]json.RawMessage) {
	if m.Variants == nil && m.Reasoning {
		m.effortVariants([]string{"low", "medium", "high"})
	}
	for name, raw := range configured {
		var v map[string]json.RawMessage
		if json.Unmarshal(raw, &v) != nil {
			continue
		}
		if string(v["disabled"]) == "true" {
			delete(m.Variants, name)
			continue
		}
		delete(v, "disabled")
		if m.Variants == nil {
			m.Variants = map[string]map[string]json.RawMessage{}
		}
		m.Variants[name] = v
	}
}
