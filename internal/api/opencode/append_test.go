package opencode

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{"", "plain", "\"q\" \\ \n\r\t\b\f\x00\x1f", "ÄÖ€𝄞", "\u2028\u2029", "\xff\xfe", "a\xe2\x82", "<a href='x'>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := appendJSON([]byte("x"), []byte(s))
		var back string
		if err := json.Unmarshal(out[1:], &back); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && back != want {
			t.Errorf("%q came back as %q", s, back)
		}
		var std string
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &std); err != nil || std != back {
			t.Errorf("encoding/json makes %q of it, we %q", std, back)
		}
	})
}

// Sending a text in pieces that end anywhere never tears a rune and loses
// nothing.
func FuzzWholeRunes(f *testing.F) {
	f.Add("aÄ€𝄞z", uint8(3))
	f.Add("\xe2\x82\xe2\x82\xac", uint8(1))
	f.Fuzz(func(t *testing.T, s string, step uint8) {
		sent := 0
		for end := 0; end < len(s); {
			end = min(len(s), end+int(step)%5+1)
			n := wholeRunes([]byte(s[:end]))
			if n < sent && n < end-utf8.UTFMax {
				t.Fatalf("went back from %d to %d", sent, n)
			}
			if n > sent {
				if piece := s[sent:n]; utf8.ValidString(s) && !utf8.ValidString(piece) {
					t.Fatalf("%q is torn", piece)
				}
				sent = n
			}
		}
		if utf8.ValidString(s) && sent != len(s) {
			t.Fatalf("%d of %d bytes sent", sent, len(s))
		}
	})
}

func BenchmarkDelta(b *testing.B) {
	s := &stream{parts: map[string]*sentPart{}}
	p := &sentPart{head: []byte(`{"type":"message.part.delta","properties":{"sessionID":"ses_00000000000000000000000001","messageID":"msg_00000000000000000000000001","partID":"prt_00000000000000000000000001","field":"text","delta":"`)}
	text := []byte(" a token or two")
	b.ReportAllocs()
	for b.Loop() {
		s.buf = s.buf[:0]
		s.delta(p, text)
	}
}
