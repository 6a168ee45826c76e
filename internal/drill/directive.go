package drill

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// directive is what a prompt asks of the drill beyond the model's name.
// Negative numbers and nil mean "as the model does".
type directive struct {
	tokens int
	rate   float64 // tokens a second; 0: at once
	cmd    string
	delay  time.Duration // before the first byte
	reset  time.Duration // until capacity returns
	tool   string        // instead of bash
	input  string        // the call's whole input, JSON
	model  string        // what is played instead of the model
}

// bounds of what a prompt may ask for.
const (
	maxTokens = 1_000_000
	maxRate   = 100_000
)

var (
	marker = regexp.MustCompile(`\[\[drill((?:[^"'\]]|"(?:[^"\\]|\\.)*"|'[^']*'|\][^\]])*)\]\]`)
	field  = regexp.MustCompile(`([a-z]+)=("(?:[^"\\]|\\.)*"|'[^']*'|\S+)`)
)

// parseDirective reads the last directive of a text and gives the text without
// any. What it does not understand it leaves out.
func parseDirective(text string) (directive, string) {
	d := directive{tokens: -1, rate: -1, reset: -1}
	all := marker.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return d, text
	}
	for _, m := range field.FindAllStringSubmatch(all[len(all)-1][1], -1) {
		v := m[2]
		if u, err := strconv.Unquote(v); err == nil && v[0] == '"' {
			v = u
		} else {
			v = strings.Trim(v, `'`)
		}
		switch m[1] {
		case "tokens":
			if n, err := strconv.Atoi(v); err == nil && n >= 0 {
				d.tokens = min(n, maxTokens)
			}
		case "rate":
			if f, err := strconv.ParseFloat(v, 64); err == nil && f >= 0 {
				d.rate = min(f, maxRate)
			}
		case "cmd":
			d.cmd = v
		case "delay":
			if t, err := time.ParseDuration(v); err == nil && t > 0 {
				d.delay = t
			}
		case "reset":
			if t, err := time.ParseDuration(v); err == nil && t > 0 {
				d.reset = t
			}
		case "tool":
			d.tool = v
		case "input":
			d.input = v
		case "model":
			if slices.Contains(Models(), v) {
				d.model = v
			}
		}
	}
	return d, strings.TrimSpace(marker.ReplaceAllString(text, ""))
}
