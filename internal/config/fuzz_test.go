package config

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"rouse"
)

func testRefs() refs {
	return refs{
		getenv: func(name string) string { return map[string]string{"A": "va", "B": "{env:A}"}[name] },
		home:   "/home/x",
		open: func(name string) (io.ReadCloser, error) {
			if strings.HasSuffix(name, "ok") {
				return io.NopCloser(strings.NewReader(" text {env:A}\n")), nil
			}
			return nil, errors.New("no")
		},
	}
}

// FuzzRefs: expansion ends, never expands twice, and leaves text without
// references alone.
func FuzzRefs(f *testing.F) {
	for _, s := range []string{"", "{", "{env:A}", "x{env:A}y{env:B}", "{env:{env:A}}", "{file:ok}", "{file:~/ok}{", "{env:A", "{file:}", "é{env:Z}é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &source{name: "f", refs: testRefs(), where: map[string]string{}}
		out, err := s.expand(&hujson.Value{Value: hujson.String("")}, "k", text)
		if err != nil {
			if rouse.KindOf(err) != rouse.Invalid {
				t.Fatalf("kind of %v", err)
			}
			return
		}
		if !strings.Contains(text, "{env:") && !strings.Contains(text, "{file:") && out != text {
			t.Fatalf("%q became %q", text, out)
		}
		if want := strings.NewReplacer("{env:A}", "va", "{env:B}", "{env:A}").Replace(text); !strings.Contains(text, "{file:") &&
			strings.Count(text, "{") == strings.Count(text, "{env:A}")+strings.Count(text, "{env:B}") && out != want {
			t.Fatalf("%q became %q, want %q", text, out, want)
		}
	})
}

// FuzzLoad: whatever is in a file, the loader gives a configuration that can
// be asked, or an Invalid error that names the file.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"provider": {"x": {"options": {"baseURL": "http://h", "timeout": 1}, "models": {"m": {"cost": {"input": 1}}}}}, "model": "x/m"}`), true)
	f.Add([]byte("{ // c\n \"agent\": {\"build\": {\"permission\": {\"bash\": {\"git *\": \"ask\"}}, \"disable\": true}},}"), false)
	f.Add([]byte(`{"permission": "deny", "server": {"hosts": [null, "a"]}, "log": null}`), true)
	f.Add([]byte(`{"provider": {"anthropic": {"whitelist": ["x"], "models": {"m": {"variants": {"a": 1}}}}}}`), false)
	f.Fuzz(func(t *testing.T, text []byte, strict bool) {
		if bytes.Contains(text, []byte("anthropic")) && len(text) > 200 {
			t.Skip("decoding the catalogue is slow")
		}
		var file file
		src := &source{name: "file.jsonc", text: text, strict: strict, refs: testRefs(), where: map[string]string{}}
		var into any = &file
		if !strict {
			into = file.view()
		}
		c := &Config{}
		err := src.read(into)
		if err == nil {
			err = c.build(Paths{Getenv: func(string) string { return "" }}, &file, src.where)
		}
		if err != nil {
			if rouse.KindOf(err) != rouse.Invalid || !strings.HasPrefix(rouse.SafeMessage(err), "file.jsonc:") {
				t.Fatalf("%v", err)
			}
			return
		}
		if ref, err := c.Default(); err == nil && c.Model.IsZero() {
			if _, err := c.Resolve(ref); err != nil {
				t.Fatalf("the default cannot be resolved: %v", err)
			}
		}
		for _, a := range c.Agents {
			for _, r := range a.Rules {
				if err := r.Validate(); err != nil {
					t.Fatalf("agent %q: %v", a.Name, err)
				}
			}
		}
	})
}
