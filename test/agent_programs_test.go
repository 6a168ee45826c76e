package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program is an agent program and how it is pointed at the simulated provider.
// What the agents do beside that was measured with the versions of
// scripts/agents.sh.
type program struct {
	name      string // in .cache/agents/bin; "opencode" is the one of the peers
	extends   string // the agent that it is; empty: its name
	arguments []string
	// env is what the program gets, files what lies in its home; PROVIDER stands
	// for the provider's address without /v1.
	env, files map[string]string
	model      string // as -m acp:NAME/model; empty: its configuration chooses
	confirmed  string // what is known of that choice while it works; nothing where none was made
	asks       bool   // it asks before it runs a command
	terse      bool   // it does not always say what a command printed
	// write is the call by which it makes a file, as the simulated model makes
	// it, where it asks before it does; FILE stands for the path.
	write string
	// silent: a usage limit leaves its prompt open and brings no evidence.
	silent bool
	// mum: a usage limit ends its turn without a word.
	mum bool
	// limit is the provider that it names with a usage limit (its Vendor, else
	// "acp:NAME"), resets that it says when the limit ends.
	limit  string
	resets bool
}

const openCodeConfig = `{"provider": {"drill": {"npm": "@ai-sdk/openai-compatible", "name": "Drill",
	"options": {"baseURL": "PROVIDER/v1", "apiKey": "x"}, "models": {"echo": {"name": "echo"}, "stream": {"name": "stream"}}}},
	"model": "drill/echo", "small_model": "drill/echo", "permission": {"bash": "ask", "edit": "ask"}}`

const codexConfig = `model = "echo"
model_provider = "drill"
[model_providers.drill]
name = "drill"
base_url = "PROVIDER/v1"
wire_api = "responses"
env_key = "DRILL_KEY"
`

func programs() []program {
	return []program{
		{name: "opencode", write: `tool=write input='{"filePath":"FILE","content":"new\n"}'`, arguments: []string{"acp"}, env: map[string]string{"OPENCODE_DISABLE_MODELS_FETCH": "1"},
			files: map[string]string{".config/opencode/opencode.json": openCodeConfig},
			model: "drill/echo", confirmed: "true", asks: true, limit: "drill", resets: true},
		{name: "claude", write: `tool=Write input='{"file_path":"FILE","content":"new\n"}'`, env: map[string]string{"ANTHROPIC_BASE_URL": "PROVIDER", "ANTHROPIC_API_KEY": "x", "ANTHROPIC_MODEL": "echo",
			"ANTHROPIC_SMALL_FAST_MODEL": "echo", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"},
			asks: true, limit: "anthropic", resets: true},
		{name: "gemini", write: `tool=write_file input='{"file_path":"FILE","content":"new\n"}'`, arguments: []string{"--acp"}, env: map[string]string{"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": "PROVIDER", "GEMINI_MODEL": "echo"},
			files: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}}`},
			model: "echo", confirmed: "true", asks: true, terse: true, limit: "google"},
		{name: "codex", env: map[string]string{"DRILL_KEY": "x"}, files: map[string]string{".codex/config.toml": codexConfig},
			terse: true, limit: "openai", resets: true},
		{name: "codex-zed", extends: "codex", env: map[string]string{"DRILL_KEY": "x"}, files: map[string]string{".codex/config.toml": "approval_policy = \"untrusted\"\n" + codexConfig},
			asks: true, limit: "openai", resets: true},
		{name: "qwen", write: `tool=write_file input='{"file_path":"FILE","content":"new\n"}'`, arguments: []string{"--acp"}, env: map[string]string{"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "PROVIDER/v1", "OPENAI_MODEL": "echo"},
			files: map[string]string{".qwen/settings.json": `{"security": {"auth": {"selectedType": "openai"}}}`},
			asks:  true, silent: true},
		{name: "copilot", arguments: []string{"--acp"}, env: map[string]string{"COPILOT_PROVIDER_BASE_URL": "PROVIDER/v1", "COPILOT_PROVIDER_API_KEY": "x",
			"COPILOT_MODEL": "echo", "COPILOT_OFFLINE": "true"},
			model: "echo", confirmed: "true", asks: true, limit: "github-copilot", resets: true},
		{name: "kilo", write: `tool=write input='{"filePath":"FILE","content":"new\n"}'`, arguments: []string{"acp"}, files: map[string]string{".config/kilo/kilo.json": openCodeConfig},
			model: "drill/echo", confirmed: "true", asks: true, silent: true},
		{name: "pi", files: map[string]string{".pi/agent/models.json": `{"providers": {"drill": {"baseUrl": "PROVIDER/v1", "api": "openai-completions", "apiKey": "x",
			"models": [{"id": "echo", "name": "echo", "contextWindow": 128000, "maxTokens": 8192}]}}}`},
			model: "drill/echo", confirmed: "true", mum: true},
	}
}

// find gives the program's file and skips where it is not to be had here.
func (p program) find(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("real agents are slow")
	}
	if p.name == "opencode" {
		needPeers(t)
		return filepath.Join(peers, "opencode")
	}
	file := filepath.Join(agentPrograms, "bin", p.name)
	if _, err := os.Stat(file); err == nil {
		return file
	}
	why, err := os.ReadFile(file + ".skipped")
	if err != nil {
		why = []byte("it is not installed: scripts/agents.sh")
	}
	t.Skipf("%s: %s", p.name, strings.TrimSpace(string(why)))
	return ""
}

// section is its entry of the server's configuration.
func (p program) section(file, provider string, more map[string]any) map[string]any {
	env := map[string]string{}
	for name, value := range p.env {
		env[name] = strings.ReplaceAll(value, "PROVIDER", provider)
	}
	entry := map[string]any{"command": append([]string{file}, p.arguments...), "env": env}
	if p.extends != "" {
		entry["extends"] = p.extends
	}
	for key, value := range more {
		entry[key] = value
	}
	return entry
}

func configOf(sections map[string]any) string {
	raw, err := json.Marshal(map[string]any{"acp": sections})
	if err != nil {
		return err.Error() // no JSON: the server says so
	}
	return string(raw)
}
