package diagnostics

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// canaries must not survive anywhere in a text, whatever stands around them.
var canaries = func() []string {
	list := []string{"jane.roe@mail.example.com", "/home/janeroe/project/x.go", "/Users/janeroe/y/z", `C:\Users\janeroe\z`, `\\host\janeroe\f`, "~/janeroe/a.txt",
		"https://opencode.ai/workspace/wrk_JANEROE1/go", "opencode.ai/workspace/JANEROE/go", "https://janeroe@b.example/x?token=JANEROE",
		"org-JANEROE12", "5a1e0000-0000-4000-8000-00janeroe00", "password=janeroe", "x-api-key: janeroe1", "Authorization: Bearer janeroe",
		"client_secret=janeroe", "Bearer janeroe12345", "Basic amFuZXJvZTE6eA0=", "API key provided: janeroe", "mailto:janeroe@b.example",
		"eyJjaneroe.eyJjaneroe.janeroe", "-----BEGIN RSA PRIVATE KEY-----\njaneroe\n-----END RSA PRIVATE KEY-----", "file:/janeroe", "data:text/janeroe",
		"janeroejaneroejaneroejaneroejaneroe1", "cookie: a=janeroe1; b=janeroe", "blob:janeroe", "javascript:janeroe()"}
	list[10] = "5a1e0000-0000-4000-8000-00d00d00d00d"
	list = append(list, furtherCanaries...)
	for _, p := range strings.Fields("wrk_ ses_ run_ msg_ prt_ per_ usr_ key_ org_ req_ acct_") {
		list = append(list, p+"JANEROE1")
	}
	for _, p := range strings.Fields("sk- sk-proj- sk-ant-api03- sk_live_ rk_test_ pk_live_ ghp_ gho_ github_pat_ glpat- xoxb- AIza ya29. AKIA ASIA gsk_ hf_ r8_ npm_ xai- pplx- nvapi-") {
		list = append(list, p+"JANEROEJANEROE12")
	}
	return list
}()

// leaks reports what of a canary is left in a text.
func leaks(s string) bool {
	folded := strings.ToLower(s)
	return strings.Contains(folded, "janeroe") || strings.Contains(folded, "jane.roe") || strings.Contains(folded, "amfuzxj") || strings.Contains(folded, "d00d")
}

func FuzzSanitize(f *testing.F) {
	for i, s := range append(canaries, "password=\"\" x", "a ( [] ) b", "wr()k_ABC", "AI_X: AI_Y: z", "\x1b[3\x1b[1m1m", "secret: password=abc", "http://a http://b.", "Authorization:",
		strings.Repeat("é ", 2000), "[redacted", "wrk_\u200b", "a@b.c@d.e", "://", ". , ; x . , ;", "(((((((((())))))))))") {
		f.Add(s, i)
	}
	f.Fuzz(func(t *testing.T, s string, pick int) {
		one := Sanitize(s)
		check(t, s, one)
		if two := Sanitize(one); two != one {
			t.Errorf("%q: %q is sanitized to %q", s, one, two)
		}
		if leaks(s) || strings.Contains(s, "\x1b") { // its own word, or a sequence that eats the first letter of a canary
			return
		}
		canary := canaries[((pick%len(canaries))+len(canaries))%len(canaries)]
		if with := Sanitize(s + " " + canary + " " + s); leaks(with) {
			t.Errorf("%q: %q survives: %q", s, canary, with)
		}
	})
}

