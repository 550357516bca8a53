package agents

import (
	"slices"
)

// providers are the variables from which programs read the keys and addresses
// of model providers. * stands for any characters.
var providers = []string{
	"ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_GEMINI_*",
	"MISTRAL_*", "CODESTRAL_*", "DEEPSEEK_*", "GROQ_*",
	"XAI_*", "OPENROUTER_*", "TOGETHER_*", "TOGETHERAI_*", "FIREWORKS_*", "CEREBRAS_*", "COHERE_*", "PERPLEXITY_*",
	"DASHSCOPE_*", "MOONSHOT_*", "ZAI_*", "ZHIPU_*", "MINIMAX_*", "NVIDIA_API_KEY",
	"AZURE_OPENAI_*", "AZURE_API_*", "AZURE_RESOURCE_NAME", "AWS_BEARER_TOKEN_BEDROCK", "HF_TOKEN", "OLLAMA_*",
	"LITELLM_*", "LM_STUDIO_*", "VERTEXAI_*", "AI_GATEWAY_*",
}

// ownVariables are those of the programs with one provider, or with settings
// of their own.
var ownVariables = map[string][]string{
	"aider":    {"AIDER_*"},
	"amp":      {"AMP_*"},
	"claude":   {"ANTHROPIC_*", "CLAUDE_*", "AWS_BEARER_TOKEN_BEDROCK"},
	"cline":    {"CLINE_*"},
	"codex":    {"OPENAI_*", "CODEX_*", "AZURE_OPENAI_*"},
	"copilot":  {"COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"},
	"crush":    {"CRUSH_*"},
	"cursor":   {"CURSOR_*"},
	"droid":    {"FACTORY_*", "DROID_*"},
	"gemini":   {"GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GEMINI_*", "GOOGLE_GENAI_*"},
	"goose":    {"GOOSE_*"},
	"kilo":     {"KILO_*", "OPENCODE_*"},
	"kiro":     {"KIRO_*"},
	"opencode": {"OPENCODE_*"},
	"qwen":     {"QWEN_*", "OPENAI_*", "DASHSCOPE_*"},
	"script":   {},
}

// single are the programs that talk to no other provider than their own.
var single = []string{"amp", "claude", "codex", "copilot", "cursor", "droid", "gemini", "kiro", "qwen", "script"}

// clouds are variables of a cloud that a program needs when it is told, by
// another variable, to reach its model there.
var clouds = []struct {
	agent, when string
	needs       []string
}{
	{"claude", "CLAUDE_CODE_USE_BEDROCK", []string{"AWS_*"}},
	{"claude", "CLAUDE_CODE_USE_VERTEX", []string{"GOOGLE_*", "GCLOUD_*", "CLOUD_ML_*"}},
	{"gemini", "GOOGLE_GENAI_USE_VERTEXAI", []string{"GOOGLE_*", "GCLOUD_*"}},
	{"gemini", "GOOGLE_GENAI_USE_GCA", []string{"GOOGLE_*"}},
}

// Variables are patterns of the names of variables that an agent reads its
// credentials and addresses from: those that a level that withholds secrets
// must leave. A user's own agent that prints the format of a known one has
// that one's; of any other it is not known which provider it talks to, so all
// are left. getenv is the environment that the agent inherits.
func Variables(name, output string, getenv func(string) string) []string {
	if _, known := ownVariables[name]; !known || output != "" {
		name = output
	}
	out := slices.Clone(ownVariables[name])
	if !slices.Contains(single, name) {
		out = append(out, providers...)
	}
	for _, c := range clouds {
		if v := getenv(c.when); c.agent == name && v != "" && v != "0" && v != "false" {
			out = append(out, c.needs...)
		}
	}
	return out
}
