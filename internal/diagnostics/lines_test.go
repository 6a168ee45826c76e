package diagnostics

import (
	"strings"
	"testing"
)

// What lies across lines is hidden as it is in one, and lines stay where
// nothing does.
func TestLines(t *testing.T) {
	if got := Lines("It failed:\n\nat 10:00, for (some) reason.\nhost /home/janeroe/x is gone"); got != "It failed\n\nat 10:00, for (some) reason\nhost [path] is gone" {
		t.Errorf("%q", got)
	}
	for _, canary := range canaries {
		for _, text := range []string{"it failed:\n@\nend", "@"} {
			if got := Lines(strings.Replace(text, "@", canary, 1)); leaks(got) {
				t.Errorf("%q in %q: %q", canary, text, got)
			}
		}
	}
	for _, text := range []string{"api_key:\n  janeroe1\nend", "api_key:\n  janeroejaneroe12\nend"} {
		if got := Lines(text); leaks(got) {
			t.Errorf("%q", got)
		}
	}
	body := strings.Repeat("jane/roe+janeroe/\n", 20)
	if got := Lines("Error: 500\n-----BEGIN OPENSSH PRIVATE KEY-----\n" + body + "-----END OPENSSH PRIVATE KEY-----\nend"); got != "Error: 500 [redacted] end" {
		t.Errorf("%q", got)
	}
	if got := Lines(strings.Repeat("é\n", 3*maxText)); leaks(got) || len(got) > 3*maxText {
		t.Errorf("%d bytes", len(got))
	}
}

func TestKeyBlock(t *testing.T) {
	var b KeyBlock
	var kept []string
	for _, line := range strings.Split("a|-----BEGIN RSA PRIVATE KEY-----|x|y|-----END RSA PRIVATE KEY-----|b|BEGIN PRIVATE KEY z END PRIVATE KEY|c|END X -----BEGIN PGP PRIVATE KEY BLOCK-----|d", "|") {
		if !b.Holds([]byte(line)) {
			kept = append(kept, line)
		}
	}
	if got := strings.Join(kept, " "); got != "a b c" {
		t.Errorf("%q", got)
	}
}
