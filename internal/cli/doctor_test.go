package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rouse"
)

// doctor runs it and gives what it prints, as words with one space between.
func doctor(t *testing.T, args ...string) (text string, code int) {
	t.Helper()
	var out, side bytes.Buffer
	code = Main(t.Context(), append([]string{"doctor"}, args...), nil, &out, &side)
	return strings.Join(strings.Fields(out.String()), " "), code
}

// TestDoctorOfADataFolderThatIsNone: what stands in its way is named, and no
// other file is blamed for it.
func TestDoctorOfADataFolderThatIsNone(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(file, []byte("root:x:0:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		file:                          "fail data " + file + " is not a folder",
		filepath.Join(file, "a", "b"): "fail data the data folder " + filepath.Join(file, "a", "b") + " cannot be ",
	} {
		text, code := doctor(t, "--data", dir)
		if code != exitInternal || !strings.Contains(text, want) {
			t.Errorf("%s: code %d, %s", dir, code, text)
		}
		if strings.Contains(text, "rouse.jsonc:") {
			t.Errorf("%s: the configuration is blamed: %s", dir, text)
		}
	}
	if text, _ := doctor(t, "--data", file); strings.Contains(text, "accounts.json") {
		t.Errorf("the accounts are blamed: %s", text)
	}
}

// TestDoctorOfAServer: a server that answers may still refuse all work.
func TestDoctorOfAServer(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	ready := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			w.WriteHeader(ready)
			fmt.Fprint(w, `{}`)
		default:
			fmt.Fprintf(w, `{"healthy":true,"version":%q}`, rouse.Version)
		}
	}))
	defer srv.Close()
	for status, want := range map[int]string{
		http.StatusOK:                 "ok server " + srv.URL + " answers",
		http.StatusServiceUnavailable: "fail server " + srv.URL + " answers, but its database refuses writes",
	} {
		ready = status
		if text, _ := doctor(t, "--server", srv.URL, "--data", t.TempDir()); !strings.Contains(text, want) {
			t.Errorf("%d: %s", status, text)
		}
	}
}

// TestWhatIsKnownOfAnAgent: a program that is there is not said to take work
// before it was started once; then, what that brought is said.
func TestWhatIsKnownOfAnAgent(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "opencode"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	report := "null"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/provider":
			fmt.Fprint(w, `{"all":[{"id":"acp:opencode","name":"OpenCode (agent)","source":"acp","models":{}}],"connected":["acp:opencode"]}`)
		case "/agent":
			fmt.Fprint(w, `[]`)
		case "/rouse/v1/agents":
			fmt.Fprintf(w, `{"programs":[{"name":"opencode","provider_id":"acp:opencode","installed":true,"report":%s}]}`, report)
		default:
			fmt.Fprintf(w, `{"healthy":true,"version":%q}`, rouse.Version)
		}
	}))
	defer srv.Close()
	for _, x := range []struct{ report, state, why, doctor string }{
		{"null", "not probed", "`rouse agents opencode` says whether", "ok provider acp:opencode: installed; `rouse agents opencode` says whether"},
		{`{"starts":true,"authenticated":"false","problem":"it wants a login: opencode auth login"}`, "fails", "it wants a login", "warn provider acp:opencode: the agent program fails: it wants a login"},
		{`{"starts":true,"authenticated":"true"}`, "usable", "", "ok provider acp:opencode: the agent program works"},
	} {
		report = x.report
		var out, side bytes.Buffer
		if code := Main(t.Context(), []string{"providers", "--server", srv.URL}, nil, &out, &side); code != exitDone ||
			!strings.Contains(out.String(), " "+x.state+" ") || !strings.Contains(out.String(), x.why) {
			t.Errorf("%s: code %d, %s %s", x.state, code, out.String(), side.String())
		}
		if text, _ := doctor(t, "--server", srv.URL, "--data", t.TempDir()); !strings.Contains(text, x.doctor) {
			t.Errorf("%s: %s", x.state, text)
		}
	}
	var out, side bytes.Buffer
	if Main(t.Context(), []string{"providers", "--data", t.TempDir()}, nil, &out, &side); !strings.Contains(out.String(), " not probed ") {
		t.Errorf("without a server: %s %s", out.String(), side.String())
	}
}
