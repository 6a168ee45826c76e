package provider

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

type seen struct {
	name, data string
	torn       bool
}

func readAll(r io.Reader) (out []seen, err error) {
	s := newSSEReader(r)
	for {
		ev, ok := s.next()
		if !ok {
			return out, s.err
		}
		out = append(out, seen{string(ev.name), string(ev.data), ev.torn})
	}
}

func TestSSEReader(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []seen
	}{
		{"plain", "data: a\n\ndata: b\n\n", []seen{{"", "a", false}, {"", "b", false}}},
		{"crlf", "data: a\r\n\r\nevent: x\r\ndata: b\r\n\r\n", []seen{{"", "a", false}, {"x", "b", false}}},
		{"cr", "data: a\r\rdata: b\r\r", []seen{{"", "a", false}, {"", "b", false}}},
		{"comments and other fields", ": hello\n\nid: 4\nretry: 10\ndata: a\n\n", []seen{{"", "a", false}}},
		{"several data lines", "data: a\ndata:b\ndata\n\n", []seen{{"", "a\nb\n", false}}},
		{"byte order mark", "\ufeffdata: a\n\n", []seen{{"", "a", false}}},
		{"name without data is dropped", "event: x\n\ndata: a\n\n", []seen{{"", "a", false}}},
		{"cut inside an event", "data: a\n\ndata: b\n", []seen{{"", "a", false}, {"", "b", true}}},
		{"cut inside a line", "data: a\n\ndata: b", []seen{{"", "a", false}, {"", "b", true}}},
		{"empty", "", nil},
		{"only one space is dropped", "data:  a\n\n", []seen{{"", " a", false}}},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
			got, err := readAll(r)
			if err != io.EOF {
				t.Errorf("%s: ended with %v", c.name, err)
			}
			if len(got) != len(c.want) {
				t.Errorf("%s: got %v, want %v", c.name, got, c.want)
				continue
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%s: event %d is %v, want %v", c.name, i, got[i], c.want[i])
				}
			}
		}
	}
}

func TestSSEReaderBoundsALine(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), endlessReader{})
	if got, err := readAll(endless); err != errEventTooLong || len(got) != 0 {
		t.Fatalf("got %d events and %v, want the bound", len(got), err)
	}
}

func TestSSEReaderBoundsAnEvent(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	if _, err := readAll(strings.NewReader(strings.Repeat(line, 20))); err != errEventTooLong {
		t.Fatalf("ended with %v, want the bound", err)
	}
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// FuzzSSE compares the reader with a slow one that splits the text into lines
// first, and with itself on one byte at a time.
func FuzzSSE(f *testing.F) {
	for _, s := range []string{"data: a\n\ndata: b\r\n\r\n", ": c\n\nevent: e\ndata: x\ndata: y\n\n", "data: a\r\rdata", "\ufeffdata: a\n\n", "event: a\n\n\n\ndata:"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, _ := readAll(bytes.NewReader(in))
		slow, _ := readAll(iotest.OneByteReader(bytes.NewReader(in)))
		want := reference(in)
		if len(got) != len(want) || len(slow) != len(want) {
			t.Fatalf("%q: got %v, byte by byte %v, want %v", in, got, slow, want)
		}
		for i := range want {
			if got[i] != want[i] || slow[i] != want[i] {
				t.Fatalf("%q: event %d: got %v, byte by byte %v, want %v", in, i, got[i], slow[i], want[i])
			}
		}
	})
}

func reference(in []byte) (out []seen) {
	text := strings.TrimPrefix(string(in), "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var name string
	var data []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" {
			if data != nil {
				out = append(out, seen{name, strings.Join(data, "\n"), false})
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		}
	}
	if data != nil {
		out = append(out, seen{name, strings.Join(data, "\n"), true})
	}
	return out
}

func BenchmarkSSEReader(b *testing.B) {
	frame := "data: " + usualChunk + "\n\n"
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	s := newSSEReader(bufio.NewReader(&repeat{text: []byte(frame)}))
	for b.Loop() {
		if _, ok := s.next(); !ok {
			b.Fatal(s.err)
		}
	}
}

// repeat reads the same text for ever.
type repeat struct {
	text []byte
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], r.text[r.at:])
		n += c
		r.at = (r.at + c) % len(r.text)
	}
	return n, nil
}
