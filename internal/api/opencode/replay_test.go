package opencode_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// staticCases are the recorded requests without a turn, with the session each
// of them needs: "" none, new, unknown, noted (eight messages without a
// reply), parent (a session with a child).
var staticCases = map[string]string{
	"abort-idle": "new", "abort-unknown": "unknown", "get-message-one-unknown": "new",
	"get-experimental-capabilities": "", "get-experimental-console": "", "get-experimental-resource": "", "get-experimental-workspace": "",
	"get-experimental-workspace-status": "", "get-tool-ids": "", "get-file": "", "get-file-content": "", "get-file-status": "", "get-find": "",
	"get-find-file": "", "get-find-symbol": "", "get-formatter": "", "get-lsp": "", "get-mcp": "", "get-global-health": "",
	"get-path": "", "dir-query": "", "dir-header": "", "get-project": "", "get-project-current": "", "get-provider-auth": "", "get-vcs": "",
	"get-v2-health": "", "get-v2-location": "", "get-agent": "", "get-config": "", "get-config-providers": "",
	"get-permission-list-empty": "", "get-question-list-empty": "", "get-session-list-empty": "", "get-session-status-empty": "",
	"get-session": "new", "get-session-children": "parent", "get-session-diff-empty": "new", "get-session-todo-empty": "new",
	"get-session-message-empty": "new", "get-session-message-unknown-session": "unknown", "get-session-unknown": "unknown", "get-session-badid": "",
	"get-session-list": "new", "get-session-list-limit1": "new", "get-session-list-roots": "new", "get-session-list-search": "new",
	"get-session-list-badlimit": "new", "session-list-otherdir": "",
	"get-unknown-path": "", "post-unknown": "", "unknown-api": "", "method-not-allowed": "",
	"post-session": "", "post-session-nobody": "", "post-session-title": "", "post-session-model": "", "post-session-parent": "new",
	"post-session-unknownfield": "", "post-session-badfield": "", "post-session-badjson": "", "post-session-badparent": "",
	"patch-session": "new", "patch-session-archive": "new", "patch-session-unknown": "unknown",
	"session-delete": "new", "session-delete-again": "unknown", "session-get-deleted": "unknown",
	"prompt-sync-bad-json": "new", "prompt-sync-bad-messageid": "new", "prompt-sync-bad-part": "new", "prompt-sync-empty-body": "new",
	"prompt-sync-model-string": "new", "prompt-sync-no-parts": "new", "prompt-sync-unknown-session": "unknown",
	"prompt_async-bad-json": "new", "prompt_async-bad-messageid": "new", "prompt_async-bad-part": "new", "prompt_async-empty-body": "new",
	"prompt_async-empty-parts": "new", "prompt_async-model-string": "new", "prompt_async-no-parts": "new", "prompt_async-unknown-session": "unknown",
	"messages-all": "noted", "messages-limit0": "noted", "messages-limit100": "noted", "messages-limit2": "noted", "messages-limit2-before": "noted",
	"messages-limit-bad": "noted", "messages-before-bad": "noted", "messages-before-nolimit": "noted", "message-one": "noted",
	"message-delete": "noted", "message-delete-again": "noted", "part-patch": "noted", "part-patch-mismatch": "noted", "part-delete": "noted",
	"permission-reply-unknown": "", "permission-reply-again": "", "question-reply-unknown": "",
	"command-unknown": "new", "shell-noagent": "new", "fork-unknown": "unknown", "share-disabled": "new", "unshare": "new", "diff": "new",
	"log": "", "log-bad": "",
}

func TestRecordedRequests(t *testing.T) {
	w := newWorld(t)
	for name, needs := range staticCases {
		t.Run(name, func(t *testing.T) {
			c := load(t, name)
			ids := w.prepare(t, c, needs)
			if strings.HasSuffix(name, "-status-empty") {
				w.settle(t)
			}
			w.replay(t, c, ids)
		})
	}
}

// Every recording is played by a test, or is listed with the reason why not.
func TestEveryRecordingIsUsed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordings, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		_, static := staticCases[name]
		_, turn := turnCases[name]
		_, other := otherCases[name]
		if !static && !turn && !other {
			t.Errorf("%s is played by no test", name)
		}
	}
	for name := range deviations {
		if _, err := os.Stat(filepath.Join(recordings, name+".json")); err != nil {
			t.Errorf("deviation %s: %v", name, err)
		}
	}
}

// settle waits until nothing runs: other cases share the world.
func (w *world) settle(t *testing.T) {
	t.Helper()
	l := w.listen(t)
	for string(w.do(t, "GET", "/session/status", nil, nil).raw) != "{}" {
		l.until(t, func(e *event) bool { return e.Type == "session.idle" || e.Type == "server.heartbeat" })
	}
}
