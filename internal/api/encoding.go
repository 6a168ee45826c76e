package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"rouse"
)

// Undecodable is the field of a JSON document that is not UTF-8, as
// "parts[0].text"; found is false where all of it is. A name that is not UTF-8
// is its object's fault, and "" is the document's own. The decoder would put
// U+FFFD in the place and tell nobody.
func Undecodable(document []byte) (field string, found bool) {
	if utf8.Valid(document) {
		return "", false
	}
	return innermost(document, ""), true
}

// innermost descends from the value at path, which is at fault, to the one
// inside that is.
func innermost(raw json.RawMessage, path string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			switch {
			case utf8.Valid(object[name]):
			case path == "":
				return innermost(object[name], name)
			default:
				return innermost(object[name], path+"."+name)
			}
		}
		return path
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for i := range list {
			if !utf8.Valid(list[i]) {
				return innermost(list[i], path+"["+strconv.Itoa(i)+"]")
			}
		}
	}
	return path
}

// strict is huma's JSON with refused bodies that are not UTF-8.
func strict() map[string]huma.Format {
	format := huma.DefaultJSONFormat
	read := format.Unmarshal
	format.Unmarshal = func(data []byte, v any) error {
		if _, found := Undecodable(data); found {
			return rouse.Errorf(rouse.Invalid, "read body", "not UTF-8") // misfit says which field
		}
		return read(data, v)
	}
	return map[string]huma.Format{"application/json": format, "json": format}
}
