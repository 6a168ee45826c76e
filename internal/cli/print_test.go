package cli

import "testing"

// What an agent or a title says does nothing to a terminal but stand there.
func TestForeignText(t *testing.T) {
	for in, want := range map[string][2]string{ // in a cell, in a text
		"plain":                       {"plain", "plain"},
		"two\nlines\tand more":        {"two lines and more", "two\nlines\tand more"},
		"\x1b[31mred\x07\x00":         {"[31mred", "[31mred"},
		"txt.\u202eexe \u2066x\u2069": {"txt.exe x", "txt.exe x"},
		"\u05e9\u05dc\u05d5\u05dd \U0001f468\u200d\U0001f469": {"\u05e9\u05dc\u05d5\u05dd \U0001f468\u200d\U0001f469", "\u05e9\u05dc\u05d5\u05dd \U0001f468\u200d\U0001f469"},
	} {
		if got := [2]string{oneLine(in), safe(in)}; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
