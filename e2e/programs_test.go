//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// program is a real agent program: how a person sets it up, what its tools
// are called, and how its provider says that something is wrong.
type program struct {
	name, model string
	// setUp writes the person's configuration below home, for a model at url,
	// and returns what goes into the agent's env.
	setUp func(t *testing.T, home, url string) map[string]string
	// keyed is the environment of a person with a key, for a model at url; the
	// model has another name then where asks says so.
	keyed func(t *testing.T, home, url string) map[string]string
	asks  string
	// isolate: it goes through the gateway only with a folder of its own.
	isolate bool
	write   func(path, content string) modelserver.Tool
	shell   func(command string) modelserver.Tool

	// cost is what the program itself reports for 2500 tokens in, 300
	// more from a cache and 60 out; 0 when it reports none.
	cost loop.MicroUSD
	// iteration is what pawl says that 200 tokens in and 20 out cost, in
	// dollars; 0 when nobody knows.
	iteration float64

	limited, badKey, overloaded, tooLong, quota modelserver.Reply
}

// costs is whether pawl says the right cost of that many iterations.
func (p program) costs(got *float64, iterations float64) bool {
	if p.iteration == 0 {
		return got == nil || *got == 0
	}
	return near(got, p.iteration*iterations)
}

var programs = []program{claudeProgram, codexProgram, opencodeProgram, geminiProgram}

// key is what the programs show to the model.
const key = "dummy-key-of-a-test"

