package config

import (
	"encoding/json"
	"iter"
	"reflect"
	"time"

	"github.com/tailscale/hujson"

	"rouse"
)

// ordered is a map that keeps the order in which its keys were first named:
// the first provider and its first model are the default.
type ordered[T any] struct {
	keys []string
	vals map[string]*T
}

func (o *ordered[T]) decode(s *source, v *hujson.Value, path string) error {
	if o.vals == nil {
		o.vals = map[string]*T{}
	}
	return s.members(v, path, func(name string, key, val *hujson.Value, path string) error {
		if name == "" {
			return s.wrong(key, path, "the name is empty")
		}
		elem := o.vals[name]
		if elem == nil {
			elem = new(T)
		}
		if err := s.decode(val, reflect.ValueOf(elem).Elem(), path); err != nil {
			return err
		}
		if o.vals[name] == nil {
			o.keys = append(o.keys, name)
			o.vals[name] = elem
		}
		return nil
	})
}

// all gives the elements in order.
func (o *ordered[T]) all() iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for _, k := range o.keys {
			if !yield(k, o.vals[k]) {
				return
			}
		}
	}
}

func (m *millis) decode(s *source, v *hujson.Value, path string) error {
	lit, ok := v.Value.(hujson.Literal)
	if ok && lit.Kind() == 'f' {
		*m = millis{set: true}
		return nil
	}
	var n float64
	if !ok || lit.Kind() != '0' || json.Unmarshal(lit, &n) != nil || n < 0 || n > 1e12 {
		return s.wrong(v, path, "expected milliseconds or false, got %s", describe(v))
	}
	*m = millis{set: true, d: time.Duration(n * float64(time.Millisecond))}
	return nil
}

// rules reads OpenCode's permission section: one action for everything, or an
// object of permission -> action, or permission -> pattern -> action. Rules of
// a later file come after those of an earlier one, so they win.
type rules struct{ list []rouse.PermissionRule }

func (r *rules) decode(s *source, v *hujson.Value, path string) error {
	if v.Value.Kind() == '"' {
		return r.add(s, v, path, "*", "*")
	}
	return s.members(v, path, func(permission string, _, val *hujson.Value, path string) error {
		if val.Value.Kind() == '"' {
			return r.add(s, val, path, permission, "*")
		}
		return s.members(val, path, func(pattern string, _, val *hujson.Value, path string) error {
			return r.add(s, val, path, permission, pattern)
		})
	})
}

func (r *rules) add(s *source, v *hujson.Value, path, permission, pattern string) error {
	s.where[path] = s.place(v)
	lit, ok := v.Value.(hujson.Literal)
	if !ok || lit.Kind() != '"' {
		return s.wrong(v, path, "expected allow, ask or deny, got %s", describe(v))
	}
	rule := rouse.PermissionRule{Permission: permission, Pattern: pattern, Action: rouse.Action(lit.String())}
	if err := rule.Validate(); err != nil {
		return s.wrong(v, path, "%s", rouse.SafeMessage(err))
	}
	r.list = append(r.list, rule)
	return nil
}
