package limits

// label is the provider's name for people; an id without one is its own.
func label(id string) string {
	if id == "" {
		return "unknown"
	}
	if l, ok := labels[id]; ok {
		return l
	}
	return id
}

var labels = map[string]string{
	"alibaba":             "Alibaba DashScope",
	"amazon-bedrock":      "Amazon Bedrock",
	"amazon-q":            "Amazon Q",
	"anthropic":           "Anthropic",
	"antigravity":         "Google Antigravity",
	"azure":               "Azure OpenAI",
	"cerebras":            "Cerebras",
	"cursor":              "Cursor",
	"deepseek":            "DeepSeek",
	"github-copilot":      "GitHub Copilot",
	"google":              "Google Gemini",
	"google-cloudcode":    "Google Cloud Code",
	"google-vertex":       "Google Vertex AI",
	"groq":                "Groq",
	"huawei":              "Huawei ModelArts",
	"kimi-for-coding":     "Kimi Code",
	"minimax":             "MiniMax",
	"mistral":             "Mistral",
	"moonshotai":          "Moonshot AI",
	"ollama-cloud":        "Ollama Cloud",
	"openai":              "OpenAI",
	"openai-codex":        "OpenAI Codex",
	"opencode":            "OpenCode Zen",
	"opencode-go":         "OpenCode Go",
	"openrouter":          "OpenRouter",
	"qwen-oauth":          "Qwen",
	"volcengine":          "Volcengine Ark",
	"xai":                 "xAI",
	"xiaomi":              "Xiaomi MiMo",
	"zai":                 "Z.ai",
	"zai-coding-plan":     "Z.ai",
	"zhipuai":             "Zhipu AI",
	"zhipuai-coding-plan": "Zhipu AI",
}
