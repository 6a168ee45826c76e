package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"rouse"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print {version, commit, go, os, arch}."`
}

func (versionCmd) Help() string {
	return `Example:
  rouse version --json`
}

// Run prints the version.
func (c *versionCmd) Run(a *app) error {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	if c.JSON {
		return a.printJSON(struct {
			Version string `json:"version"`
			Commit  string `json:"commit"`
			Go      string `json:"go"`
			OS      string `json:"os"`
			Arch    string `json:"arch"`
		}{rouse.Version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH})
	}
	text := "rouse " + rouse.Version
	if commit != "" {
		text += " (" + short(commit, 12) + ")"
	}
	_, err := fmt.Fprintf(a.out, "%s %s %s/%s\n", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return rouse.Wrap("cli: print", err)
}