var claudeProgram = program{
	name: "claude", model: "claude-sonnet-4-5",
	cost: 7500 + 900 + 90, iteration: 0.0009, // at 3, 15 and, cached, 0.30 dollars a million
	setUp: func(_ *testing.T, _, url string) map[string]string {
		return map[string]string{"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}
	},
	keyed: func(_ *testing.T, _, url string) map[string]string {
		return map[string]string{"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}
	},
	write: func(path, content string) modelserver.Tool {
		return modelserver.Tool{Name: "Write", Input: map[string]any{"file_path": path, "content": content}}
	},
	shell: func(command string) modelserver.Tool {
		return modelserver.Tool{Name: "Bash", Input: map[string]any{"command": command, "description": "scripted"}}
	},
	limited: modelserver.Reply{Status: 429, Type: "rate_limit_error", Message: "Rate limit reached: 50 requests per minute.",
		Header: map[string]string{"retry-after": "1"}},
	badKey:     modelserver.Reply{Status: 401, Type: "authentication_error", Message: "invalid x-api-key"},
	overloaded: modelserver.Reply{Status: 529, Type: "overloaded_error", Message: "Overloaded"},
	tooLong:    modelserver.Reply{Status: 400, Type: "invalid_request_error", Message: "prompt is too long: 210000 tokens > 200000 maximum"},
	quota: modelserver.Reply{Status: 429, Type: "rate_limit_error", Message: "This request would exceed your account's rate limit. Please try again later.",
		Header: map[string]string{"retry-after": "10800", "x-should-retry": "false"}},
}

var codexProgram = program{
	name: "codex", model: "scripted-model",
	setUp: func(t *testing.T, home, url string) map[string]string {
		dir := filepath.Join(home, "codex")
		keep(t, filepath.Join(dir, "config.toml"), `model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = `+strconv.Quote(url+"/v1")+`
env_key = "SCRIPTED_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`)
		return map[string]string{"CODEX_HOME": dir, "SCRIPTED_API_KEY": key}
	},
	keyed: func(_ *testing.T, _, url string) map[string]string {
		return map[string]string{"OPENAI_BASE_URL": url + "/v1", "CODEX_API_KEY": key}
	},
	asks: "gpt-5",
	write: func(path, content string) modelserver.Tool {
		return modelserver.Tool{Name: "exec_command", Input: map[string]any{"cmd": "printf %s " + quoted(content) + " > " + quoted(path)}}
	},
	shell: func(command string) modelserver.Tool {
		return modelserver.Tool{Name: "exec_command", Input: map[string]any{"cmd": command}}
	},
	limited: modelserver.Reply{Status: 429, Type: "requests", Code: "rate_limit_exceeded",
		Message: "Rate limit reached for scripted-model on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 1s.",
		Header:  map[string]string{"retry-after": "1"}},
	badKey:     modelserver.Reply{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key provided."},
	overloaded: modelserver.Reply{Status: 503, Type: "server_error", Message: "The server is overloaded."},
	tooLong: modelserver.Reply{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded",
		Message: "Your input exceeds the context window of this model. Please adjust your input and try again."},
	quota: modelserver.Reply{Status: 429, Type: "usage_limit_reached", Message: "The usage limit has been reached",
		Details: map[string]any{"plan_type": "plus", "resets_at": time.Now().Add(3 * time.Hour).Unix()}},
}

var opencodeProgram = program{
	name: "opencode", model: "scripted/scripted-model",
	cost: 7500 + 900, iteration: 0.0009, // as configured below, where cached tokens cost nothing
	setUp: func(t *testing.T, home, url string) map[string]string {
		file := filepath.Join(home, "opencode.json")
		b, err := json.Marshal(map[string]any{"provider": map[string]any{"scripted": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "Scripted",
			"options": map[string]any{"baseURL": url + "/v1", "apiKey": "{env:SCRIPTED_API_KEY}"},
			"models": map[string]any{"scripted-model": map[string]any{
				"name": "Scripted", "limit": map[string]any{"context": 200_000, "output": 8000}, "cost": map[string]any{"input": 3, "output": 15},
			}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		keep(t, file, string(b))
		return map[string]string{"OPENCODE_CONFIG": file, "SCRIPTED_API_KEY": key}
	},
	keyed: func(_ *testing.T, _, url string) map[string]string {
		return map[string]string{"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}
	},
	asks: "anthropic/claude-sonnet-4-5",
	write: func(path, content string) modelserver.Tool {
		return modelserver.Tool{Name: "write", Input: map[string]any{"filePath": path, "content": content}}
	},
	shell: func(command string) modelserver.Tool {
		return modelserver.Tool{Name: "bash", Input: map[string]any{"command": command, "description": "scripted"}}
	},
	limited: modelserver.Reply{Status: 429, Type: "rate_limit_error", Message: "Rate limit reached.",
		Header: map[string]string{"retry-after": "1"}},
	badKey:     modelserver.Reply{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key provided."},
	overloaded: modelserver.Reply{Status: 503, Type: "server_error", Message: "The server is overloaded."},
	tooLong: modelserver.Reply{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded",
		Message: "Your input exceeds the context window of this model. Please adjust your input and try again."},
	quota: modelserver.Reply{Status: 429, Type: "usage_limit_reached", Message: "The usage limit has been reached",
		Header: map[string]string{"retry-after": "10800"}},
}

var geminiProgram = program{
	name: "gemini", model: "gemini-2.5-flash",
	iteration: 0.00011, // by pawl's price table
	setUp: func(t *testing.T, home, url string) map[string]string {
		// Without it the program refuses to start with a server of one's own.
		keep(t, filepath.Join(home, ".gemini", "settings.json"), `{"security": {"auth": {"selectedType": "gemini-api-key"}}}`)
		return map[string]string{"GEMINI_CLI_HOME": home, "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": key}
	},
	keyed: func(_ *testing.T, _, url string) map[string]string {
		return map[string]string{"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": key}
	},
	write: func(path, content string) modelserver.Tool {
		return modelserver.Tool{Name: "write_file", Input: map[string]any{"file_path": path, "content": content}}
	},
	shell: func(command string) modelserver.Tool {
		return modelserver.Tool{Name: "run_shell_command", Input: map[string]any{"command": command, "description": "scripted"}}
	},
	limited: modelserver.Reply{Status: 429, Message: "You exceeded your current quota.", Code: "RATE_LIMIT_EXCEEDED",
		Header: map[string]string{"retry-after": "1"}},
	badKey:     modelserver.Reply{Status: 400, Message: "API key not valid. Please pass a valid API key.", Code: "API_KEY_INVALID"},
	overloaded: modelserver.Reply{Status: 503, Message: "The model is overloaded. Please try again later."},
	tooLong:    modelserver.Reply{Status: 400, Message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."},
	quota: modelserver.Reply{Status: 429, Message: "You exceeded your current quota, please check your plan and billing details.",
		Details: map[string]any{"details": []any{map[string]any{
			"@type": "type.googleapis.com/google.rpc.QuotaFailure",
			"violations": []any{map[string]any{
				"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
				"quotaId":     "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
			}},
		}}}},
}

// keep writes a file of the person's.
func keep(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// quoted is a text as one word of a shell; it holds no single quote here.
func quoted(s string) string { return "'" + s + "'" }
