// Package claude runs Claude Code headless and reads its stream of JSON
// lines (`claude -p --output-format stream-json --verbose`).
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin, at most 10 MiB; more is exit 1 and no request.
//     As a line of JSON it can be followed by messages, which go with the result of the
//     tool that runs. Then the program ends when stdin does.
//   - `result` is the terminal event. An API failure is a `result` with
//     subtype "success", is_error true and api_error_status; exit 1.
//   - An interrupt may end it with exit 0 and no `result`: success is exit 0
//     and a `result` that says so.
//   - It tries a failed model call again ten times, three minutes in all, a
//     bad key too. CLAUDE_CODE_MAX_RETRIES makes that seconds; pawl waits itself.
//   - Usage is exact at the end only. While it runs, input is known when a
//     message starts, and output is estimated from what is said.
//   - When a subscription's limit is hit, `rate_limit_event` has the time of the reset.
//
// The permission prompts are off at every safety level, since a headless
// program cannot ask: what it may touch is enforced by pawl's sandbox, not
// by the program that is to be held. The package starts nothing itself.
package claude

import (
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

const (
	noQuestions = "--dangerously-skip-permissions"
	// writers are the tools that change files. A shell stays, so that a reviewer
	// can run tests: the plan mode of the program would end with a plan to approve.
	writers = "Edit,MultiEdit,Write,NotebookEdit"
)

// Program is Claude Code. As root it refuses to work without permission prompts, unless a variable
// says that it is in a sandbox.
func Program(root bool) program.Program {
	env := []string{
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_MAX_RETRIES=2",
	}
	if root {
		env = append(env, "IS_SANDBOX=1")
	}
	return program.Program{
		Name: "claude", Binary: "claude",
		Flags: program.Flags{
			Args:     []string{"-p", "--output-format", "stream-json", "--verbose"},
			Allow:    []string{noQuestions},
			ReadOnly: []string{noQuestions, "--disallowedTools", writers},
			Model:    "--model", MaxCost: "--max-budget-usd",
			Tools: []string{
				`--mcp-config={"mcpServers":{"pawl":{"command":{pawl},"args":["mcp","--run",{tools}]}}}`,
			},
			Talk:      []string{"--input-format", "stream-json"},
			Installed: []string{"/@anthropic-ai/claude-code/", "/claude/versions/", "/Caskroom/claude-code"},
		},
		Limit: 10 << 20,
		Env:   env,
		Gateway: program.Gateway{
			Doors:  []program.Door{program.ToAnthropic.By("ANTHROPIC_BASE_URL={url}")},
			Closed: []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"},
		},
		// Inside of a session the program takes itself for a part of that session.
		Unset: []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"},
		State: program.State{Env: []string{"CLAUDE_CONFIG_DIR={state}"},
			Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}},
		Grace:  5 * time.Second,
		Parser: "claude", Structured: true, Live: true,
		Own: program.Lines(NewParser),
		Account: program.Account{
			Folders: []string{
				".claude", ".claude.json", ".claude.json.backup", ".cache/claude-cli-nodejs", ".cache/claude",
				".local/state/claude",
			},
			Login: ".claude/.credentials.json",
			Moves: []program.Move{
				{Variable: "CLAUDE_CONFIG_DIR", Instead: []string{".claude", ".claude.json", ".claude.json.backup"}},
			},
			Variables: []string{"ANTHROPIC_*", "CLAUDE_*", "AWS_BEARER_TOKEN_BEDROCK"}, Single: true,
			Clouds: []program.Cloud{
				{When: "CLAUDE_CODE_USE_BEDROCK", Needs: []string{"AWS_*"}},
				{When: "CLAUDE_CODE_USE_VERTEX", Needs: []string{"GOOGLE_*", "GCLOUD_*", "CLOUD_ML_*"}},
			},
			Services: newServices(),
		},
		Install: "npm install -g @anthropic-ai/claude-code",
	}
}

func newServices() []program.Service {
	clouds := []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"}
	return []program.Service{
		{Hosts: program.Anthropic.Hosts, Base: program.Anthropic.Base, Unless: clouds},
		{ // a login is renewed
			Hosts:  []string{"platform.claude.com", "console.anthropic.com"},
			Unless: append(clouds, "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"),
		},
		program.Bedrock.Only("CLAUDE_CODE_USE_BEDROCK"), program.Vertex.Only("CLAUDE_CODE_USE_VERTEX"),
	}
}
