// Command rouse runs coding agents headless: see rouse --help.
package main

import (
	"context"
	"os"

	"rouse/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
