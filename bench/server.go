package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// server is one of the two programs, running.
type server struct {
	name  string
	url   string
	token string
	cmd   *exec.Cmd
	took  time.Duration // from the start of the process to the first 200
}

// models that both are configured with.
func (b *bench) modelConfig() map[string]any {
	models := map[string]any{}
	for _, id := range []string{"instant", "drip-50", "drip-20"} {
		models[id] = map[string]any{"name": id, "limit": map[string]int{"context": 128000, "output": 8000}, "tool_call": true}
	}
	return map[string]any{"model": "mock/instant", "small_model": "mock/instant", "provider": map[string]any{"mock": map[string]any{
		"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": map[string]string{"baseURL": b.provider.url, "apiKey": "x"}, "models": models}}}
}

// home makes an isolated home with the configuration for both programs.
func (b *bench) home(name string) (string, []string, error) {
	home := filepath.Join(b.dir, name)
	conf := filepath.Join(home, ".config", "opencode")
	if err := os.MkdirAll(conf, 0o700); err != nil {
		return "", nil, err
	}
	raw, err := json.Marshal(b.modelConfig())
	if err != nil {
		return "", nil, err
	}
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "XDG_DATA_HOME="+filepath.Join(home, ".local/share"),
		"XDG_STATE_HOME="+filepath.Join(home, ".local/state"), "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "ROUSE_KEYRING=off",
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_SHARE=1")
	return home, env, os.WriteFile(filepath.Join(conf, "opencode.json"), raw, 0o600)
}

func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startRouse runs rouse on a data folder ("" makes one).
func (b *bench) startRouse(data string) (*server, error) {
	home, env, err := b.home("rouse")
	if err != nil {
		return nil, err
	}
	if data == "" {
		if data, err = os.MkdirTemp(home, "data-"); err != nil {
			return nil, err
		}
	}
	port := strconv.Itoa(freePort())
	s := &server{name: "rouse", url: "http://127.0.0.1:" + port, cmd: exec.Command(b.rouse, "serve", "--port", port, "--data", data)}
	if b.config != "" {
		env = append(env, "ROUSE_CONFIG="+b.config)
	}
	s.cmd.Env, s.cmd.Dir, s.cmd.Stderr = env, home, os.Stderr
	if os.Getenv("BENCH_QUIET") != "" {
		s.cmd.Stderr = nil
	}
	return s, s.begin(func() { s.token = readToken(data) })
}

func readToken(data string) string {
	raw, _ := os.ReadFile(filepath.Join(data, "token")) // not there yet: asked again
	return strings.TrimSpace(string(raw))
}

// startOpenCode runs the peer in a git repository of its own.
func (b *bench) startOpenCode() (*server, error) {
	home, env, err := b.home("opencode")
	if err != nil {
		return nil, err
	}
	repo := filepath.Join(home, "repo")
	if _, err := os.Stat(repo); err != nil {
		for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-q", "--allow-empty", "-m", "x"}} {
			if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("git: %w: %s", err, out)
			}
		}
	}
	port := strconv.Itoa(freePort())
	s := &server{name: "opencode", url: "http://127.0.0.1:" + port, cmd: exec.Command(b.opencode, "serve", "--port", port)}
	s.cmd.Env, s.cmd.Dir = env, repo
	return s, s.begin(func() {})
}

// begin starts the process and waits for the first 200.
func (s *server) begin(look func()) error {
	start := time.Now()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	client := &http.Client{Timeout: 3 * time.Second}
	defer client.CloseIdleConnections()
	for time.Since(start) < time.Minute {
		look()
		req, err := s.request("GET", "/global/health", nil)
		if err != nil {
			return err
		}
		if s.name == "opencode" && !listening(s.url) { // it never answers what comes before it listens
			<-time.After(5 * time.Millisecond)
			continue
		}
		if res, err := client.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == 200 {
				s.took = time.Since(start)
				return nil
			}
		}
		<-time.After(2 * time.Millisecond)
	}
	return fmt.Errorf("%s did not answer", s.name)
}

func listening(url string) bool {
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// stop ends the process and waits.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	done := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-done
	}
}

// rss is resident memory in MB, cpu the seconds used so far, written the MB
// that went to disk.
func (s *server) rss() float64 {
	for line := range strings.Lines(s.proc("status")) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			var kb float64
			_, _ = fmt.Sscan(v, &kb)
			return kb / 1024
		}
	}
	return 0
}

func (s *server) cpu() float64 {
	stat := s.proc("stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // USER_HZ
}

func (s *server) written() float64 {
	for line := range strings.Lines(s.proc("io")) {
		if v, ok := strings.CutPrefix(line, "write_bytes:"); ok {
			var n float64
			_, _ = fmt.Sscan(v, &n)
			return n / 1e6
		}
	}
	return 0
}

func (s *server) proc(name string) string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.cmd.Process.Pid, name)) // gone: zero
	return string(raw)
}
