package native

import (
	"regexp"
	"strings"
)

// commandsOf splits a script into the commands it runs, for permission rules:
// at ; & | and line ends outside quotes, and also inside $(…), `…` and <(…).
// It is no shell: it errs on the side of naming too many.
func commandsOf(script string) []string {
	s := &splitter{text: script}
	s.list(0)
	if len(s.out) == 0 {
		return []string{strings.TrimSpace(script)}
	}
	return s.out
}

type splitter struct {
	text string
	i    int
	out  []string
}

const maxNesting = 20

// list reads commands up to the closing character, or the end.
func (s *splitter) list(depth int, closing ...byte) {
	var cur strings.Builder
	flush := func() {
		if c := bare(cur.String()); c != "" {
			s.out = append(s.out, c)
		}
		cur.Reset()
	}
	for s.i < len(s.text) {
		c := s.text[s.i]
		if len(closing) > 0 && c == closing[0] {
			s.i++
			break
		}
		switch {
		case c == '\\' && s.i+1 < len(s.text):
			cur.WriteString(s.text[s.i : s.i+2])
			s.i += 2
		case c == '\'':
			end := strings.IndexByte(s.text[s.i+1:], '\'')
			if end < 0 {
				end = len(s.text) - s.i - 1
			} else {
				end++
			}
			cur.WriteString(s.text[s.i : s.i+1+end])
			s.i += 1 + end
		case c == '"':
			s.quoted(&cur, depth)
		case s.opens() && depth < maxNesting:
			s.nested(&cur, depth)
		case c == ';' || c == '\n' || c == '|' || c == '(' || c == ')':
			flush()
			s.i++
		case c == '&':
			if redirects(s.text, s.i) {
				cur.WriteByte(c)
				s.i++
				continue
			}
			flush()
			s.i++
		case c == '#' && (cur.Len() == 0 || strings.HasSuffix(cur.String(), " ")):
			end := strings.IndexByte(s.text[s.i:], '\n')
			if end < 0 {
				end = len(s.text) - s.i
			}
			s.i += end
		default:
			cur.WriteByte(c)
			s.i++
		}
	}
	flush()
}

// quoted reads "…", whose substitutions run.
func (s *splitter) quoted(cur *strings.Builder, depth int) {
	cur.WriteByte('"')
	s.i++
	for s.i < len(s.text) {
		c := s.text[s.i]
		switch {
		case c == '"':
			cur.WriteByte(c)
			s.i++
			return
		case c == '\\' && s.i+1 < len(s.text):
			cur.WriteString(s.text[s.i : s.i+2])
			s.i += 2
		case s.opens() && c != '<' && c != '>' && depth < maxNesting:
			s.nested(cur, depth)
		default:
			cur.WriteByte(c)
			s.i++
		}
	}
}

// opens reports a substitution at the current place.
func (s *splitter) opens() bool {
	rest := s.text[s.i:]
	return rest[0] == '`' || strings.HasPrefix(rest, "$(") || strings.HasPrefix(rest, "<(") || strings.HasPrefix(rest, ">(")
}

// nested reads a substitution: its commands are commands of the script.
func (s *splitter) nested(cur *strings.Builder, depth int) {
	from := s.i
	if s.text[s.i] == '`' {
		s.i++
		s.list(depth+1, '`')
	} else {
		s.i += 2
		s.list(depth+1, ')')
	}
	cur.WriteString(s.text[from:s.i])
}

// redirects reports that '&' belongs to a redirection: >&, <&, &>.
func redirects(text string, i int) bool {
	return i > 0 && (text[i-1] == '>' || text[i-1] == '<') || i+1 < len(text) && text[i+1] == '>'
}

var (
	keyword    = regexp.MustCompile(`^(?:do|then|else|elif|if|while|until|time|exec|command|builtin|nohup|!|\{|\})(?:\s+|$)`)
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=(?:"[^"]*"|'[^']*'|[^\s"']*)(?:\s+|$)`)
)

// bare drops what stands before a command's name, and words that only close.
func bare(c string) string {
	c = strings.TrimSpace(c)
	for c != "" {
		next := assignment.ReplaceAllString(keyword.ReplaceAllString(c, ""), "")
		if next == c {
			break
		}
		if next == "" && assignment.MatchString(c) { // an assignment alone runs nothing
			return c
		}
		c = next
	}
	switch c {
	case "done", "fi", "esac", "}":
		return ""
	}
	return c
}

// pathCommands are commands whose arguments are paths.
var pathCommands = map[string]bool{"cd": true, "rm": true, "cp": true, "mv": true, "mkdir": true, "touch": true, "chmod": true, "chown": true, "cat": true, "ln": true, "rmdir": true, "tee": true}

// outsidePaths gives the paths in a script that may lead out of the directory.
func outsidePaths(script string) (out []string) {
	for _, c := range commandsOf(script) {
		words := strings.Fields(c)
		if len(words) < 2 || !pathCommands[words[0]] {
			continue
		}
		for _, w := range words[1:] {
			w = strings.Trim(w, `"'`)
			if strings.HasPrefix(w, "/dev/") {
				continue
			}
			if strings.HasPrefix(w, "/") || strings.HasPrefix(w, "~") || strings.HasPrefix(w, "..") || strings.Contains(w, "/../") {
				out = append(out, w)
			}
		}
	}
	return out
}
