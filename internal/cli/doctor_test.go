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
