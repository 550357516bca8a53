// Package cursor runs Cursor's agent headless (`cursor-agent -p
// --output-format stream-json`) and reads its stream: Claude Code's lines with
// tool calls and thoughts in lines of their own. It starts nothing itself; it
// is made from documentation, no run of the program was recorded.
//
//   - The prompt is an argument, so it is at most 128 KiB.
//   - `result` is the terminal event of a success; a failure may end the
//     stream without one, with the reason on stderr.
//   - `result.result` is everything that was said in one piece, without
//     anything between the messages: a signal in it may not be alone on its
//     line. The message is what was said after the last tool call.
//   - Tokens come with the result, if at all. There is no cost.
package cursor

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
)

// Program is Cursor's agent.
func Program() program.Program {
	return program.Program{
		Name: "cursor", Binary: "cursor-agent",
		Args:     []string{"-p", "--output-format", "stream-json"},
		Allow:    []string{"--trust", "--force"},
		ReadOnly: []string{"--trust", "--mode", "plan"},
		Model:    "--model",
		Prompt:   program.Argument,
		Grace:    8 * time.Second, Quiet: 20 * time.Minute,
		Parser: "cursor", Structured: true,
		Own:       program.Lines(NewParser),
		Folders:   []string{".cursor", ".config/cursor"},
		Variables: []string{"CURSOR_*"}, Single: true,
		Services: []program.Service{{Hosts: []string{"*.cursor.sh"}}},
		Install:  "install Cursor's command line from cursor.com/cli, then set CURSOR_API_KEY or run cursor-agent login",
		Facts: agent.Facts{
			Package: "cursor.com/cli", Versions: "not run; documentation of 2026",
			Tokens: "at the end, newer versions only", Cost: "none; estimated from tokens",
			Problems: []string{
				"The prompt shows in the list of processes.",
				"A failure may end its stream without a terminal event; such a run counts as cut off.",
			},
		},
	}
}
