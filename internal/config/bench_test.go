package config

import "testing"

// BenchmarkCatalogue is what the first look-up of a known provider costs.
func BenchmarkCatalogue(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c := catalogue{}
		if _, ok := c.find("anthropic"); !ok {
			b.Fatal("not found")
		}
	}
}
