package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSDK runs testdata/sdk.mjs, which speaks through both of the SDK's
// clients and ends with the first thing that is not as it should be.
func TestSDK(t *testing.T) {
	needPeers(t, "node")
	s := serve(t, "echo")
	script, err := os.ReadFile("testdata/sdk.mjs")
	if err != nil {
		t.Fatal(err)
	}
	// Beside the installed SDK, where node looks for it.
	name := filepath.Join(peers, "rouse-sdk-test.mjs")
	if err := os.WriteFile(name, script, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, "node", name, version, s.url, s.token, s.project)
			cmd.Env = s.env()
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
