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
	_ "embed" // of the program's file

	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

//go:embed program.json
var file string

// Program is Claude Code. As root it refuses to work without permission prompts, unless a variable
// says that it is in a sandbox.
//
// An agent that must change nothing has no tools that change files. A shell stays, so that a
// reviewer can run tests: the plan mode of the program would end with a plan to approve. Inside of
// a session the program takes itself for a part of that session, so its variables are unset.
// platform.claude.com and console.anthropic.com renew a login.
func Program(root bool) program.Program {
	p := program.Read(file, program.Lines(NewParser))
	if root {
		p.Env = append(p.Env, "IS_SANDBOX=1")
	}
	return p
}
