package config

import (
	"encoding/json"
	"reflect"

	"github.com/tailscale/hujson"

	"rouse"
)

// source is one configuration file and how it is read.
type source struct {
	name string // as shown to a person
	dir  string // what relative references are relative to
	text []byte
	// strict: an unknown key or a wrong type is an error. Otherwise unknown
	// keys are skipped and a wrong type is a warning.
	strict   bool
	refs     refs
	warnings []string
	// where remembers the place of every value for findings that come after
	// decoding: key path -> "file:line:column".
	where map[string]string
}

// read parses the text and decodes it into the value that into points at.
// Every error is Invalid and names file, line, column and key.
func (s *source) read(into any) error {
	tree, err := hujson.Parse(s.text)
	if err != nil {
		return syntaxError(s.name, err)
	}
	if _, ok := tree.Value.(*hujson.Object); !ok {
		return s.errorAt(&tree, "", "expected an object at the top")
	}
	return s.decode(&tree, reflect.ValueOf(into).Elem(), "")
}

const op = "config: load"

// place is "file:line:column" of v.
func (s *source) place(v *hujson.Value) string {
	line, column := 1, 1
	for _, c := range string(s.text[:min(v.StartOffset, len(s.text))]) {
		if column++; c == '\n' {
			line, column = line+1, 1
		}
	}
	return s.name + ":" + itoa(line) + ":" + itoa(column)
}

func (s *source) errorAt(v *hujson.Value, path, format string, args ...any) error {
	where := s.place(v) + ": "
	if path != "" {
		where += path + ": "
	}
	e := rouse.FieldError(op, path, format, args...)
	e.Msg = where + e.Msg
	return e
}

// wrong reports a value of the wrong type: an error where the file is ours, a
// warning where it is not.
func (s *source) wrong(v *hujson.Value, path, format string, args ...any) error {
	err := s.errorAt(v, path, format, args...)
	if s.strict {
		return err
	}
	s.warnings = append(s.warnings, rouse.SafeMessage(err)+"; ignored")
	return nil
}

// decodable is a type that reads itself from the tree.
type decodable interface {
	decode(s *source, v *hujson.Value, path string) error
}

var rawType = reflect.TypeFor[json.RawMessage]()

// decode writes v into the addressable value dst. What v does not name stays
// as it is, so that files merge; null changes nothing.
func (s *source) decode(v *hujson.Value, dst reflect.Value, path string) error {
	if v.Value.Kind() == 'n' {
		return nil
	}
	s.where[path] = s.place(v)
	if dst.Kind() == reflect.Pointer {
		if dst.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
		}
		return s.decode(v, dst.Elem(), path)
	}
	if d, ok := dst.Addr().Interface().(decodable); ok {
		return d.decode(s, v, path)
	}
	if dst.Type() == rawType {
		raw, err := s.raw(v, path)
		if err == nil {
			dst.SetBytes(raw)
		}
		return err
	}
	switch dst.Kind() {
	case reflect.Struct:
		return s.structure(v, dst, path)
	case reflect.Map:
		return s.mapping(v, dst, path)
	case reflect.Slice:
		return s.list(v, dst, path)
	default:
		return s.scalar(v, dst, path)
	}
}

func (s *source) scalar(v *hujson.Value, dst reflect.Value, path string) error {
	lit, ok := v.Value.(hujson.Literal)
	switch dst.Kind() {
	case reflect.String:
		if !ok || lit.Kind() != '"' {
			return s.wrong(v, path, "expected a string, got %s", describe(v))
		}
		text, err := s.expand(v, path, lit.String())
		if err != nil {
			return err
		}
		dst.SetString(text)
	case reflect.Bool:
		if !ok || lit.Kind() != 't' && lit.Kind() != 'f' {
			return s.wrong(v, path, "expected true or false, got %s", describe(v))
		}
		dst.SetBool(lit.Bool())
	case reflect.Int, reflect.Int64:
		var n int64
		if !ok || lit.Kind() != '0' || json.Unmarshal(lit, &n) != nil {
			return s.wrong(v, path, "expected a whole number, got %s", describe(v))
		}
		if n < 0 {
			return s.wrong(v, path, "expected a number that is not negative, got %d", n)
		}
		dst.SetInt(n)
	case reflect.Float64:
		var n float64
		if !ok || lit.Kind() != '0' || json.Unmarshal(lit, &n) != nil {
			return s.wrong(v, path, "expected a number, got %s", describe(v))
		}
		dst.SetFloat(n)
	default:
		panic("config: no decoder for " + dst.Type().String())
	}
	return nil
}

