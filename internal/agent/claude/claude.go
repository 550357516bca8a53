// Package claude runs Claude Code headless and reads its stream of JSON
// lines (`claude -p --output-format stream-json --verbose`).
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin, at most 10 MiB; more is exit 1 and no request.
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
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/loop"
)

// maxPrompt is the most that the program reads from stdin, in bytes.
const maxPrompt = 10 << 20

// Adapter starts Claude Code.
type Adapter struct {
	// Root is true when the program will run as root. It refuses to work
	// without permission prompts then, unless it is told that it is in a sandbox.
	Root bool
	// Getenv looks up pawl's own environment, which the program inherits.
	Getenv func(string) string
}

// Name is "claude".
func (Adapter) Name() string { return "claude" }

// Install says how to get the program.
func (Adapter) Install() string { return "npm install -g @anthropic-ai/claude-code" }

// LiveUsage is false: output tokens are estimated until the end.
func (Adapter) LiveUsage() bool { return false }

// Structured is true: `result` ends the stream.
func (Adapter) Structured() bool { return true }

// Start makes the command line. A command of the user's replaces the program's
// name, and may have arguments of its own before pawl's.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	if in.PromptSize > maxPrompt {
		return agent.Start{}, fmt.Errorf("cannot start claude: the prompt is %d bytes and the program reads at most %d;"+
			" shorten the prompt, or name files in it instead of their content", in.PromptSize, maxPrompt)
	}
	args := []string{"claude"}
	if len(in.Command) > 0 {
		args = append([]string(nil), in.Command...)
	}
	args = append(args, "-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions")
	if in.ReadOnly {
		args = append(args, "--disallowedTools", writers)
	}
	if in.Model != "" {
		args = append(args, "--model", in.Model)
	}
	if in.MaxCost > 0 {
		args = append(args, "--max-budget-usd", dollars(in.MaxCost))
	}
	return agent.Start{
		Args:   args,
		Env:    a.env(in),
		Unset:  nested,
		Stdin:  in.PromptFile,
		Parser: "claude",
		Grace:  5 * time.Second,
	}, nil
}

// writers are the tools that change files. A shell stays, so that a reviewer
// can run tests: the plan mode of the program would end with a plan to approve.
const writers = "Edit,MultiEdit,Write,NotebookEdit"

// nested are set inside of a session of the program, which then takes itself
// for a part of that session.
var nested = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"}

// env is pawl's part first, so that the user's additions win.
func (a Adapter) env(in agent.Invocation) []string {
	env := []string{
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_MAX_RETRIES=2",
	}
	if a.Root {
		env = append(env, "IS_SANDBOX=1")
	}
	if a.isolated(in) {
		env = append(env, "CLAUDE_CONFIG_DIR="+in.StateDir)
	}
	return append(env, in.Env...)
}

// isolated is true when the program's state is kept in pawl's folder: with a
// key nothing of the user's own folder is needed, while a login lives there.
func (a Adapter) isolated(in agent.Invocation) bool {
	if in.StateDir == "" {
		return false
	}
	return in.Isolate || a.set("ANTHROPIC_API_KEY", in.Env) || a.set("ANTHROPIC_AUTH_TOKEN", in.Env)
}

// set is whether the program will see a value for name.
func (a Adapter) set(name string, env []string) bool {
	value := ""
	if a.Getenv != nil {
		value = a.Getenv(name)
	}
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			value = v
		}
	}
	return value != ""
}

// dollars writes money as the program reads it.
func dollars(m loop.MicroUSD) string {
	s := strconv.FormatInt(int64(m/1_000_000), 10)
	if rest := m % 1_000_000; rest != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%06d", rest), "0")
	}
	return s
}
