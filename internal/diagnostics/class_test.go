package diagnostics

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"rouse"
)

// contract is the classes as the rules give them; the table must agree.
var contract = []struct {
	class rouse.Class
	re    *regexp.Regexp
}{
	{rouse.ClassRate, regexp.MustCompile(`per[ _-]?min(ute)?\b|perminute`)},
	{rouse.ClassQuota, regexp.MustCompile(`usage[ _-]?limit|\bquota\b|insufficient_quota|(free|extra|plan) usage|out of (extra )?usage|usage (exceeded|exhausted)|you['’]?ve (hit|reached) your (\w+ )?limit`)},
	{rouse.ClassRate, regexp.MustCompile(`rate[ _-]?limit|too many requests|\b429\b|(tokens|requests) per (hour|day)|throttl`)},
	{rouse.ClassBilling, regexp.MustCompile(`credit balance|insufficient (credits?|funds|balance)|out of credits|payment required|purchase (more )?credits|\bbilling\b|subscription (required|expired|inactive)|no active subscription|\b402\b`)},
	{rouse.ClassAuth, regexp.MustCompile(`api[ _-]?key|unauthori[sz]ed|authentication|unauthenticated|invalid (token|credentials)|token (has )?expired|expired token|not logged in|log ?in (required|again)|permission denied|forbidden|access (paused|denied|revoked)|\b40[13]\b`)},
	{rouse.ClassContext, regexp.MustCompile(`context[ _-]?(length|window|size)|maximum context|(prompt|input) is too long|too many (input )?tokens|request too large`)},
	{rouse.ClassCapacity, regexp.MustCompile(`overloaded|at capacity|high demand|temporarily unavailable|service unavailable|internal server error|server_error|bad gateway|gateway time-?out|\b(500|502|503|504|529)\b`)},
	{rouse.ClassNetwork, regexp.MustCompile(`(cannot|unable to|could not) connect|connection (error|refused|reset|closed|timed out|lost|was closed)|socket|\becon[a-z]+|enotfound|etimedout|eai_again|epipe|network|fetch failed|\bterminated\b|stream disconnected|unexpected eof|error decoding response body|timed? ?out|\bdns\b`)},
}

func byContract(text string) rouse.Class {
	folded := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
	for _, c := range contract {
		if c.re.MatchString(folded) {
			return c.class
		}
	}
	return rouse.ClassNone
}

func FuzzClassOf(f *testing.F) {
	for _, s := range []string{"", "You’ve hit your weekly limit", "you've reached your limit", "youve hit your  limit", "a 429", "x429", "é429é", "ECONNRESET",
		"econ", "toKen expired", "timedout time out", "log in again", "per minutes", "Per_Minute", "gateway time-out", "uſage limit", "QUOTA", "quotas"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := ClassOf(s), byContract(strings.ToValidUTF8(s, "?")); got != want && strings.ToValidUTF8(s, "?") == s {
			t.Errorf("%q: %s, the rules say %s", s, got, want)
		}
	})
}

// Sentences made of the contract's own words, whole and broken, are classed as
// its regular expressions class them.
func TestClassAgreesWithTheContract(t *testing.T) {
	var words []string
	for _, c := range contract {
		words = append(words, strings.FieldsFunc(c.re.String(), func(r rune) bool { return strings.ContainsRune(`()|?[]\ `, r) })...)
	}
	words = append(words, "you've", "you’ve", "youve", "weekly", "reached", "login", "timeout", "timed", "time", "unauthorized", "unauthorised", "401", "403", "econnreset", "tokens")
	r := rand.New(rand.NewPCG(1, 2))
	joints := []string{" ", " ", " ", "", "_", "-", "  ", ". ", "é"}
	for range 30_000 {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			w := words[r.IntN(len(words))]
			if r.IntN(4) == 0 {
				w = strings.ToUpper(w)
			}
			b.WriteString(w + joints[r.IntN(len(joints))])
		}
		if got, want := ClassOf(b.String()), byContract(b.String()); got != want {
			t.Fatalf("%q: %s, the rules say %s", b.String(), got, want)
		}
	}
}

func BenchmarkClassOf(b *testing.B) {
	text := strings.Repeat("The model answered slowly and nothing is known of why. ", 6)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ClassOf(text)
	}
}
