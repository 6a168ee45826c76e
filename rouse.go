// Package rouse is the vocabulary of the product: sessions, turns, messages,
// parts, events, failures, and the pure rules that belong to them. It imports
// the standard library only and does nothing: no clock, no I/O, no goroutine.
//
// The verbs under internal/ meet in the log that internal/store keeps; this
// package is the language they speak there.
package rouse

import "strings"

// Version is the product's version as `rouse version` prints it. The build
// overwrites it with -ldflags "-X rouse.Version=…".
var Version = "0.1.0-dev"

// ModelRef names one model of one provider. The zero value means "none named".
type ModelRef struct {
	// Provider is the provider's id in the configuration, e.g. "anthropic".
	Provider string `json:"provider_id"`
	// Model is the model's id as that provider knows it; it may contain '/'.
	Model string `json:"model_id"`
	// Variant is an optional reasoning variant ("high", …); empty is the default.
	Variant string `json:"variant,omitempty"`
}

// IsZero reports whether no model is named.
func (m ModelRef) IsZero() bool { return m.Provider == "" && m.Model == "" }

// String is "provider/model", the form that ParseModelRef reads.
func (m ModelRef) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Provider + "/" + m.Model
}

// ParseModelRef reads "provider/model", split at the first '/', so that a
// model id may contain more of them. A string without '/' or with an empty
// half is an Invalid error that names both accepted forms.
func ParseModelRef(s string) (ModelRef, error) {
	provider, model, ok := strings.Cut(s, "/")
	if !ok || provider == "" || model == "" {
		return ModelRef{}, Errorf(Invalid, "parse model",
			"model %q: use {\"providerID\":…,\"modelID\":…} or \"provider/model\"", s)
	}
	return ModelRef{Provider: provider, Model: model}, nil
}

// Tokens counts what a model call used.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Add returns the sum of both counts.
func (t Tokens) Add(o Tokens) Tokens {
	return Tokens{t.Input + o.Input, t.Output + o.Output, t.Reasoning + o.Reasoning,
		t.CacheRead + o.CacheRead, t.CacheWrite + o.CacheWrite}
}

// Total is the sum of all kinds.
func (t Tokens) Total() int64 {
	return t.Input + t.Output + t.Reasoning + t.CacheRead + t.CacheWrite
}

// Usage is tokens and their price in US dollars (0 where the price is unknown).
type Usage struct {
	Tokens Tokens  `json:"tokens"`
	Cost   float64 `json:"cost"`
}

// Add returns the sum of both.
func (u Usage) Add(o Usage) Usage { return Usage{u.Tokens.Add(o.Tokens), u.Cost + o.Cost} }

// Action is what a permission rule says of a call.
type Action string

// The three actions of a permission rule.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// PermissionRule allows, asks for or denies a permission ("bash", "edit",
// "question", "*", …) where Pattern matches ('*' any run, '?' one character).
// In a list the last rule that matches wins, as in OpenCode.
type PermissionRule struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern"`
	Action     Action `json:"action"`
}

// Validate reports an Invalid error that names the field.
func (r PermissionRule) Validate() error {
	switch {
	case r.Permission == "":
		return Errorf(Invalid, "permission rule", "permission is missing")
	case r.Pattern == "":
		return Errorf(Invalid, "permission rule", "pattern is missing")
	case r.Action != Allow && r.Action != Ask && r.Action != Deny:
		return Errorf(Invalid, "permission rule", "action %q: use allow, ask or deny", r.Action)
	}
	return nil
}

// Decide returns the action of the last rule whose permission and pattern
// match; fallback if none does.
func Decide(rules []PermissionRule, permission, subject string, fallback Action) Action {
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		if Match(r.Permission, permission) && Match(r.Pattern, subject) {
			return r.Action
		}
	}
	return fallback
}

// Match reports whether s matches a pattern with '*' (any run, also across
// '/') and '?' (one byte). A trailing " *" also matches the bare command, so
// that "git *" covers "git".
func Match(pattern, s string) bool {
	if head, ok := strings.CutSuffix(pattern, " *"); ok && wild(head, s) {
		return true
	}
	return wild(pattern, s)
}

func wild(p, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for i < len(s) {
		switch {
		case j < len(p) && p[j] == '*':
			star, mark = j, i
			j++
		case j < len(p) && (p[j] == '?' || p[j] == s[i]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = mark, star+1
		default:
			return false
		}
	}
	for j < len(p) && p[j] == '*' {
		j++
	}
	return j == len(p)
}
