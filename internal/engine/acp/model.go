package acp

import (
	"context"
	"encoding/json"
	"slices"

	"rouse"
	"rouse/internal/diagnostics"
	"rouse/internal/engine"
	"rouse/internal/engine/acp/wire"
)

// modelOption is the setting by which a model is chosen.
func modelOption(s wire.Session) (wire.ConfigOption, bool) {
	for _, o := range s.ConfigOptions {
		if o.Category == "model" {
			return o, true
		}
	}
	return wire.ConfigOption{}, false
}

// modelName is a model's id as a message may show it; "" for one that holds what
// must not be shown.
func modelName(id string) string {
	if len(id) > 200 || diagnostics.Sanitize(id) != id {
		return ""
	}
	return id
}

// currentModel is the model that the session says it has; "" when it does not.
func currentModel(s wire.Session) string {
	if o, ok := modelOption(s); ok {
		return wire.Text(o.Current)
	}
	if s.Models != nil {
		return s.Models.Current
	}
	return ""
}

// offeredModels are the ids that it says may be chosen.
func offeredModels(s wire.Session) (ids []string) {
	if o, ok := modelOption(s); ok {
		var walk func([]wire.OptionValue)
		walk = func(values []wire.OptionValue) {
			for _, v := range values {
				if v.Value != "" {
					ids = append(ids, v.Value)
				}
				walk(v.Options)
			}
		}
		walk(o.Options)
		return ids
	}
	if s.Models != nil {
		for _, m := range s.Models.Available {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// chooseModel makes the agent use a model for the next prompt. Some agents take
// any name (codex-acp 0.16, copilot), some check it: what is known of the
// choice is Info.ModelConfirmed. DefaultModel leaves what is in force.
func (c *Conversation) chooseModel(ctx context.Context, h *host, want string) error {
	c.mu.Lock()
	s, now, id := c.session, c.model, c.id
	c.mu.Unlock()
	if want == "" || want == DefaultModel || want == now {
		if want == now && now != "" {
			c.confirm(want, "true")
		}
		return nil
	}
	said := "unknown"
	var err error
	switch o, ok := modelOption(s); {
	case ok:
		var m *wire.Message
		m, err = h.conn.call(ctx, wire.MethodSetConfigOption, func(n int64) []byte { return wire.SetConfigOption(n, id, o.ID, want) })
		if err == nil {
			said = confirmedBy(m.Result, s, want)
		}
	case s.Models != nil:
		_, err = h.conn.call(ctx, wire.MethodSetModel, func(n int64) []byte { return wire.SetModel(n, id, want) })
	default:
		// Copilot has no list with a custom provider and takes set_model all
		// the same; an agent that has no such method says so.
		_, err = h.conn.call(ctx, wire.MethodSetModel, func(n int64) []byte { return wire.SetModel(n, id, want) })
		if re, ok := refused(err); ok && re.Code == wire.CodeMethodNotFound {
			c.confirm(now, "false")
			return nil
		}
	}
	if re, ok := refused(err); ok {
		return c.e.modelRefused(want, offeredModels(s), re)
	}
	if err != nil {
		want, said = "", "unknown" // the agent may have done it, or not
	}
	c.confirm(want, said)
	return err
}

// confirmedBy judges the answer to a choice: the option now has the value, and
// the value was offered before it was asked for.
func confirmedBy(result json.RawMessage, before wire.Session, want string) string {
	after, err := wire.Decode[wire.Session](result)
	if err != nil || len(after.ConfigOptions) == 0 {
		return "unknown"
	}
	switch {
	case currentModel(after) != want:
		return "false"
	case slices.Contains(offeredModels(before), want):
		return "true"
	}
	return "unknown"
}

func (c *Conversation) confirm(model, said string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model, c.said = model, said
}

// modelRefused is a model that the agent does not have.
func (e *Engine) modelRefused(want string, offered []string, re *wire.Error) error {
	msg := e.agent.Title + " does not take the model " + rouse.Clip(want, 100)
	if n := len(offered); n > 0 {
		if n > 20 {
			offered = append(offered[:20:20], "…")
		}
		msg += "; it offers"
		for i, id := range offered {
			if i > 0 {
				msg += ","
			}
			msg += " " + orElse(modelName(id), "…")
		}
	} else if f := e.rpcFailure(re, e.opt.Now()); f.Message != "" {
		msg += ": " + f.Message
	}
	return &engine.LaunchError{Failure: rouse.Failure{Class: rouse.ClassModel, Code: rouse.CodeModel, Provider: e.agent.Name, Model: want,
		Message: rouse.Clip(msg, 2000), Source: sourceACP}}
}