func (s *source) structure(v *hujson.Value, dst reflect.Value, path string) error {
	known, rest := fields(dst)
	return s.members(v, path, func(name string, key, val *hujson.Value, path string) error {
		if i, ok := known[name]; ok {
			return s.decode(val, dst.Field(i), path)
		}
		switch {
		case rest >= 0:
			raw, err := s.raw(val, path)
			if err != nil {
				return err
			}
			m := dst.Field(rest)
			if m.IsNil() {
				m.Set(reflect.MakeMap(m.Type()))
			}
			m.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(json.RawMessage(raw)))
		case s.strict:
			hint := ""
			if near := nearest(name, known); near != "" {
				hint = "; did you mean " + quote(near) + "?"
			}
			return s.errorAt(key, path, "unknown key %s%s", quote(name), hint)
		}
		return nil
	})
}

func (s *source) mapping(v *hujson.Value, dst reflect.Value, path string) error {
	if dst.IsNil() {
		dst.Set(reflect.MakeMap(dst.Type()))
	}
	return s.members(v, path, func(name string, _, val *hujson.Value, path string) error {
		elem := reflect.New(dst.Type().Elem()).Elem()
		if old := dst.MapIndex(reflect.ValueOf(name)); old.IsValid() {
			elem.Set(old)
		}
		if err := s.decode(val, elem, path); err != nil {
			return err
		}
		dst.SetMapIndex(reflect.ValueOf(name), elem)
		return nil
	})
}

func (s *source) list(v *hujson.Value, dst reflect.Value, path string) error {
	arr, ok := v.Value.(*hujson.Array)
	if !ok {
		return s.wrong(v, path, "expected a list, got %s", describe(v))
	}
	out := reflect.MakeSlice(dst.Type(), len(arr.Elements), len(arr.Elements))
	for i := range arr.Elements {
		if err := s.decode(&arr.Elements[i], out.Index(i), path+"["+itoa(i)+"]"); err != nil {
			return err
		}
	}
	dst.Set(out)
	return nil
}

// members calls do for each member of an object, in the file's order, and
// refuses a key that is there twice.
func (s *source) members(v *hujson.Value, path string, do func(name string, key, val *hujson.Value, path string) error) error {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return s.wrong(v, path, "expected an object, got %s", describe(v))
	}
	seen := make(map[string]bool, len(obj.Members))
	for i := range obj.Members {
		m := &obj.Members[i]
		name := m.Name.Value.(hujson.Literal).String()
		at := join(path, name)
		if seen[name] && s.strict {
			return s.errorAt(&m.Name, at, "the key %s is there twice", quote(name))
		}
		seen[name] = true
		if err := do(name, &m.Name, &m.Value, at); err != nil {
			return err
		}
	}
	return nil
}

// raw gives v as plain JSON with its references expanded.
func (s *source) raw(v *hujson.Value, path string) ([]byte, error) {
	out := v.Clone()
	if err := s.expandAll(v, &out, path); err != nil {
		return nil, err
	}
	out.Minimize()
	return out.Pack(), nil
}

func (s *source) expandAll(orig, v *hujson.Value, path string) error {
	switch val := v.Value.(type) {
	case hujson.Literal:
		if val.Kind() != '"' {
			return nil
		}
		text, err := s.expand(orig, path, val.String())
		if err != nil {
			return err
		}
		v.Value = hujson.String(text)
	case *hujson.Array:
		for i := range val.Elements {
			from := &orig.Value.(*hujson.Array).Elements[i]
			if err := s.expandAll(from, &val.Elements[i], path+"["+itoa(i)+"]"); err != nil {
				return err
			}
		}
	case *hujson.Object:
		for i := range val.Members {
			from := &orig.Value.(*hujson.Object).Members[i].Value
			name := val.Members[i].Name.Value.(hujson.Literal).String()
			if err := s.expandAll(from, &val.Members[i].Value, join(path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
