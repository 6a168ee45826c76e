// Command bench measures Rouse beside the real OpenCode server, on the same
// machine in the same run, and prints figures with their ratios. Both servers
// talk to one simulated provider that lives in this process and stamps every
// token with the time at which it was sent.
//
//	ROUSE_BINARY=bin/rouse ROUSE_PEERS=.cache/peers go run ./bench [figure …]
//
// Figures: start prompt delta tail fifty thousand restart acp. Machines are noisy:
// quote the ratios.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

var figures = []struct {
	name string
	run  func(*bench) error
}{
	{"start", (*bench).start},
	{"prompt", (*bench).prompt},
	{"delta", (*bench).delta},
	{"tail", (*bench).tail},
	{"fifty", (*bench).fifty},
	{"thousand", (*bench).thousand},
	{"restart", (*bench).restart},
	{"acp", (*bench).acp},
}

// bench is one run.
type bench struct {
	ctx      context.Context
	dir      string // everything that is written
	rouse    string // binaries
	opencode string
	config   string // of Rouse, beside its home's; "" for none
	provider *provider
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == acpAgentArg {
		acpAgent()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	dir, err := os.MkdirTemp("", "rouse-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{ctx: ctx, dir: dir, rouse: os.Getenv("ROUSE_BINARY"), opencode: filepath.Join(os.Getenv("ROUSE_PEERS"), "opencode")}
	if b.rouse, err = filepath.Abs(b.rouse); err != nil {
		return err
	}
	if b.opencode, err = filepath.Abs(b.opencode); err != nil {
		return err
	}
	if _, err := os.Stat(b.rouse); err != nil {
		return fmt.Errorf("ROUSE_BINARY: %w (run make bench)", err)
	}
	if b.provider, err = startProvider(); err != nil {
		return err
	}
	defer b.provider.stop()
	for _, f := range figures {
		if len(names) > 0 && !slices.Contains(names, f.name) {
			continue
		}
		fmt.Printf("\n%s (%s)\n", f.name, time.Now().Format("15:04:05"))
		if err := f.run(b); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// row prints one measured value, the peer's, and their ratio (peer ÷ Rouse).
func row(what string, ours, peers float64, unit string) {
	if peers == 0 {
		fmt.Printf("  %-44s rouse %10.2f %s\n", what, ours, unit)
		return
	}
	fmt.Printf("  %-44s rouse %10.2f   opencode %10.2f %-4s  ratio %.1f\n", what, ours, peers, unit, peers/ours)
}

// quantile of unsorted values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}
