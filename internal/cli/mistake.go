package cli

import (
	"regexp"
	"strings"
)

// The parser's words for what went wrong, and ours. The first that fits is used.
var mistakes = []struct {
	theirs *regexp.Regexp
	ours   string
}{
	{regexp.MustCompile(`^(.*): expected duration value but got "EOL" \(<EOL>\)$`), `$1: the value is missing: write a duration, as 30s, 10m or 1h30m`},
	{regexp.MustCompile(`^(.*): expected (?:int|float|uint) value but got "EOL" \(<EOL>\)$`), `$1: the value is missing: write a number`},
	{regexp.MustCompile(`^(.*): expected \S+ value but got "EOL" \(<EOL>\)$`), `$1: the value is missing`},
	{regexp.MustCompile(`^(.*): missing value, expecting .*$`), `$1: the value is missing`},
	{regexp.MustCompile(`^(.*): expected \S+ value but got "(-[^"]*)" \(short flag\).*$`), `$1: $2 looks like a flag; write $1=$2 if it is the value`},
	{regexp.MustCompile(`^(.*): expected a valid \d+ bit u?int but got "(.*)"$`), `$1: "$2" is not a whole number`},
	{regexp.MustCompile(`^(.*): expected a float but got "(.*)" .*$`), `$1: "$2" is not a number`},
	{regexp.MustCompile(`^expected "(<.*>)"$`), `missing: $1`},
	{regexp.MustCompile(`^expected one of (.*)$`), `a command is missing: one of $1`},
	{regexp.MustCompile(`^(.*) must be one of "",(.*)$`), `$1 must be one of $2`},
}

// mistake says what is wrong with a command line.
func mistake(err error) string {
	text := err.Error()
	for _, m := range mistakes {
		if m.theirs.MatchString(text) {
			return m.theirs.ReplaceAllString(text, m.ours)
		}
	}
	return strings.TrimSpace(text)
}
