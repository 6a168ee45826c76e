package config

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"rouse"
)

func itoa(n int) string { return strconv.Itoa(n) }

// quote shows a key or value of a file, bounded.
func quote(s string) string { return strconv.Quote(rouse.Clip(s, 80)) }

// join appends a key to a path; a key with dots or spaces is quoted.
func join(path, name string) string {
	if strings.ContainsAny(name, ". \t\n\"[]") || name == "" {
		name = quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// describe names the type of a value for a person.
func describe(v *hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "the number " + rouse.Clip(string(v.Value.(hujson.Literal)), 40)
	case 't', 'f':
		return string(v.Value.(hujson.Literal))
	default:
		return "null"
	}
}

// fields maps the keys of a struct to its field numbers. rest is the field
// that takes all other keys, or -1.
func fields(v reflect.Value) (known map[string]int, rest int) {
	known, rest = map[string]int{}, -1
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		if tag.Get("config") == "rest" {
			rest = i
		} else if name := tag.Get("json"); name != "" {
			known[name] = i
		}
	}
	return known, rest
}

// nearest is the known key that a typing error could have come from: the one
// with the smallest edit distance, at most a third of its length plus one.
func nearest(name string, known map[string]int) string {
	best, dist := "", 1<<30
	for k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d <= 1+len(k)/3 && (d < dist || d == dist && k < best) {
			best, dist = k, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete, replace or swap.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 1 << 20
	}
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
