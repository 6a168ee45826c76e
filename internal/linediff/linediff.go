// Package linediff compares texts line by line.
package linediff

import (
	"fmt"
	"strings"
)

// Diff is the difference of two texts, line by line. Text is empty when there is none.
type Diff struct {
	Text           string // a unified diff
	Added, Removed int    // lines
}

// around is how many unchanged lines stand around a change.
const around = 3

// maxCompared bounds the search for the smallest difference; beyond it the differing
// middle is shown as replaced whole.
const maxCompared = 4_000_000

// maxDiff bounds Diff.Text, in bytes.
const maxDiff = 64 << 10

// op is a run of lines: common to both (' '), only in the old ('-') or only in
// the new text ('+').
type op struct {
	kind  byte
	lines []string
}

// Unified compares two texts. name is the file's, for the header.
func Unified(name, before, after string) Diff {
	if before == after {
		return Diff{}
	}
	ops := compare(lines(before), lines(after))
	var d Diff
	for _, o := range ops {
		switch o.kind {
		case '+':
			d.Added += len(o.lines)
		case '-':
			d.Removed += len(o.lines)
		}
	}
	d.Text = render(name, ops)
	return d
}

// lines splits a text; each line keeps its end.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	out := strings.SplitAfter(s, "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// compare gives the runs that lead from a to b.
func compare(a, b []string) []op {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	var out []op
	add := func(kind byte, ls ...string) {
		switch {
		case len(ls) == 0:
		case len(out) > 0 && out[len(out)-1].kind == kind:
			out[len(out)-1].lines = append(out[len(out)-1].lines, ls...)
		default:
			out = append(out, op{kind, append([]string(nil), ls...)})
		}
	}
	add(' ', a[:head]...)
	if len(x)*len(y) > maxCompared {
		add('-', x...)
		add('+', y...)
	} else {
		middle(x, y, add)
	}
	add(' ', a[len(a)-tail:]...)
	return out
}

// middle finds the longest common subsequence by a table.
func middle(x, y []string, add func(byte, ...string)) {
	w := len(y) + 1
	table := make([]int32, (len(x)+1)*w)
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				table[i*w+j] = table[(i+1)*w+j+1] + 1
			} else {
				table[i*w+j] = max(table[(i+1)*w+j], table[i*w+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		switch {
		case x[i] == y[j]:
			add(' ', x[i])
			i, j = i+1, j+1
		case table[(i+1)*w+j] >= table[i*w+j+1]:
			add('-', x[i])
			i++
		default:
			add('+', y[j])
			j++
		}
	}
	add('-', x[i:]...)
	add('+', y[j:]...)
}

// line is one line of the output with its place in both texts.
type line struct {
	kind     byte
	text     string
	old, new int // line numbers from 1
}

// render writes the hunks.
func render(name string, ops []op) string {
	var all []line
	old, now := 1, 1
	for _, o := range ops {
		for _, l := range o.lines {
			all = append(all, line{o.kind, l, old, now})
			if o.kind != '+' {
				old++
			}
			if o.kind != '-' {
				now++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", name, name)
	for i := 0; i < len(all); {
		if all[i].kind == ' ' {
			i++
			continue
		}
		from := max(0, i-around)
		to := i
		for j := i; j < len(all) && j <= to+2*around; j++ { // changes that are close share a hunk
			if all[j].kind != ' ' {
				to = j
			}
		}
		to = min(len(all), to+around+1)
		hunk(&b, all[from:to])
		if b.Len() > maxDiff {
			return b.String()[:cutAt(b.String())] + "…\n"
		}
		i = to
	}
	return b.String()
}

// cutAt is the end of the last whole line within the bound.
func cutAt(s string) int { return strings.LastIndexByte(s[:maxDiff], '\n') + 1 }

func hunk(b *strings.Builder, ls []line) {
	var olds, news int
	for _, l := range ls {
		if l.kind != '+' {
			olds++
		}
		if l.kind != '-' {
			news++
		}
	}
	first := ls[0]
	o, n := first.old, first.new
	if olds == 0 {
		o--
	}
	if news == 0 {
		n--
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", o, olds, n, news)
	for _, l := range ls {
		b.WriteByte(l.kind)
		b.WriteString(l.text)
		if !strings.HasSuffix(l.text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
