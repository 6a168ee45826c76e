package opencode

import (
	"context"
	"slices"

	"rouse"
	"rouse/internal/config"
	"rouse/internal/store"
)

// lately is how many of the newest sessions are looked at for models.
const lately = 200

// listed are the providers as clients see them. An agent program knows its
// models itself, so beside the configured ones those are listed that sessions
// use: OpenCode's terminal calls a session's model invalid that no provider has
// (opencode 1.18.33).
func (h *Handler) listed(ctx context.Context) ([]*config.Provider, error) {
	cfg := h.deps.Config()
	out := slices.Clone(cfg.Providers)
	if !slices.ContainsFunc(out, func(p *config.Provider) bool { return p.Program != "" }) {
		return out, nil
	}
	page, err := h.deps.Store.Sessions(ctx, store.SessionFilter{Limit: lately})
	if err != nil {
		return nil, rouse.Wrap("opencode: providers", err)
	}
	for i := range page.Sessions {
		ref := page.Sessions[i].Model
		at := slices.IndexFunc(out, func(p *config.Provider) bool { return p.ID == ref.Provider && p.Program != "" })
		if at < 0 {
			continue
		}
		if _, known := out[at].Model(ref.Model); known {
			continue
		}
		if m, err := cfg.Resolve(ref); err == nil {
			more := *out[at]
			more.Models = append(slices.Clone(more.Models), m)
			out[at] = &more
		}
	}
	return out, nil
}
