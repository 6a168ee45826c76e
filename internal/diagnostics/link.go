package diagnostics

import "strings"

// maxLink bounds a remediation link, in bytes.
const maxLink = 256

// links are the only remediation links that are ever shown, one row for each
// vendor. Between before and after stands an id of 1 to 128 characters.
var links = []struct{ vendor, before, after string }{
	{"opencode", "https://opencode.ai/workspace/", "/go"},
}

// LinkAllowed reports whether candidate is, byte for byte, a remediation link
// of a vendor that is known. Nothing is trimmed, decoded or repaired: what is
// almost a link is none.
func LinkAllowed(candidate string) bool {
	if len(candidate) > maxLink {
		return false
	}
	for _, l := range links {
		rest, ok := strings.CutPrefix(candidate, l.before)
		if id, end := strings.CutSuffix(rest, l.after); ok && end && workspace(id) {
			return true
		}
	}
	return false
}

func workspace(id string) bool {
	for i := range len(id) {
		if !word(id[i]) && id[i] != '-' {
			return false
		}
	}
	return 1 <= len(id) && len(id) <= 128
}

// linkIn is the first word of a text that is an allowed link, or "".
func linkIn(text string) string {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == '\n' }) {
		if LinkAllowed(word) {
			return word
		}
	}
	return ""
}
