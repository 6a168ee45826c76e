package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"

	"rouse"
)

// style colours text for a terminal, or leaves it alone.
type style bool

func styleOf(w io.Writer, getenv func(string) string) style {
	f, ok := w.(*os.File)
	return style(ok && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd()))
}

func (s style) paint(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) dim(text string) string    { return s.paint("2", text) }
func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) red(text string) string    { return s.paint("31", text) }
func (s style) green(text string) string  { return s.paint("32", text) }
func (s style) yellow(text string) string { return s.paint("33", text) }

// table prints rows under headers, columns aligned.
func (a *app) table(headers []string, rows [][]string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(headers, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			if row[i] = oneLine(cell); row[i] == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return rouse.Wrap("cli: print", w.Flush())
}

// oneLine makes text fit for a cell: no line ends, no control characters.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if steers(r) {
			return -1
		}
		return r
	}, s))
}

// steers reports a character that does something to a terminal instead of
// standing there: of escape sequences, or one that turns the direction of text.
func steers(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// safe makes foreign text fit for a terminal: line ends and tabs stay, what
// steers it goes.
func safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && steers(r) {
			return -1
		}
		return r
	}, s)
}

// short cuts text to n characters, with an ellipsis.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// age is a duration as people say it: "3s", "5m", "2h", "4d".
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// stamp is a time in the CLI's JSON: RFC 3339, UTC, milliseconds; "" for none.
type stamp time.Time

// MarshalJSON writes null for the zero time.
func (s stamp) MarshalJSON() ([]byte, error) {
	t := time.Time(s)
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.UTC().Format("2006-01-02T15:04:05.000Z") + `"`), nil
}

// at reads the wire's milliseconds.
func at(ms int64) stamp {
	if ms == 0 {
		return stamp{}
	}
	return stamp(time.UnixMilli(ms))
}

// thousands writes a count of tokens: "128k".
func thousands(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}
