package opencode_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// additions are the fields that Rouse adds to OpenCode's objects; clients
// ignore them. A path ends with the field; "*" stands for one array or map.
var additions = []string{
	"state", "waitingFor", "outcome", "messageCount", "queued", "generation", "orchestrator", "progress", // session
	"error.data.code", "error.data.class", "error.data.providerID", "error.data.modelID", "error.data.resetAt",
	"error.data.attempts", "error.data.reason",
	"finish",       // of a message that failed: "error"
	"name", "data", // of errors, beside OpenCode's {_tag, message}
}

// optional are fields that a session or message has only when there is
// something to say; both sides are right.
var optional = []string{"agent", "model", "parentID", "permission", "metadata", "archived", "directory"}

// left are the fields that OpenCode has and Rouse has not, each with its
// reason; they are optional in OpenCode's own specification, or facts of its
// implementation.
var left = map[string]string{
	"summary":                    "changed lines of a session or message: Rouse keeps no snapshots of the directory",
	"snapshot":                   "git object of OpenCode's own snapshots",
	"revert.snapshot":            "as above",
	"revert.diff":                "as above",
	"variant":                    "opencode writes \"default\" for none chosen",
	"error.data.responseHeaders": "what a provider sent back is never passed on: it may hold keys",
	"error.data.responseBody":    "as above",
	"error.data.metadata":        "the provider's address with every error",
	"retryCount":                 "opencode fills its default into the stored format",
	"tokens.total":               "optional; left out where nothing was counted",
	"apiKey":                     "keys are never shown",
	"default_branch":             "needs git to be run",
	"share":                      "sharing is not offered",
}

func known(list []string, path string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return path == p || strings.HasSuffix(path, "."+p) })
}

func leftOut(path string) bool {
	for p := range left {
		if path == p || strings.HasSuffix(path, "."+p) {
			return true
		}
	}
	return false
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "?"
}

// open are objects whose keys are data, not shape.
var open = []string{"models", "metadata", "input", "schema", "tools", "default", "provider", "options", "permission"}

// shape compares keys and JSON types of a recorded value and ours.
func shape(path string, want, got any, differ func(string)) {
	if kindOf(want) != kindOf(got) {
		differ(fmt.Sprintf("%s: recorded %s, ours %s", path, kindOf(want), kindOf(got)))
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g := got.(map[string]any)
		if known(open, path) {
			return
		}
		for _, k := range sorted(w) {
			at := strings.TrimPrefix(path+"."+k, ".")
			v, ok := g[k]
			if !ok {
				if !leftOut(at) && !known(optional, at) {
					differ(at + ": is missing")
				}
				continue
			}
			shape(at, w[k], v, differ)
		}
		for _, k := range sorted(g) {
			at := strings.TrimPrefix(path+"."+k, ".")
			if _, ok := w[k]; !ok && !known(additions, at) && !leftOut(at) && !known(optional, at) {
				differ(at + ": is ours alone and not listed")
			}
		}
	case []any:
		list(path, w, got.([]any), differ)
	}
}

// list compares the elements of two arrays: parts by their type, the rest by
// the first one.
func list(path string, want, got []any, differ func(string)) {
	if len(want) == 0 {
		return
	}
	if len(got) == 0 {
		differ(path + ": is empty")
		return
	}
	if strings.HasSuffix(path, "parts") {
		for _, w := range want {
			kind := w.(map[string]any)["type"]
			if kind == "patch" {
				continue // a change as OpenCode's snapshots see it
			}
			i := slices.IndexFunc(got, func(g any) bool { return g.(map[string]any)["type"] == kind })
			if i < 0 {
				differ(fmt.Sprintf("%s: no part of type %v", path, kind))
				continue
			}
			shape(path+"."+fmt.Sprint(kind), w, got[i], differ)
		}
		return
	}
	if first, ok := want[0].(map[string]any); ok && first["info"] != nil {
		for i := range min(len(want), len(got)) {
			shape(path, want[i], got[i], differ)
		}
		return
	}
	shape(path, want[0], got[0], differ)
}

func sorted(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
