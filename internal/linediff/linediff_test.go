package linediff

import (
	"strings"
	"testing"
)

func TestUnified(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"same", "a\n", "a\n", ""},
		{"new file", "", "a\nb\n", "--- f\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"emptied", "a\n", "", "--- f\n+++ f\n@@ -1,1 +0,0 @@\n-a\n"},
		{"one line", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nX\n6\n7\n8\n9\n", "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n"},
		{"no newline at the end", "a", "b", "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"},
		{"two hunks", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "X\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\nY\n", "--- f\n+++ f\n@@ -1,4 +1,4 @@\n-1\n+X\n 2\n 3\n 4\n@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+Y\n"},
	} {
		if got := Unified("f", c.before, c.after); got.Text != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got.Text, c.want)
		}
	}
	big := strings.Repeat("x\n", 5000)
	if d := Unified("f", big, strings.ReplaceAll(big, "x", "y")); d.Added != 5000 || d.Removed != 5000 || len(d.Text) > maxDiff+10 {
		t.Errorf("%d %d, %d bytes", d.Added, d.Removed, len(d.Text))
	}
}

// FuzzUnified: the new text can be rebuilt from the old one and the runs.
func FuzzUnified(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\nd")
	f.Fuzz(func(t *testing.T, before, after string) {
		if len(before)+len(after) > 4000 {
			return
		}
		var a, b strings.Builder
		for _, o := range compare(lines(before), lines(after)) {
			for _, l := range o.lines {
				if o.kind != '+' {
					a.WriteString(l)
				}
				if o.kind != '-' {
					b.WriteString(l)
				}
			}
		}
		if a.String() != before || b.String() != after {
			t.Fatalf("%q -> %q: rebuilt %q and %q", before, after, a.String(), b.String())
		}
		Unified("f", before, after)
	})
}
