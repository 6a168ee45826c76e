package drill

import (
	"testing"
	"time"
)

func TestRestamped(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.FixedZone("", 3600))
	for _, c := range []struct{ line, want string }{
		{`timestamp=2026-11-30T12:56:23.665Z level=ERROR message="stream error"`, `timestamp=2030-01-02T02:04:05.678Z level=ERROR message="stream error"`},
		{`level=ERROR timestamp=2026-11-30T12:56:23.665Z message=x`, `level=ERROR timestamp=2030-01-02T02:04:05.678Z message=x`},
		{`level=ERROR message="said timestamp=1"`, `level=ERROR message="said timestamp=1"`},
		{`ERROR 2026-11-30T12:47:44 +3706ms service=llm`, `ERROR 2030-01-02T02:04:05 +3706ms service=llm`},
		{"a line of another kind", "a line of another kind"}, {"", ""},
	} {
		if got := string(restamped([]byte(c.line), now)); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.line, got, c.want)
		}
	}
}