func check(t *testing.T, from, s string) {
	t.Helper()
	if !utf8.ValidString(s) || len(s) > MaxMessage || strings.ContainsFunc(s, unicode.IsControl) || strings.Contains(s, "://") || strings.Contains(s, "opencode.ai/") {
		t.Errorf("%q: %q", from, s)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`timestamp=2026-11-30T12:56:23.665Z level=ERROR message="stream error" session.id=ses_1 error.error="AI_APICallError: Overloaded. Resets in 1h"`))
	f.Add([]byte(`ERROR 2026-11-30T12:47:29 +5ms service=llm providerID=mock sessionID=ses_1 error={"error":{"name":"AI_APICallError","statusCode":429}} stream error`))
	f.Add([]byte(`ERROR 2026-11-30T12:47:29 +5ms service=session.processor error=Aborted process`))
	f.Add([]byte("a=\"\\ud800\" b=c\r"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r := Parse(Line{Text: line})
		var p Prompt
		c := Context{AgentType: Agent, SessionID: r.Session(), ActivePrompts: 1}
		got := p.Judge(r, c)
		switch {
		case got.Action == Ignore && got != (Finding{Action: Ignore, Reason: got.Reason}) || got.Reason == "":
			t.Errorf("%q: %+v", line, got)
		case got.Action != Ignore:
			check(t, string(line), got.Message)
			if got.Message == "" || got.Class == "" || got.OccurredAt.IsZero() || p.Settled() != (got.Action == Terminal) {
				t.Errorf("%q: %+v", line, got)
			}
			if got.RemediationURL != "" && !LinkAllowed(got.RemediationURL) {
				t.Errorf("%q: link %q", line, got.RemediationURL)
			}
		}
	})
}

// However a stream is cut into reads, it has the same lines, and they are
// those between newlines.
func FuzzFramer(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"), []byte{1, 2, 0, 3}, 10)
	f.Add([]byte("x\n"), []byte{200}, MaxLine)
	f.Fuzz(func(t *testing.T, stream, cuts []byte, long int) {
		long = min(max(long, 0), 2*MaxLine)
		stream = append(bytes.Repeat([]byte("y"), long), stream...)
		var fr Framer
		var got []string
		emit := func(l Line) { got = append(got, string(l.Fault)+":"+string(l.Text)) }
		rest := stream
		for i := 0; len(rest) > 0; i++ {
			n := len(rest)
			if i < len(cuts) {
				n = min(n, int(cuts[i])*1500)
			}
			fr.Feed(rest[:n], emit)
			rest = rest[n:]
			if cap(fr.rest) > 3*MaxLine {
				t.Fatalf("%d bytes are kept", cap(fr.rest))
			}
		}
		fr.Close(emit)
		var want []string
		lines := strings.Split(string(stream), "\n")
		for i, l := range lines {
			switch last := i == len(lines)-1; {
			case len(l) > MaxLine:
				want = append(want, "oversize:")
			case last && l != "":
				want = append(want, "torn:"+l)
			case !last:
				want = append(want, ":"+l)
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %d lines, want %d", len(got), len(want))
		}
	})
}

func TestNoCanarySurvives(t *testing.T) {
	around := []string{"%", "Overloaded % end", "Overloaded (%)", `said "%"`, "'%'", "<%>", "[%]", "at %, then", "%.", "x: %", "x %; y", "\x1b[1m%\x1b[0m", "中文 % 中文", "{\"a\": \"%\"}"}
	for _, c := range canaries {
		for _, a := range around {
			text := strings.ReplaceAll(a, "%", c)
			half := len(c) / 2
			for half > 0 && !utf8.RuneStart(c[half]) {
				half--
			}
			forms := []string{text, strings.ReplaceAll(text, c, c[:half]+"\u200b"+c[half:]), strings.ReplaceAll(text, c, c[:half]+"\x1b[31m"+c[half:]),
				strings.ReplaceAll(text, c, c[:half]+"\u202e\u00ad"+c[half:])}
			if a == "%" || !testing.Short() { // with the bound inside it
				forms = append(forms, strings.Repeat("abc ", 510)+text, strings.Repeat("é", 1010)+" "+text)
			}
			for _, s := range forms {
				got := Sanitize(s)
				if leaks(got) {
					t.Errorf("%q: %q survives: %q", a, c, got)
				}
				check(t, s, got)
				if again := Sanitize(got); again != got {
					t.Errorf("%q: sanitized again to %q", got, again)
				}
			}
		}
	}
}
