// Package test holds the proofs that need other programs: OpenCode's own
// clients and SDK, installed by scripts/peers.sh, against the real binary, and
// agent programs, installed by scripts/agents.sh, on the simulated provider.
// Without them the tests skip; `make test` installs them first.
package test
