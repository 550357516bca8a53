// Package codex runs OpenAI's Codex headless and reads its stream of JSON
// lines (`codex exec --json`).
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin, at most 1,048,576 characters; more is exit 1
//     and no request.
//   - `turn.completed` and `turn.failed` end the stream. Only they and a
//     top-level `error` tell of failures; an item of type `error` is a notice.
//   - `turn.completed` has the usage of the whole thread, cached tokens within
//     the input. The stream tells nothing before it, and a cost never.
//   - The session's file, sessions/2026/11/23/rollout-…-ID.jsonl in its folder,
//     has a `token_count` after each model call, with the sum so far.
//   - Errors are prose: the HTTP status and the time of a reset are in the words.
//   - A failed call is tried again five times, a bad key too, in 8 to 26 s. A
//     connection that is refused is waited for without end.
//   - TERM ends it and the shells of its tools.
//
// The program's own sandbox and its questions are off at every safety level:
// what it may touch is enforced by pawl's sandbox, in which another one does
// not work. The package starts nothing itself.
package codex

import (
	"runtime"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
)

// Program is Codex. A login and the providers are in the user's own folder; the
// one key that it takes from the environment needs nothing of it.
func Program() program.Program {
	always := []string{
		"--skip-git-repo-check",
		// Both ask servers outside at every start.
		"--disable", "plugins", "--disable", "apps",
		"-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false",
	}
	return program.Program{
		Name: "codex", Binary: "codex", Wrapped: binaries(),
		Args:     []string{"exec", "--json"},
		Allow:    append([]string{"--dangerously-bypass-approvals-and-sandbox"}, always...),
		ReadOnly: append([]string{"--sandbox", "read-only"}, always...),
		Model:    "--model",
		Tools:    []string{"-c", "mcp_servers.pawl.command={pawl}", "-c", `mcp_servers.pawl.args=["mcp","--run",{tools}]`},
		PromptAt: "-",
		Limit:    1 << 20, Characters: true,
		State:  program.State{Env: []string{"CODEX_HOME={state}"}, Keys: []string{"CODEX_API_KEY"}},
		Doors:  []program.Door{door()},
		Grace:  5 * time.Second,
		Parser: "codex", Structured: true,
		Own:       program.Lines(NewParser),
		Folders:   []string{".codex"},
		Login:     ".codex/auth.json",
		Moves:     []program.Move{{Variable: "CODEX_HOME", Instead: []string{".codex"}}},
		Variables: []string{"OPENAI_*", "CODEX_*", "AZURE_OPENAI_*"}, Single: true,
		Services: []program.Service{
			{Hosts: program.OpenAI.Hosts, Base: []string{"OPENAI_BASE_URL"}},
			{Hosts: []string{"chatgpt.com", "auth.openai.com"},
				Unless: []string{"CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"}},
		},
		Usage:   &agent.UsageFile{Variable: "CODEX_HOME", Home: ".codex", Days: "sessions", Suffix: ".jsonl"},
		Install: "npm install -g @openai/codex",
		Facts: agent.Facts{
			Package: "npm @openai/codex", Versions: "0.169.0",
			Tokens: "after each model call, from its session's file",
			Cost:   "estimated from tokens, when the model is set and has a price",
			Problems: []string{
				"A connection that is refused is waited for without end: the iteration's time limit ends it.",
				"The time of a reset is told in words, to the minute.",
				"A failed call is tried five times more, with a bad key too; only a provider of the user's own can set it " +
					"(`request_max_retries`, `stream_max_retries`).",
				"The npm package's command keeps a Node process as parent with Node before 22.15: pawl starts the native binary in " +
					"the package.",
				"Its own sandbox is off under pawl: it does not work inside of another one.",
			},
		},
	}
}

// binaries are where the native binary is, from the folder of the npm
// package's wrapper: in the platform's package beside or inside of it, or in
// the package itself.
func binaries() []string {
	arch, machine := runtime.GOARCH, map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if arch == "amd64" {
		arch = "x64"
	}
	target := machine + "-unknown-linux-musl"
	if runtime.GOOS == "darwin" {
		target = machine + "-apple-darwin"
	}
	platform := "codex-" + runtime.GOOS + "-" + arch
	return []string{
		"../../" + platform + "/vendor/" + target + "/bin/codex",
		"../node_modules/@openai/" + platform + "/vendor/" + target + "/bin/codex",
		"../vendor/" + target + "/bin/codex",
		"../vendor/" + target + "/codex/codex",
	}
}

// door makes the gateway a provider of the program's configuration. It tries
// nothing again there: the gateway does.
func door() program.Door {
	d := program.ToOpenAI.With("CODEX_API_KEY")
	for _, setting := range []string{
		`model_provider="pawl"`, `model_providers.pawl.name="pawl"`, `model_providers.pawl.base_url="{url}"`,
		`model_providers.pawl.env_key="CODEX_API_KEY"`, `model_providers.pawl.wire_api="responses"`,
		`model_providers.pawl.request_max_retries=0`, `model_providers.pawl.stream_max_retries=1`,
	} {
		d.Args = append(d.Args, "-c", setting)
	}
	return d
}
