package judge

import "strings"

// textKind is what a chunk of an agent's text is.
type textKind int

const (
	blank   textKind = iota
	speech           // the model's
	banner           // the adapter's own notice
	failure          // the adapter's report that the provider failed
)

// kindOf looks at the ends of a text, never through it. What it takes for a
// banner or a failure is the whole chunk: adapters send such a text at once,
// while a model that writes the same words sends them in pieces.
func kindOf(text string) textKind {
	text = strings.TrimLeft(text, " \t\r\n")
	if text == "" {
		return blank
	}
	// Nearly all text is told apart by its first byte.
	switch text[0] {
	case '*', 'A', 'E', 'I', 'M', 'p', 's', 'u', 'W', 'Y':
		if isBanner(text) {
			return banner
		}
		if isFailure(text) {
			return failure
		}
	}
	if text[0] >= 0x80 && strings.TrimSpace(text) == "" {
		return blank
	}
	return speech
}

// Adapters reports whether a whole chunk of text is an adapter's own: a notice,
// or the report that a provider failed.
func Adapters(text string) (notice, failed bool) {
	kind := kindOf(text)
	return kind == banner, kind == failure
}

// isBanner knows the notices of Copilot (Info), Codex (model metadata), Claude
// (bold warning) and pi (its version, when it starts).
func isBanner(text string) bool {
	if info, ok := strings.CutPrefix(text, "Info: "); ok {
		info = strings.TrimRight(info, " \t\r\n")
		return strings.HasSuffix(info, "Retrying...") || info == "Operation cancelled by user"
	}
	if version, ok := strings.CutPrefix(text, "pi v"); ok {
		version, rule, _ := strings.Cut(strings.TrimRight(version, " \r\n"), "\n")
		return len(version) > 0 && digit(version[0]) && rule == "---"
	}
	text = strings.TrimPrefix(text, "Warning: ")
	if name, ok := strings.CutPrefix(text, "Model metadata for `"); ok {
		_, rest, closed := strings.Cut(name[:min(len(name), longestName)], "`")
		return closed && strings.HasPrefix(rest, " not found.")
	}
	return strings.HasPrefix(text, "**Warning:** ")
}

// longestName bounds the search for the end of a model's name.
const longestName = 1 << 10

// isFailure knows what Copilot (Error), Claude (API Error, limits) and Codex
// (the rest) say instead of an answer.
func isFailure(text string) bool {
	for _, start := range [...]string{"Error: ", "API Error", "stream disconnected before completion"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	if status, ok := strings.CutPrefix(text, "unexpected status "); ok {
		return len(status) > 3 && digit(status[0]) && digit(status[1]) && digit(status[2]) && status[3] == ' '
	}
	if rest, ok := cutContraction(text, "You", "ve "); ok {
		return strings.HasPrefix(rest, "hit your ") || strings.HasPrefix(rest, "reached your ")
	}
	if rest, ok := cutContraction(text, "You", "re "); ok {
		return strings.HasPrefix(rest, "out of ")
	}
	rest, ok := cutContraction(text, "We", "re ")
	return ok && strings.HasPrefix(rest, "currently experiencing high demand")
}

// cutContraction cuts a word, an apostrophe (straight or typographic) and its
// ending off the front of a text.
func cutContraction(text, word, ending string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(text, word); !ok {
		return "", false
	}
	if after, straight := strings.CutPrefix(rest, "'"); straight {
		return strings.CutPrefix(after, ending)
	}
	after, ok := strings.CutPrefix(rest, "’")
	if !ok {
		return "", false
	}
	return strings.CutPrefix(after, ending)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
