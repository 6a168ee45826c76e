//go:build !unix

package config

// lockFile locks nothing where the program is not offered.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }
