package agents

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/egress"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, env, want string }{
		{"claude", "", "api.anthropic.com console.anthropic.com platform.claude.com"},
		{"claude", "ANTHROPIC_API_KEY=k", "api.anthropic.com"},
		{"claude", "ANTHROPIC_API_KEY=k ANTHROPIC_BASE_URL=http://127.0.0.1:18080/s/x", "http://127.0.0.1:18080"},
		{"claude", "ANTHROPIC_BASE_URL=https://user:pw@gw.example.com/v1?k=1", "https://gw.example.com"},
		{"claude", "CLAUDE_CODE_USE_BEDROCK=1 AWS_REGION=eu-west-1", "bedrock-runtime.eu-west-1.amazonaws.com"},
		{"claude", "CLAUDE_CODE_USE_VERTEX=1 CLOUD_ML_REGION=global", "aiplatform.googleapis.com oauth2.googleapis.com"},
		{"claude", "CLAUDE_CODE_USE_VERTEX=1 CLOUD_ML_REGION=us-east5", "aiplatform.googleapis.com oauth2.googleapis.com us-east5-aiplatform.googleapis.com"},
		{"codex", "", "api.openai.com auth.openai.com chatgpt.com"},
		{"codex", "CODEX_API_KEY=k", "api.openai.com"},
		{"codex", "OPENAI_BASE_URL=gw.example.com:8443/v1", "https://gw.example.com:8443"},
		{"gemini", "GEMINI_API_KEY=k", "generativelanguage.googleapis.com"},
		{"gemini", "GEMINI_API_KEY=k GOOGLE_GEMINI_BASE_URL=http://[::1]:80", "http://[::1]:80"},
		{"qwen", "OPENAI_API_KEY=k OPENAI_BASE_URL=https://gw.example.com/v1", "https://gw.example.com"},
		{"copilot", "COPILOT_PROVIDER_BASE_URL=http://localhost:1234/v1", "http://localhost:1234"},
		{"opencode", "", ""},
		{"opencode", "ANTHROPIC_API_KEY=k OPENAI_API_KEY=k", "api.anthropic.com api.openai.com"},
		{"goose", "OLLAMA_HOST=127.0.0.1", "http://127.0.0.1:11434"},
		{"aider", "OPENROUTER_API_KEY=k OPENAI_API_BASE=http://localhost:1/v1", "http://localhost:1 openrouter.ai"},
		{"unknown", "ANTHROPIC_API_KEY=k", ""},
	} {
		got := Endpoints(test.name, func(name string) string {
			for kv := range strings.FieldsSeq(test.env) {
				if v, ok := strings.CutPrefix(kv, name+"="); ok {
					return v
				}
			}
			return ""
		})
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s with %s: %v, want %s", test.name, test.env, got, test.want)
		}
	}
}

// Every endpoint of the programs is one.
func TestEndpointsAreOnes(t *testing.T) {
	t.Parallel()
	for _, r := range Table() {
		for _, see := range []func(string) string{nil, func(string) string { return "x" }} {
			for _, text := range Endpoints(r.Name, see) {
				if _, err := egress.ParseEndpoint(text); err != nil {
					t.Errorf("%s: %v", r.Name, err)
				}
			}
		}
	}
}
