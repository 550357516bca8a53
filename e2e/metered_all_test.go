//go:build e2e && e2e_all

package e2e

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// keyedOnly are programs that are driven through the gateway only.
var keyedOnly = []program{
	{
		name: "cline", model: "claude-sonnet-4-5", isolate: true, keyed: anthropicKey,
		shell: func(command string) modelserver.Tool {
			return modelserver.Tool{Name: "run_commands", Input: map[string]any{"commands": []string{command}}}
		},
	},
	{
		name: "droid", model: "custom:claude-sonnet-4-5", isolate: true, keyed: anthropicKey,
		shell: func(command string) modelserver.Tool {
			tool := shellOf("Execute")(command)
			tool.Input["riskLevelReason"], tool.Input["riskLevel"] = "scripted", "low" // it asks for them where it is not to skip questions
			return tool
		},
	},
	{
		name: "kilo", model: "anthropic/claude-sonnet-4-5", keyed: anthropicKey, shell: shellOf("bash"),
	},
	{
		name: "qwen", model: "gpt-5", keyed: keyOf("OPENAI_API_KEY", "OPENAI_BASE_URL"), shell: geminiProgram.shell,
	},
	{
		name: "copilot", model: "gpt-5", keyed: keyOf("COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BASE_URL", "COPILOT_OFFLINE"),
		shell: shellOf("bash"),
	},
	{
		name: "kimi", shell: shellOf("Bash"),
		keyed: func(_ *testing.T, _, url string) map[string]string {
			return map[string]string{"KIMI_MODEL_NAME": "gpt-5", "KIMI_MODEL_API_KEY": key, "KIMI_MODEL_BASE_URL": url + "/v1"}
		},
	},
}

func anthropicKey(_ *testing.T, _, url string) map[string]string {
	return map[string]string{"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}
}

// keyOf is a person with a key in one variable and an address in another; on are
// switched on.
func keyOf(variable, base string, on ...string) func(*testing.T, string, string) map[string]string {
	return func(_ *testing.T, _, url string) map[string]string {
		env := map[string]string{variable: key, base: url + "/v1"}
		for _, name := range on {
			env[name] = "true"
		}
		return env
	}
}

func shellOf(name string) func(string) modelserver.Tool {
	return func(command string) modelserver.Tool {
		return modelserver.Tool{Name: name, Input: map[string]any{"command": command, "description": "scripted"}}
	}
}
