package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what another program does; loaded
// machines are slow.
const patience = 90 * time.Second

var (
	binary        string // rouse
	peers         string // where scripts/peers.sh put OpenCode and its SDK
	agentPrograms string // where scripts/agents.sh put the agents
)

func TestMain(m *testing.M) {
	peers, agentPrograms = folder("ROUSE_PEERS", "peers"), folder("ROUSE_AGENTS", "agents")
	binary = os.Getenv("ROUSE_BINARY")
	dir := ""
	if _, err := os.Stat(filepath.Join(peers, "opencode")); err == nil && binary == "" {
		dir, err = os.MkdirTemp("", "rouse-peers")
		if err == nil {
			binary = filepath.Join(dir, "rouse")
			out, err := exec.Command("go", "build", "-o", binary, "rouse/cmd/rouse").CombinedOutput()
			if err != nil {
				os.Stderr.Write(out)
				os.Exit(1)
			}
		}
	}
	code := m.Run()
	if dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// folder is where a script installs.
func folder(variable, name string) string {
	if dir := os.Getenv(variable); dir != "" {
		return dir
	}
	dir, err := filepath.Abs(filepath.Join("..", ".cache", name))
	if err != nil {
		return ""
	}
	return dir
}

// needPeers skips where the clients are not installed. Who names their folder
// (`make test` does) wants them: there it fails.
func needPeers(t *testing.T, tools ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("real clients are slow")
	}
	if _, err := os.Stat(filepath.Join(peers, "opencode")); err != nil {
		absent(t, "the real clients are not installed: scripts/peers.sh")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			absent(t, tool+" is missing")
		}
	}
}

func absent(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("ROUSE_PEERS") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// server is a running `rouse serve` with its own home and project.
type server struct {
	t       *testing.T
	url     string
	token   string
	home    string
	project string
	args    []string // of serve, beyond the usual ones
	extra   []string // of its environment

	cmd *exec.Cmd // nil while it does not run
	log *journal
}

// place makes home and project of a server that does not run yet.
func place(t *testing.T, config string) *server {
	t.Helper()
	s := &server{t: t, home: home(t), project: filepath.Join(t.TempDir(), "project"), log: &journal{}}
	s.write(filepath.Join(s.project, "README.md"), "# lab\n")
	s.write(filepath.Join(s.project, ".git", "HEAD"), "ref: refs/heads/master\n")
	s.write(filepath.Join(s.home, ".config", "rouse", "rouse.jsonc"), config)
	t.Cleanup(func() {
		if s.cmd != nil {
			s.stop()
		}
		if t.Failed() {
			t.Logf("server's log:\n%s", s.log)
		}
	})
	return s
}

// serve starts a server whose default model is the drill's model.
func serve(t *testing.T, model string) *server {
	t.Helper()
	s := place(t, `{"model": "drill/`+model+`"}`)
	s.args = []string{"--drill"}
	s.start()
	return s
}

// start runs the server, on the same data as before.
func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(binary, append([]string{"serve", "--port", "0", "--data", s.data(), "--ready-json"}, s.args...)...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = s.project, append(s.env(), s.extra...), s.log
	var ready struct {
		URL       string
		TokenFile string `json:"token_file"`
	}
	s.firstLine(s.cmd, &ready)
	s.url = ready.URL
	raw, err := os.ReadFile(ready.TokenFile)
	if err != nil {
		s.t.Fatal(err)
	}
	s.token = strings.TrimSpace(string(raw))
}

// firstLine starts a program and reads the JSON object that it begins with.
func (s *server) firstLine(cmd *exec.Cmd, into any) {
	s.t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, into) != nil {
		s.t.Fatalf("no ready line: %v %s", err, s.log)
	}
}

// stop ends the server as its terminal does, and waits for it.
func (s *server) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(os.Interrupt)
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("rouse serve: %v", err)
	}
	s.cmd = nil
}

// kill ends it without a word.
func (s *server) kill() {
	s.t.Helper()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

func (s *server) data() string { return filepath.Join(s.home, "data") }

// home is a folder whose removal waits for programs that are still leaving:
// OpenCode writes its state when its terminal is gone.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rouse-home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		deadline := time.Now().Add(10 * time.Second)
		for os.RemoveAll(dir) != nil && time.Now().Before(deadline) {
			<-tick.C
		}
	})
	return dir
}

func (s *server) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// env is the isolated environment of all programs of a test; it also tells
// OpenCode to fetch nothing.
func (s *server) env() []string {
	return []string{
		"HOME=" + s.home, "XDG_CONFIG_HOME=" + filepath.Join(s.home, ".config"), "XDG_DATA_HOME=" + filepath.Join(s.home, ".local", "share"),
		"XDG_STATE_HOME=" + filepath.Join(s.home, ".local", "state"), "XDG_CACHE_HOME=" + filepath.Join(s.home, ".cache"),
		"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "ROUSE_KEYRING=off",
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_SHARE=1",
	}
}

// call makes a request to the server and reads the answer.
func (s *server) call(method, path string, body, into any) {
	s.t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, s.url+path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode > 299 {
		s.t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, raw, err)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			s.t.Fatalf("%s: %v", raw, err)
		}
	}
}

type sessionRow struct {
	ID, Title, Agent, State string
	Outcome                 string
	Directory               string
	MessageCount, Queued    int
	ParentID                string
}

// sessions lists what there is, most recently used first.
func (s *server) sessions() (list []sessionRow) {
	s.t.Helper()
	s.call("GET", "/session", nil, &list)
	return list
}

// last is the session used last.
func (s *server) last() sessionRow {
	s.t.Helper()
	list := s.sessions()
	if len(list) == 0 {
		s.t.Fatal("there is no session")
	}
	return list[0]
}

// state and messages are those of the session used last; "" and 0 when there
// is none yet.
func (s *server) state() string {
	if list := s.sessions(); len(list) > 0 {
		return list[0].State
	}
	return ""
}

func (s *server) messages() int {
	if list := s.sessions(); len(list) > 0 {
		return list[0].MessageCount
	}
	return 0
}
